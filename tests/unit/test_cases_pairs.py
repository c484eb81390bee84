"""Cases: a result without its call, or a call without its result, and the request is refused.

One broken pair is enough, and where it was stored every later request fails as well. The property
is `test_no_entry_point_parts_a_pair_of_any_conversation`; `properties/test_fit_properties.py` holds
it at every budget for every shape, `properties/test_compaction_properties.py` over whole lives.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import (
    ENTRY_POINTS,
    A,
    S,
    T,
    U,
    budgets,
    fit_or_none,
    saying,
    sound,
    steps,
    talk,
    text_of,
    trimmed,
)
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.messages.repair import repair
from muntin.messages.shapes import view
from strategies import conversations

if TYPE_CHECKING:
    from collections.abc import Sequence


def batches(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Write one round of parallel calls for each size."""
    made: list[dict[str, Any]] = []
    for at, size in enumerate(sizes):
        ids = [f"b{at}_{part}" for part in range(size)]
        made += [A(*ids), *(T(i, f"row {i} " * 20) for i in ids)]
    return made


PAIRS: dict[str, list[dict[str, Any]]] = {
    "a round between old turns": [S, U(), A("1"), T("1"), U(), A(), U()],
    "a round before the last answer": [S, U(), A("1"), T("1"), U(), A()],
    "one request and twenty rounds": [U(), *steps(20)],
    "one request and forty rounds": [U(), *steps(40)],
    "thirty rounds of three parallel calls": [S, U(), *steps(30, 3), A(), U("and now?")],
    "thirty rounds of one to three calls": [S, U(), *batches([1, 2, 3] * 10), A(), U("and now?")],
    "a running turn": [U(), A("1"), T("1")],
    "a running turn behind old ones": [S, U(), A(), *steps(4), A(), U("and this?"), A("z"), T("z")],
    "a round at the very end": [S, U(), *steps(3), A("z"), T("z", "row " * 300)],
    "two messages and a round": [U("x" * 400), A("1"), T("1")],
    "interleaved rounds": [S, U(), A("1"), A("2"), T("1"), T("2"), A(), U()],
    "a late result": [S, U(), A("1"), U("wait"), A(), T("1"), A(), U()],
    "a note between call and result": [S, U(), A("1"), S, T("1"), A(), U()],
    "a batch half answered": [S, U(), *steps(6), A(), U("both?"), A("x", "y"), T("x")],
    "items of one model turn": [
        U("look " * 40),
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "ok " * 40},
        {"role": "assistant", "content": "done " * 40},
        U("and?"),
    ],
}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("name", PAIRS)
def test_no_budget_parts_a_result_from_its_call(name: str, entry_point: str) -> None:
    """Cuts by index, count or tokens leave a call on one side and its result on the other."""
    messages = PAIRS[name]
    for budget in budgets(count_messages(messages), 60 if entry_point == "fit_messages" else 12):
        out = trimmed(entry_point, messages, budget)
        assert out is None or sound(out)


@settings(max_examples=20)
@given(conversations(), st.floats(0.01, 1.1), st.sampled_from(sorted(ENTRY_POINTS)))
def test_no_entry_point_parts_a_pair_of_any_conversation(
    messages: list[Any], share: float, entry_point: str
) -> None:
    """The kind's property: whatever was said, whatever room there is, whichever way in."""
    out = trimmed(entry_point, messages, max(1, int(share * count_messages(messages))))
    assert out is None or sound(out)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("name", PAIRS)
def test_what_fits_is_not_touched(name: str, entry_point: str) -> None:
    """Results set aside and never put back vanish from a history that was under its budget."""
    messages = PAIRS[name]
    assert trimmed(entry_point, messages, 10 * count_messages(messages)) is messages


