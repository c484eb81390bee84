"""What selection and placement do with a text that lies inside another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from muntin import (
    CallableSource,
    Candidate,
    ConfigurationError,
    ContextBuilder,
    ContextConfig,
    count_tokens,
    mmr_select,
    select,
)
from muntin.passages.selecting.numerals import Numerals
from muntin.passages.selecting.similarity import unit_rows

if TYPE_CHECKING:
    from muntin.passages.assembled import AssembledContext

NOTE = "the refund of order 17 was sent on the third of May"
PASSAGE = f"""{NOTE}, after two reminders from the customer, who had waited for it since the end of
January; the bank confirmed on the ninth that it had arrived, and the ticket was closed by Ada."""
GIANT = PASSAGE + " ".join(f"line{n} of the export" for n in range(2000))


def assembled(found: dict[str, list[Candidate]], budget: int) -> AssembledContext:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1))

    def source(name: str) -> CallableSource:
        return CallableSource(name, lambda _query: found[name])

    return builder.assemble("q", sources=[source(name) for name in found], budget=budget)


@pytest.mark.parametrize("same_vector", [False, True])
def test_a_short_note_does_not_push_out_the_passage_that_holds_it(*, same_vector: bool) -> None:
    """A note cut from a passage scored better, and the passage went as its duplicate."""
    vector = (1.0, 0.0) if same_vector else None
    found = [Candidate(NOTE, 0.9, embedding=vector), Candidate(PASSAGE, 0.5, embedding=vector)]
    chosen = select(found)
    assert chosen.kept == (found[1],)
    assert chosen.scores == (0.7,)  # lambda times 1: it stands where the note would have stood
    assert [(d.index, d.reason, d.nearest) for d in chosen.dropped] == [(0, "near_duplicate", 1)]
    assert chosen.holders == {0: 1}


def test_a_part_of_what_is_kept_is_a_duplicate() -> None:
    chosen = select([Candidate(PASSAGE, 0.9), Candidate(NOTE, 0.5)])
    assert chosen.indices == (0,)


def test_a_pinned_note_stays_beside_the_passage_that_holds_it() -> None:
    """Neither may go: the one is the user's rule, the other tells more."""
    chosen = select([Candidate(NOTE, 0.9, pinned=True), Candidate(PASSAGE, 0.5)])
    assert chosen.indices == (0, 1)


def test_nested_texts_leave_the_widest() -> None:
    widest = PASSAGE + " ".join(f"word{n}" for n in range(200))
    chosen = select([Candidate(NOTE, 0.9), Candidate(PASSAGE, 0.8), Candidate(widest, 0.1)])
    assert chosen.indices == (2,)
    assert {d.nearest for d in chosen.dropped} == {2}


def test_parts_held_by_another_do_not_count_towards_top_k() -> None:
    found = [Candidate(NOTE, 0.9), Candidate(PASSAGE, 0.8), Candidate("something else", 0.1)]
    assert select(found, top_k=2).indices == (1, 2)


def test_a_document_too_large_for_the_page_silences_no_part_of_it() -> None:
    """A whole file beside its own chunks must not leave the page empty."""
    context = assembled({"rag": [Candidate(NOTE, 0.9, id="note"), Candidate(GIANT, 0.8)]}, 200)
    assert [c.id for c in context.candidates] == ["note"]
    assert {d.reason for d in context.report.decisions} == {"placed", "near_duplicate"}


def test_a_shorter_copy_stands_in_where_the_better_one_finds_no_room() -> None:
    """Dropped "as a copy of one that was kept" while that one was not kept is a lost passage."""
    words = [f"word{n}" for n in range(100)]
    long, short = Candidate(" ".join(words), 0.9), Candidate(" ".join(words[:85]), 0.8)
    other = Candidate("Opening hours are nine to five.", 1.0)
    budget = count_tokens(short.content) + count_tokens(other.content) + 25
    assert count_tokens(long.content) + count_tokens(other.content) > budget
    context = assembled({"rag": [other, long, short]}, budget)
    assert {c.score for c in context.candidates} == {1.0, 0.8}
    assert context.report.idle >= 0
    roomy = assembled({"rag": [other, long, short]}, 4 * budget)
    assert {c.score for c in roomy.candidates} == {1.0, 0.9}


