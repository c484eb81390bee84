"""What is a value and what is noise: lists, repeats, clock times and random strings per line."""

from __future__ import annotations

import random

import pytest

from muntin import ExtractiveSummarizer
from muntin.conversations.digest import DigestEntry, digest
from muntin.counting import count_tokens
from muntin.text import sentences

PLAN = "\n".join(
    f"{number}. **{step}** {rest}"
    for number, (step, rest) in enumerate(
        [
            ("Check in", "at the desk of the hotel, with the passport and the booking."),
            ("Pay", "the deposit of 80 euros in cash, for which there is a receipt."),
            ("Board", "the boat at pier 4 before noon, because it leaves on time."),
            ("Rest", "on the island until the guide calls, and drink enough water."),
        ],
        1,
    )
)


@pytest.mark.parametrize(
    "mark", ["3. ", "12) ", "(4) ", "a) ", "IV. ", "- 2. ", "**3.** ", "# 1. "]
)
def test_no_sentence_ends_behind_the_number_of_a_list_item(mark: str) -> None:
    """A plan was summarised as "2." and "5.", and its text was gone."""
    item = f"{mark}Check in at the desk."
    assert sentences(f"The plan.\n{item}\nDone.") == ["The plan.\n", f"{item}\n", "Done."]


@pytest.mark.parametrize("text", ["It was 5. Then we left.", "We came in 2019. It rained."])
def test_a_number_ends_a_sentence_elsewhere(text: str) -> None:
    """Only the number at the beginning of an item belongs to what follows it."""
    assert len(sentences(text)) == 2


@pytest.mark.parametrize("most", [20, 40, 60])
def test_an_extract_of_a_plan_holds_whole_items(most: int) -> None:
    """Numbers without their text say nothing."""
    shown = ExtractiveSummarizer(max_tokens=most)(f"Here is the plan (19).\n{PLAN}\n{PLAN}")
    for line in shown.splitlines():
        assert line in PLAN or line == "Here is the plan (19)."
        assert any(map(str.isalpha, line))


def test_a_sentence_that_says_it_again_is_taken_once() -> None:
    """Three wordings of one sentence took the place of two others."""
    said = "The boat to the island leaves from the old pier in the harbour every morning"
    text = f"{said}.\n{said} again.\n{said}, too.\n{PLAN}"
    shown = ExtractiveSummarizer(max_tokens=70)(text)
    assert shown.count("old pier") <= 1


def test_tickets_outlive_times_and_random_strings_of_a_log() -> None:
    """The digest was full of time stamps, and 48 of 60 tickets were gone."""
    dice = random.Random(7)
    entries: list[DigestEntry] = []
    for case in range(60):
        log = "\n".join(
            f"2024-05-19T12:{case:02d}:{line:02d} p-7 id={dice.getrandbits(48):012x} 12:{line:02d}"
            for line in range(6)
        )
        entries += [
            DigestEntry(role="user", text=f"What is the ticket of case {case}?"),
            DigestEntry(tool="log", arguments=f'{{"case": {case}}}', call_id=str(case)),
            DigestEntry(role="tool", tool="log", text=log, call_id=str(case)),
            DigestEntry(role="assistant", text=f"It is OPS-{1000 + case}."),
        ]
    shown = digest(entries, max_tokens=500)
    assert count_tokens(shown) <= 500
    assert sum(f"OPS-{1000 + case}" in shown for case in range(60)) == 60
    assert "12:05" not in shown


def test_an_id_that_a_person_speaks_of_is_no_noise() -> None:
    """A commit that somebody names is a value, random as it looks."""
    commit = "9f86d081884c7d65"
    log = "\n".join(f"commit id={n:08x}{n * 7919:08x}" for n in range(20, 60))
    entries = [
        DigestEntry(role="user", text=f"Please look at commit {commit}."),
        DigestEntry(tool="log", arguments="{}", call_id="c"),
        DigestEntry(role="tool", tool="log", text=log, call_id="c"),
    ]
    assert commit in digest(entries, max_tokens=30)
