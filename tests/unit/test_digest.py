"""What old messages leave behind."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.conversations.digest import DigestEntry, digest
from muntin.counting.tokens import count_tokens


def order(number: int, status: str = "pending") -> DigestEntry:
    record = {"order_id": f"#W{number}", "status": status, "price": 9.5, "zip": "77159"}
    return DigestEntry(role="tool", tool="get_order", text=json.dumps(record))


def call(tool: str, **arguments: object) -> DigestEntry:
    return DigestEntry(role="assistant", tool=tool, arguments=json.dumps(arguments))


def test_one_record_is_one_line_behind_its_id() -> None:
    """A price without the order it belongs to misleads."""
    assert digest([order(1001)], max_tokens=100) == (
        "order_id: #W1001, status: pending, price: 9.5, zip: 77159"
    )


def test_a_record_met_again_replaces_what_it_said_before() -> None:
    """The newest status is the one that holds; both would contradict each other."""
    shown = digest([order(1001), order(1002), order(1001, "cancelled")], max_tokens=200)
    assert shown.splitlines() == [
        "order_id: #W1002, status: pending, price: 9.5",
        "order_id: #W1001, status: cancelled, price: 9.5, zip: 77159",
    ]


def test_the_newest_fact_stands_last() -> None:
    """Models read the end of a note as the present."""
    entries = [DigestEntry(role="user", text=f"ticket T-{n}00 please") for n in range(1, 5)]
    shown = digest(entries, max_tokens=100)
    assert shown == "ticket: T-100, T-200, T-300, T-400"


def test_what_is_used_again_stays_before_what_was_only_shown() -> None:
    """Of a hundred ids in a listing the next call needs the one that was talked about."""
    listing = json.dumps([{"item_id": f"item-{n}7"} for n in range(200)])
    entries = [
        DigestEntry(role="tool", tool="list_items", text=listing),
        DigestEntry(role="user", text="The one I mean is item-37, as I said."),
        call("look", item_id="item-37"),
        *[order(n) for n in range(2000, 2030)],
    ]
    assert "item-37" in digest(entries, max_tokens=20)


def test_numbers_and_words_do_not_stand_without_the_id_of_their_record() -> None:
    """When room is short, `zip: 77159` alone only takes the place of an id."""
    entries = [order(n) for n in range(2000, 2040)]
    for line in digest(entries, max_tokens=60).splitlines():
        assert line.startswith("order_id: ")


def test_a_failed_call_is_told_with_its_values() -> None:
    """An agent that forgets what failed does it again."""
    entries = [
        call("cancel", order_id="#W1", reason="late"),
        DigestEntry(role="tool", tool="cancel", text="Error: already delivered"),
        call("find", name="x"),
        DigestEntry(role="tool", text="fine", is_error=False),
    ]
    assert "failed: cancel #W1, late: Error: already delivered" in digest(entries, max_tokens=99)


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)))
def test_a_failure_is_told_of_the_call_that_failed(
    order: list[int], failed: set[int], bare: set[int]
) -> None:
    """Parallel calls come back in any order; blaming the wrong one has it made again."""
    calls = [
        DigestEntry(
            tool=f"tool{n}", arguments="" if n in bare else f'{{"id": "A-{n}"}}', call_id=f"c{n}"
        )
        for n in range(5)
    ]
    results = [
        DigestEntry(role="tool", call_id=f"c{n}", text="Error: down" if n in failed else "done")
        for n in order
    ]
    shown = digest([*calls, *results], max_tokens=999).splitlines()
    told = {line for line in shown if line.startswith("failed")}
    assert told == {f"failed: tool{n}{'' if n in bare else f' A-{n}'}: Error: down" for n in failed}


def test_a_failure_without_an_id_is_told_of_the_oldest_call_that_waits() -> None:
    """Legacy functions have no ids; a call without arguments is a call as well."""
    entries = [
        DigestEntry(tool="ping"),
        call("pay", order="#B2"),
        DigestEntry(role="tool", text="Error: down"),
        DigestEntry(role="tool", text="paid"),
    ]
    assert "failed: ping: Error: down" in digest(entries, max_tokens=99)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Traceback (most recent call last):\n  x\nKeyError: 'size'", "KeyError: 'size'"),
        ("<returncode>1</returncode>", "<returncode>1</returncode>"),
        ("<returncode>0</returncode>", None),
        ("exit code: 2\nnothing to do", "exit code: 2"),
        ("ok\n" * 500 + "fatal: not a git repository", "fatal: not a git repository"),
        ("no error was found", None),
    ],
)
def test_failures_are_known_by_their_first_words_or_their_code(
    text: str, reason: str | None
) -> None:
    """Tools seldom say that they failed in any other way than in words."""
    shown = digest([call("run"), DigestEntry(role="tool", tool="run", text=text)], max_tokens=99)
    assert (f"failed: run: {reason}" in shown) if reason else ("failed" not in shown)


def test_a_result_marked_as_failed_is_told_whatever_it_says() -> None:
    """Anthropic's `is_error` is the only word some tools leave."""
    entries = [DigestEntry(role="tool", tool="run", text="nope", is_error=True)]
    assert digest(entries, max_tokens=99) == "failed: run: nope"
    entries = [DigestEntry(role="tool", tool="run", text="", is_error=True)]
    assert digest(entries, max_tokens=99) == "failed: run: failed"