def test_of_many_copies_one_stands_in() -> None:
    words = [f"word{n}" for n in range(100)]
    copies = [Candidate(" ".join(words[:n]), n / 200) for n in (80, 84, 88)]
    context = assembled({"rag": [Candidate(" ".join(words) + "." * 3000, 0.9), *copies]}, 600)
    assert len(context.candidates) == 1


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param([1.0], id="ragged"),
        pytest.param([1.0, float("nan")], id="not finite"),
        pytest.param([1.0, "x"], id="no number"),
        pytest.param([1.0, None], id="missing number"),
        pytest.param([1.0, [2.0]], id="nested"),
        pytest.param([1.0, 10**400], id="beyond any float"),
        pytest.param((1, 1), id="a tuple of integers"),
        pytest.param([np.float32(1), np.float64(1)], id="numpy numbers"),
        pytest.param(np.array([1.0, 1.0], dtype=np.float16), id="half precision"),
        pytest.param(b"\x01\x01", id="bytes"),
    ],
)
def test_one_odd_vector_changes_nothing_for_the_others(odd: object) -> None:
    """The quick way to read lists must not read what the slow one refuses, nor the reverse."""
    lists = [[1.0, 0.0], [0.6, 0.8], odd]
    groups, ignored = unit_rows(lists)  # pyright: ignore[reportArgumentType] - wrong on purpose
    arrays = [np.array([1.0, 0.0]), np.array([0.6, 0.8]), odd]
    expected, expected_ignored = unit_rows(arrays)  # pyright: ignore[reportArgumentType] - wrong on purpose
    assert ignored == expected_ignored
    for (members, rows), (wanted, wanted_rows) in zip(groups, expected, strict=True):
        assert members.tolist() == wanted.tolist()
        assert np.allclose(rows, wanted_rows)


def form(number: int, total: int) -> str:
    return (
        f"The invoice with the number {number} was sent to the customer by post on a Monday, its "
        f"total is {total} euros, it is due within thirty days, and nobody has complained so far."
    )


def test_records_of_one_form_are_no_duplicates() -> None:
    """Two invoices share nine words of ten; dropping one loses what the reader looks for."""
    found = [Candidate(form(number, 40 + number), 0.9, embedding=(1.0, 0.0)) for number in range(9)]
    assert len(select(found).kept) == 9
    assert len(select([Candidate(c.content) for c in found]).kept) == 9
    assert len(select(found, similarity="embedding").kept) == 1  # vectors alone cannot tell


def test_a_number_written_out_makes_no_other_text() -> None:
    text = form(17, 40)
    assert len(select([Candidate(text), Candidate(text.replace("thirty", "30"))]).kept) == 1


def test_windows_full_of_numbers_are_duplicates_all_the_same() -> None:
    """B98: each window has numbers of its own at its ends."""
    draw = np.random.default_rng(5)
    lines = [
        " ".join([*(f"word{n}" for n in draw.integers(10_000, size=9)), f"{at + 7}."])
        for at in range(9)
    ]
    windows = [Candidate(" ".join(lines[at : at + 5]), 1 - at / 10) for at in range(2)]
    assert select(windows).indices == (0,)


def test_a_thousand_records_of_one_form_take_no_longer_than_a_row_each() -> None:
    """What is compared word by word is bounded, or a log of one form takes minutes."""
    numerals = Numerals([form(number, 1000 + number) for number in range(200)])
    assert all(numerals.differ(one, other) for one in range(100) for other in range(100, 200))
    assert max(numerals._proved) == 8  # pyright: ignore[reportPrivateUsage] - the bound itself


def test_objects_of_other_libraries_are_read_as_candidates() -> None:
    """Results of agentmaker have the same fields and no `pinned`."""

    class Found:
        def __init__(self, content: str, score: float, embedding: list[float]) -> None:
            self.content = content
            self.score = score
            self.embedding = embedding
            self.source = "rag"

    found: list[Any] = [Found("Depot seven.", 0.9, [1, 0]), Found("Depot eight.", 0.5, [0, 1])]

    assert [one.content for one in mmr_select(found)] == ["Depot seven.", "Depot eight."]
    assert [one.source for one in select(found).kept] == ["rag", "rag"]
    with pytest.raises(ConfigurationError, match="a text and a score"):
        select(cast("Any", [object()]))