@pytest.mark.parametrize("name", PAIRS)
def test_both_sides_of_a_cut_are_whole(name: str) -> None:
    """A pair of which one half is summarised and the other one kept is broken on both sides."""
    messages = PAIRS[name]
    total = count_messages(messages)
    for budget in range(total // 4, total, max(1, total // 12)):
        fitted = fit_or_none(messages, budget)
        if fitted is None:
            continue
        gone = {d.index for d in fitted.report.decisions if d.kind in ("summarised", "dropped")}
        ids = [{c.id for c in view(m).calls} | {r.call_id for r in view(m).results}
               for m in messages]  # fmt: skip
        for at in gone:
            partners = {other for other, named in enumerate(ids) if ids[at] & named}
            assert partners <= gone


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("answered", [0, 1, 2])
def test_the_turn_in_flight_is_kept_whole_however_little_is_kept(keep: int, answered: int) -> None:
    """Whoever keeps "the last message" of a running turn keeps a result without its call."""
    from muntin.conversations.trajectory import reduce_agent_sync

    running = [U("and this?"), A("x", "y"), *[T("x"), T("y")][:answered]]
    messages = [S, U(), *steps(8), A(), *running]
    reduced = reduce_agent_sync(
        messages, summarize=saying("So far."), budget=400, keep_recent_steps=max(keep, 1)
    )
    compacted = HistoryCompactor(
        saying("So far."), keep_recent=max(keep, 1), trigger_tokens=50
    ).compact(messages)
    for out in (
        reduced,
        compacted,
        fit_messages(messages, budget=400, counter=count_tokens).messages,
    ):
        assert len(out) < len(messages)
        assert list(out)[-len(running) :] == running
    least = count_messages([S, *running[:2], *(T(r["tool_call_id"], "…") for r in running[2:])])
    for budget in range(least, 400, 20):
        tight = fit_messages(messages, budget=budget, counter=count_tokens).messages[
            -len(running) :
        ]
        assert tight[:2] == running[:2]
        assert [view(m).results[0].call_id for m in tight[2:]] == ["x", "y"][:answered]


def test_results_without_a_call_do_not_survive_a_cut() -> None:
    """Looking at the first message only misses one behind the system message, or behind a gap."""
    behind_system = [S, T("gone"), A(), U(), A(text="word " * 400), U()]
    behind_a_gap = [U(), A(), T("c9"), A(text="word " * 400), U()]
    for messages, place in ((behind_system, 1), (behind_a_gap, 2)):
        fitted = fit_messages(messages, budget=120, counter=count_tokens)
        assert sound(fitted.messages)
        reasons = [d.reason for d in fitted.report.decisions if d.index == place]
        assert reasons == ["orphaned"]


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_a_call_that_waits_for_a_person_is_not_folded_away(entry_point: str) -> None:
    """Its answer may come much later, and then finds no call."""
    messages = [S, U(), A("confirm")]
    for at in range(10):
        messages += [U(f"meanwhile {at} " * 10), A(text=f"yes {at} " * 10)]
    messages.append(U("now?"))
    out = trimmed(entry_point, messages, 250)
    assert out is not None
    assert len(out) < len(messages)
    assert any(one.id == "confirm" for m in out for one in view(m).calls)
    later = trimmed(entry_point, [*out, T("confirm", "Yes, book it."), A(), U("thanks")], 250)
    assert later is not None
    assert sound(later)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_plan_made_while_a_batch_was_half_answered_does_not_hold_for_the_whole(
    *, restarted: bool
) -> None:
    """A bare index from then, applied to the longer list, begins the tail with an orphan."""
    half = [S, *talk(3), U("both, please"), A("c1", "c2"), T("c1")]
    whole = [*half, T("c2"), A(text="Both are there."), U("so?")]
    seen: list[dict[str, Any]] = list(half)

    def summarize(text: str, instruction: str) -> str:
        seen.extend(whole[len(seen) :])  # the second result comes while the recap is being made
        return "They looked." if text.startswith("user: q0") else "They saw something else."

    def compactor(summarizer: Any) -> HistoryCompactor:
        return HistoryCompactor(summarizer, keep_recent=1, trigger_tokens=30)

    first = compactor(summarize)
    assert sound(first.compact(seen))
    assert seen == whole
    later = first
    if restarted:
        later = compactor(saying("They looked on."))
        later.load(json.loads(json.dumps(first.state())))
    out = later.compact(whole)
    assert sound(out)
    assert out[-1] == whole[-1]
    # A recap of what has been taken back is no recap of this conversation.
    changed = [S, U("something else " * 20), *whole[2:]]
    assert "They looked." not in text_of(first.compact(changed))


BROKEN: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a call nobody answered": (
        [S, U(), A("1"), U("again?")],
        ["system", "user", "assistant", "tool", "user"],
    ),
    "a call with the result of another behind it": (
        [U(), A("1"), T("gone"), U("again?")],
        ["user", "assistant", "tool", "user"],
    ),
    "a result behind the system": ([S, T("gone"), A(), U()], ["system", "assistant", "user"]),
    "a result behind a gap": ([U(), A(), T("c9"), A(), U()],
                              ["user", "assistant", "assistant", "user"]),
    "a stored list cut between call and output": (
        [{"type": "function_call_output", "call_id": "1", "output": "ok"}, A()],
        ["assistant"],
    ),
    "a stored list cut before its output": (
        [U(), {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, U()],
        ["user", "assistant", "tool", "user"],
    ),
    "a paused run that comes back as history": (
        [U(), A("1", id="m1"), U(), A("1", id="m1"), T("1"), A()],
        ["user", "user", "assistant", "tool", "assistant"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_repairing_is_done_on_request_and_then_once(name: str) -> None:
    """One broken pair that was stored makes every later request fail."""
    broken, roles = BROKEN[name]
    assert fit_messages(broken, budget=900, counter=count_tokens).messages is broken
    fitted = fit_messages(broken, budget=900, repair=True, counter=count_tokens)
    assert [view(message).role for message in fitted.messages] == roles
    assert sound(fitted.messages)
    mended = repair(broken)
    assert list(mended) == fitted.messages
    assert mended.dropped or mended.answered
    assert not repair(fitted.messages).changed