def test_what_was_settled_is_quoted() -> None:
    """Decisions and rules hold ids seldom and matter long."""
    entries = [
        DigestEntry(role="user", text="Hello. Please never ship to the old address. Thanks."),
        DigestEntry(role="assistant", text="We agreed on air freight. The sun shines."),
    ]
    assert digest(entries, max_tokens=99).splitlines() == [
        "said: Please never ship to the old address.",
        "noted: We agreed on air freight.",
    ]


def test_what_stays_in_the_context_is_not_said_twice() -> None:
    """A digest that repeats the kept tail takes the room of what is gone."""
    entries = [order(1001), order(1002)]
    shown = digest(entries, max_tokens=99, known="we look at #W1002 now")
    assert "#W1001" in shown
    assert "#W1002" not in shown


def test_nothing_to_say_is_nothing_said() -> None:
    """A heading with nothing below it helps nobody."""
    assert digest([], max_tokens=50) == ""
    assert digest([DigestEntry(role="user", text="hi there")], max_tokens=50) == ""
    assert digest([order(1)], max_tokens=0) == ""


@pytest.mark.parametrize("max_tokens", [1, 7, 20, 63, 200, 5000])
def test_the_cap_holds_on_the_whole_text(max_tokens: int) -> None:
    """The note shares the window with everything else."""
    entries = [order(n) for n in range(3000, 3200)]
    assert count_tokens(digest(entries, max_tokens=max_tokens)) <= max_tokens


def test_a_larger_budget_uses_it() -> None:
    """Idle room in a note is lost facts."""
    entries = [order(n) for n in range(3000, 3400)]
    assert count_tokens(digest(entries, max_tokens=1000)) > 950


@pytest.mark.parametrize("power", [1, 2, 3])
def test_the_most_facts_that_fit_are_found_in_few_tries(power: int) -> None:
    """Every try writes and counts a digest; uneven facts must not cost a hundred of them."""
    entries = [DigestEntry(role="tool", text=f"ticket TIC-{n}00") for n in range(1, 300)]
    for most in (0, 1, 2, 50, 298, 299, 400):
        tried: list[int] = []

        def cost(text: str, tried: list[int] = tried) -> int:
            facts = len(text.split("\n")) if text else 0
            tried.append(facts)
            return int(facts**power)

        shown = digest(entries, max_tokens=most**power, counter=cost)
        assert shown.count("TIC-") == min(most, len(entries))
        assert len(tried) <= 24
        assert max(tried) <= max(1, 2 * most)


