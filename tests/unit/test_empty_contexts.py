"""A context is never empty in silence when passages were found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muntin import (
    CallableSource,
    Candidate,
    ContextBuilder,
    ContextConfig,
    ContextWindowExceeded,
    count_tokens,
)
from muntin.passages.sources import Gathered
from muntin.passages.splitting import paragraphs

if TYPE_CHECKING:
    from muntin.passages.assembled import AssembledContext

GIANT = Candidate("The parcel left the depot at nine. " * 400, 0.9, id="giant")
UNBROKEN = Candidate("x" * 5000, 0.8, id="unbroken")


def assembled(budget: int, *found: Candidate, **options: Any) -> AssembledContext:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1, **options))
    return builder.assemble_block("when?", Gathered(candidates={"rag": found}), budget=budget)


@pytest.mark.parametrize("found", [(GIANT,), (UNBROKEN,), (GIANT, UNBROKEN)])
@pytest.mark.parametrize("budget", [8, 20, 60, 500])
def test_the_best_passage_is_shortened_if_no_passage_fits(
    found: tuple[Candidate, ...], budget: int
) -> None:
    """A model was asked with nothing because the one document found was long."""
    context = assembled(budget, *found)
    assert 0 < count_tokens(context.text) <= budget
    assert context.candidates[0].id == found[0].id
    assert context.report.decisions[0].kind == "shortened"
    assert context.shortfall is None
    at = context.text.index(context.candidates[0].content[:3])
    assert context.candidate_at(at) == context.candidates[0]


def test_a_shortened_passage_ends_with_a_sentence() -> None:
    assert assembled(60, GIANT).candidates[0].content.endswith("at nine.")


def test_a_smaller_passage_that_fits_is_placed_whole() -> None:
    small = Candidate("Parcels leave at nine.", 0.1, id="small")
    context = assembled(40, GIANT, small, windows=False)
    assert [one.id for one in context.candidates] == ["small"]
    assert context.candidates[0].content == "Parcels leave at nine."


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_no_room_for_any_passage_is_reported(budget: int) -> None:
    """An empty block without a word looks like a search that found nothing."""
    context = assembled(budget, GIANT)
    assert context.text == ""
    assert context.shortfall is not None
    assert any(note.startswith("no passage fits") for note in context.report.notes)


def test_strict_makes_an_empty_context_an_error() -> None:
    with pytest.raises(ContextWindowExceeded, match="the shortest passage"):
        assembled(3, GIANT, strict=True)


@pytest.mark.parametrize("found", [(), (Candidate(" "),), (Candidate(""), Candidate("\n\n"))])
def test_nothing_found_is_no_shortfall(found: tuple[Candidate, ...]) -> None:
    """Empty passages are left out as empty; raising the budget would not help."""
    context = assembled(50, *found, strict=True)
    assert context.text == ""
    assert context.shortfall is None
    assert {one.reason for one in context.report.decisions} <= {"empty"}


def test_the_best_passage_that_is_empty_makes_way_for_the_next() -> None:
    context = assembled(50, Candidate("", 0.9, id="blank"), Candidate("Parcels.", 0.1, id="real"))
    assert [one.id for one in context.candidates] == ["real"]


def test_an_oversized_string_is_split_at_paragraphs() -> None:
    """A chain that joins its documents gave the model the beginning of the first one only."""
    joined = "\n\n".join(
        f"Rule {n}: parcels of class {n} leave at {n} o'clock." for n in range(300)
    )
    context = assembled(60, Candidate(joined))
    assert len(context.candidates) > 1
    assert any("split into 300 paragraphs" in note for note in context.report.notes)
    assert all(one.content in joined for one in context.candidates)


def test_the_paragraph_named_in_the_question_is_found_in_an_oversized_string() -> None:
    rules = [f"Class {n}\n\nThese parcels leave at {n} o'clock sharp." for n in range(40, 90)]
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1))
    found = Gathered(candidates={"rag": (Candidate("\n\n".join(rules)),)})
    context = builder.assemble_block("When do parcels of class 77 leave?", found, budget=60)
    assert "at 77 o'clock" in context.text


def test_a_string_that_fits_is_not_split() -> None:
    context = assembled(60, Candidate("Returns\n\nThey are free.\n\nParcels leave at nine."))
    assert len(context.candidates) == 1
    assert context.report.notes == ()


def test_blank_lines_in_a_code_block_do_not_split() -> None:
    text = "Run this:\n\n```python\na = 1\n\nb = 2\n```\n\nThen stop."
    assert [*map(len, map(str.split, paragraphs(text)))] == [2, 8, 2]


def test_scores_that_rise_are_read_as_distances() -> None:
    """FAISS and L2 stores return distances, and the farthest passages were placed."""
    found = [Candidate(f"passage number {n}", 0.1 * n, id=str(n)) for n in range(1, 6)]
    context = assembled(15, *found)
    assert [one.id for one in context.candidates] == ["1", "2"]
    assert any("distances" in note for note in context.report.notes)


@pytest.mark.parametrize(
    "scores", [(0.1, 0.2), (0.5, 0.5, 0.5), (0.1, 0.5, 0.2), (-3.0, -2.0, -1.0)]
)
def test_other_scores_are_read_as_relevance(scores: tuple[float, ...]) -> None:
    found = [Candidate(f"passage number {n}", score) for n, score in enumerate(scores)]
    assert not any("distances" in note for note in assembled(50, *found).report.notes)


def test_the_reference_configuration_leaves_an_oversized_passage_out() -> None:
    builder = ContextBuilder(ContextConfig.reference())
    found = Gathered(candidates={"rag": (GIANT,)})
    assert builder.assemble_block("when?", found, budget=60).text == ""


@pytest.mark.parametrize("window", [200, 1000, 8000])
def test_a_small_window_serves_one_source(window: int) -> None:
    """The constructor refused a window of 1,000 tokens because of a source nobody gave."""
    builder = ContextBuilder(ContextConfig.for_window(window))
    rules = CallableSource("rag", lambda _query: [Candidate("Parcels leave at nine.", 0.9)])
    assert "Parcels leave" in builder.build("when?", sources=[rules])
