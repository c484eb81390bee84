"""Summaries without a model."""

from __future__ import annotations

import pytest

from muntin.flow import SummaryRequest, summarizer_of
from muntin.summarize import ExtractiveSummarizer
from muntin.tokens import count_tokens

MEETING = "\n".join(
    [
        *[
            f"Ann: well, you know, item {'abcdefgh'[n % 8]} is sort of fine I guess"
            for n in range(40)
        ],
        "Bob: we decided to freeze the Atlas release on 2024-09-03",
        *["Ann: ok" for _ in range(20)],
        "Ann: the Atlas budget is $14,500 and must not be exceeded",
        *[f"Bob: right, the weather in {'abcdefgh'[n % 8]}town is nice" for n in range(40)],
    ]
)


def test_figures_and_decisions_survive() -> None:
    """They are what is asked for later."""
    shown = ExtractiveSummarizer()(MEETING, max_tokens=60)
    assert "2024-09-03" in shown
    assert "$14,500" in shown
    assert count_tokens(shown) <= 60


def test_units_keep_their_words_and_their_order() -> None:
    """A summary that reorders tells another story."""
    lines = ExtractiveSummarizer()(MEETING, max_tokens=150).splitlines()
    places = [MEETING.index(line) for line in lines]
    assert places == sorted(places)
    assert len(set(lines)) == len(lines)


def test_the_question_decides_what_comes_first() -> None:
    """When it is known, words of the question weigh most."""
    text = "\n".join(
        f"The {name} fund holds {n} shares."
        for n, name in enumerate(["red", "teal", "grey", "pink", "gold", "lime"] * 9)
    )
    shown = ExtractiveSummarizer()(text, max_tokens=9, question="What about teal?")
    assert "teal" in shown


def test_a_text_that_fits_stays_whole() -> None:
    """Leaving something out without need is a loss."""
    assert ExtractiveSummarizer()("  One. Two.\n", max_tokens=50) == "One. Two."


def test_routine_lines_give_way() -> None:
    """Acknowledgements and templates repeat, and say nothing."""
    text = "\n".join(
        ["Continuing with the plan as agreed."] * 60 + ["Zeta owns the vault code."] * 1
    )
    assert ExtractiveSummarizer()(text, max_tokens=8) == "Zeta owns the vault code."


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5000,
        "漢字かな交じり文" * 500,
        "ประเทศไทยมีการตัดสินใจ " * 200,
        "?! ... " * 900,
        "👩‍👩‍👧‍👦" * 400,
    ],
)
def test_a_summary_of_something_is_not_empty(text: str) -> None:
    """An empty summary loses a conversation."""
    shown = ExtractiveSummarizer()(text, max_tokens=12)
    assert shown
    assert count_tokens(shown) <= 12


def test_blank_text_has_a_blank_summary() -> None:
    """Nothing is made up."""
    assert ExtractiveSummarizer()(" \n\t ", max_tokens=10) == ""
    assert ExtractiveSummarizer()("text", max_tokens=0) == ""


def test_other_scripts_are_parted_and_weighed() -> None:
    """Without spaces there are still sentences, figures and decisions."""
    filler = "今天天气很好，我们随便聊聊。" * 3
    text = (
        filler
        + "大家决定九月三日冻结代号阿特拉斯的版本。"
        + "".join(f"第{n}项没有问题。" for n in "一二三四五六七八九")
    )
    shown = ExtractiveSummarizer()(text, max_tokens=30)
    assert "决定九月三日" in shown


def test_it_is_a_summariser_like_any_other() -> None:
    """Compaction asks it the way it asks a model, and its cap is told."""
    request = SummaryRequest(text=MEETING, instruction="Be brief.", max_tokens=40)
    shown = summarizer_of(ExtractiveSummarizer()).answer(request)
    assert 0 < count_tokens(shown) <= 40


def test_the_call_may_bring_another_counter() -> None:
    """A budget in characters is as good as one in tokens."""
    assert 0 < len(ExtractiveSummarizer(max_tokens=90)(MEETING, counter=len)) <= 90
