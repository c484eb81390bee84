"""Under a budget of about one passage, the best sentences of several passages are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muntin import Candidate, ContextBuilder, ContextConfig, count_tokens
from muntin.passages.sources import Gathered

if TYPE_CHECKING:
    from muntin.passages.assembled import AssembledContext

FILLER = (
    "It has been kept by the town council for many years. Visitors come from far away to see it. "
    "The entrance is free on Sundays and on public holidays. A small shop sells postcards. "
)
PASSAGES = (
    Candidate(f"Old Mill\n{FILLER}The mill was built in 1432 by monks. {FILLER}", 0.9, id="mill"),
    Candidate(
        f"Stone Bridge\n{FILLER}The bridge crosses the river Aar. {FILLER}", 0.8, id="bridge"
    ),
    Candidate(f"Town Hall\n{FILLER}The hall was painted by Ada Berg. {FILLER}", 0.7, id="hall"),
)
CODE = Candidate(
    "def first():\n    return 1\n\n" + "def other():\n    return 2\n" * 40, 0.9, id="code"
)


def assembled(question: str, budget: int, *found: Candidate, **options: Any) -> AssembledContext:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1, **options))
    return builder.assemble_block(question, Gathered(candidates={"rag": found}), budget=budget)


def test_the_sentence_with_the_answer_is_placed_from_the_middle_of_a_passage() -> None:
    """The beginning of the best passage filled the budget, and the answer was cut off."""
    context = assembled("When was the mill built?", 60, *PASSAGES)
    assert "built in 1432" in context.text
    assert count_tokens(context.text) <= 60
    assert {one.kind for one in context.report.decisions} <= {"shortened", "dropped"}


def test_a_window_keeps_its_title_and_leads_back_to_its_passage() -> None:
    context = assembled("When was the mill built?", 60, *PASSAGES)
    found = context.candidate_at(context.text.index("1432"))
    assert found is not None
    assert found.id == "mill"
    assert found.content.startswith("Old Mill\n")


def test_sentences_stay_in_order_and_gaps_are_marked() -> None:
    text = "Alpha stands first. " + FILLER + "The river Aar is last."
    context = assembled("Where is Alpha? Where is the river Aar?", 30, Candidate(text))
    content = context.candidates[0].content
    assert content.index("Alpha") < content.index("…") < content.index("Aar")


@pytest.mark.parametrize("budget", range(5, 200, 13))
def test_every_budget_is_kept_and_every_passage_has_one_decision(budget: int) -> None:
    context = assembled("When was the mill built?", budget, *PASSAGES)
    assert count_tokens(context.text) <= budget
    assert sorted(one.id for one in context.report.decisions) == ["bridge", "hall", "mill"]
    placed = {one.id for one in context.report.decisions if one.kind != "dropped"}
    assert placed == {one.id for one in context.candidates}


def test_whole_passages_are_placed_where_there_is_room() -> None:
    context = assembled("When was the mill built?", 600, *PASSAGES, dedup_threshold=1.1)
    assert {one.kind for one in context.report.decisions} == {"kept"}


@pytest.mark.parametrize(
    "content",
    [
        CODE.content,
        "| a | b |\n|---|---|\n" + "| 1. x | 2. y |\n" * 60,
        '{"a": "One. Two. Three."}\n' * 60,
        "```\nOne. Two. Three.\n```\n" * 40,
    ],
)
def test_code_and_tables_are_not_cut_into_sentences(content: str) -> None:
    """Lines picked out of a program or a table mean nothing."""
    context = assembled("first?", 40, Candidate(content))
    assert " … " not in context.text
    assert context.candidates[0].content.rstrip("…") in content


def test_windows_can_be_switched_off() -> None:
    context = assembled("When was the mill built?", 60, *PASSAGES, windows=False)
    assert PASSAGES[0].content.startswith(context.candidates[0].content)


def test_a_sentence_that_is_repeated_is_placed_once() -> None:
    """Boilerplate filled the budget with one sentence many times."""
    text = (
        "Ada Berg keeps the mill. " * 30
        + "The mill was built in 1432. "
        + "Closed on Mondays. " * 30
    )
    context = assembled("When was the mill built?", 40, Candidate(text))
    assert context.text.count("Ada Berg keeps the mill.") == 1
    assert "1432" in context.text