def test_a_long_talk_leaves_its_ids_and_what_most_of_it_is_about() -> None:
    """Facts alone are a poor memory of people who discuss: most of what matters has no digit."""
    said = [f"Ann: I had {what} for lunch" for what in ("soup", "rice", "fish", "pie", "figs")] * 4
    said[3] = "Bob: ticket T-9031 is about the heating"
    said[9] = (
        "Ann: we decided to replace the boiler before winter, the landlord pays for the boiler"
    )
    entries = [DigestEntry(role="user", text=text) for text in said]
    shown = digest(entries, max_tokens=60)
    assert shown.startswith("ticket: T-9031\n")
    assert said[9] in shown.splitlines()
    assert count_tokens(shown) <= 60
    with_call = [*entries, call("look", ticket="T-9031")]
    assert "landlord pays" in digest(with_call, max_tokens=400)  # quoted, as it settles something
    assert "lunch" not in digest(with_call, max_tokens=400)


def test_an_open_channel_leaves_little_beside_its_newest_lines() -> None:
    """The room goes to messages word for word: what is wanted stands a few lines back."""
    nicks = ("kai", "lux", "moe", "nyx", "oz", "pip")
    entries = [
        DigestEntry(role="user", text=f"{nicks[n % 6]}: {nicks[(n + 2) % 6]}, use driver-{n}.9.1")
        for n in range(60)
    ]
    shown = digest(entries, max_tokens=300)
    assert 0 < count_tokens(shown) <= 30
    assert shown.endswith("driver-59.9.1")


@pytest.mark.parametrize(
    "sentence",
    [
        "Please confirm if you would like to proceed.",
        "To confirm, you would like to:",
        "Would you prefer another flight instead?",
    ],
)
def test_a_question_of_the_assistant_is_not_noted(sentence: str) -> None:
    """It settles nothing, and it takes the tokens of an id that a later call needs."""
    assert digest([DigestEntry(role="assistant", text=sentence)], max_tokens=100) == ""


def test_what_the_assistant_decided_is_noted() -> None:
    """Only questions are left out."""
    said = DigestEntry(role="assistant", text="We decided to ship by rail.")
    assert digest([said], max_tokens=100) == "noted: We decided to ship by rail."


def test_neighbouring_numbers_share_a_label() -> None:
    """A label before each of many ids takes the tokens of other ids."""
    rows = [{"item_id": f"{number}"} for number in range(1000007, 1000012)]
    entry = DigestEntry(role="tool", tool="list_items", text=json.dumps(rows))
    shown = digest([entry], max_tokens=200)
    assert shown == ("item_id: 1000007, 1000008, 1000009, 1000010\nitem_id: 1000011")


def test_values_with_words_keep_a_label_each() -> None:
    """Behind such a value another one would seem to be named by it."""
    rows = [{"path": "src/engine.py"}, {"path": "src/signal.py"}]
    entry = DigestEntry(role="tool", tool="list_files", text=json.dumps(rows))
    assert digest([entry], max_tokens=200) == "path: src/engine.py\npath: src/signal.py"


def test_the_question_brings_the_record_that_it_names() -> None:
    """Without it, the newest of many records take the place of the one that is asked for."""
    kinds = ["Grill", *(f"Part {number}" for number in range(40))]
    rows = [
        DigestEntry(
            role="tool",
            tool="get_item",
            text=json.dumps({"name": kind, "item_id": f"{1000007 + at}", "price": 9.25 + at}),
        )
        for at, kind in enumerate(kinds)
    ]
    assert "Grill" not in digest(rows, max_tokens=160)
    shown = digest(rows, max_tokens=160, asked="What did I pay for all the grills?")
    assert "name: Grill, item_id: 1000007, price: 9.25" in shown
