"""Selection against a plain implementation of its formula, and its laws."""

from __future__ import annotations

import itertools
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muntin import Candidate, mmr_select, select
from muntin.passages import given_among
from strategies import candidates, text, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

pools = st.lists(candidates(), max_size=10)
lambdas = st.sampled_from([0.0, 0.3, 0.7, 1.0])


def plainly(pool: Sequence[Candidate], lambda_: float, threshold: float) -> list[int]:
    """Do what the formula says, one pair at a time: the documentation that runs."""
    relevance = [1.0 if c.score is None else c.score for c in pool]
    low, high = min(relevance, default=0.0), max(relevance, default=0.0)
    if low == high:
        relevance = [1.0] * len(pool)
    elif low >= 0:
        relevance = [r / high for r in relevance]
    else:
        relevance = [(r - low) / (high - low) for r in relevance]
    chosen: list[int] = []
    left = list(range(len(pool)))
    while left:
        nearest = {i: max((cosine(pool[i], pool[j]) for j in chosen), default=0.0) for i in left}
        if chosen:
            left = [i for i in left if nearest[i] < threshold - 1e-6]
        if not left:
            break
        best = max(left, key=lambda i: lambda_ * relevance[i] - (1 - lambda_) * nearest[i])
        chosen.append(best)
        left.remove(best)
    return chosen


def cosine(a: Candidate, b: Candidate) -> float:
    left = [] if a.embedding is None else [float(x) for x in a.embedding]
    right = [] if b.embedding is None else [float(x) for x in b.embedding]
    norms = math.hypot(*left) * math.hypot(*right) if left and right else 0.0
    if len(left) != len(right) or norms == 0:
        return 0.0
    return sum(x * y for x, y in zip(left, right, strict=True)) / norms


grid = st.tuples(*[st.integers(-3, 3).map(float)] * 3)


@given(
    embeddings=st.lists(st.none() | grid, max_size=9),
    scores=st.lists(st.integers(0, 8), min_size=9, max_size=9),
    lambda_=lambdas,
    threshold=st.sampled_from([0.5, 0.95, 1.01]),
)
def test_it_agrees_with_the_formula(
    embeddings: list[tuple[float, ...] | None],
    scores: list[int],
    lambda_: float,
    threshold: float,
) -> None:
    """A fast selection that differs from its paper is another algorithm under its name."""
    pool = [
        Candidate(str(i), score / 8, embedding=embedding)
        for i, (score, embedding) in enumerate(zip(scores, embeddings, strict=False))
    ]
    ours = mmr_select(pool, lambda_=lambda_, dedup_threshold=threshold)
    values = _course(pool, plainly(pool, lambda_, threshold), lambda_)
    assert _course(pool, [int(c.content) for c in ours], lambda_) == pytest.approx(values)


def _course(pool: Sequence[Candidate], order: list[int], lambda_: float) -> list[float]:
    """Say what each pick was worth, so that exact ties may fall either way."""
    top = max((c.score or 0.0 for c in pool), default=0.0)
    low = min((c.score or 0.0 for c in pool), default=0.0)
    worth: list[float] = []
    for place, index in enumerate(order):
        near = max((cosine(pool[index], pool[j]) for j in order[:place]), default=0.0)
        relevance = 1.0 if top == low else (pool[index].score or 0.0) / top
        worth.append(lambda_ * relevance - (1 - lambda_) * near)
    return worth


@given(pool=pools, lambda_=lambdas, top_k=st.none() | st.integers(0, 6))
def test_every_candidate_is_kept_or_dropped_with_a_reason(
    pool: list[Candidate], lambda_: float, top_k: int | None
) -> None:
    """What selection forgets, no report can explain."""
    chosen = select(pool, lambda_=lambda_, top_k=top_k)
    assert sorted([*chosen.indices, *(d.index for d in chosen.dropped)]) == list(range(len(pool)))
    assert all(pool[i] is c for i, c in zip(chosen.indices, chosen.kept, strict=True))
    for dropped in chosen.dropped:
        if dropped.reason != "beyond_top_k":
            assert dropped.nearest in chosen.indices
            assert dropped.similarity is not None
            assert dropped.similarity <= 1


@given(pool=pools)
@example(pool=[Candidate("", 0.0), Candidate(" ", -1.0), Candidate("a", 1e-176)])  # a tie, scaled
def test_pure_relevance_is_the_order_of_the_scores(pool: list[Candidate]) -> None:
    """Scores closer than rounding on their common scale are ties, which the earliest wins."""
    chosen = select(pool, lambda_=1, dedup_threshold=1.01)
    scores = [c.score for c in chosen.kept if c.score is not None]
    if len(scores) == len(chosen.kept):
        rounding = 4 * sys.float_info.epsilon * max(map(abs, scores), default=0.0)
        for better, worse in itertools.pairwise(scores):
            assert better >= worse - rounding


@given(pool=pools, at=st.integers(0, 9))
def test_a_pinned_candidate_is_always_selected(pool: list[Candidate], at: int) -> None:
    """A rule the user pinned must not go as somebody's near-duplicate."""
    pinned = [
        Candidate(c.content, c.score, embedding=c.embedding, pinned=i == at)
        for i, c in enumerate(pool)
    ]
    for top_k in (None, 0, 1):
        chosen = select(pinned, top_k=top_k)
        assert all(c in chosen.kept for c in pinned if c.pinned)


@given(content=text, tail=text)
def test_a_copy_is_found_without_vectors(content: str, tail: str) -> None:
    """D-27: most stores return no vectors, and then every copy was kept."""
    from muntin.text.lexical import words

    if len(words(content)) < 8 or len(words(tail)) > 1:
        return
    chosen = select([Candidate(content), Candidate(f"{content} {tail}")], similarity="auto")
    assert len(chosen.kept) == 1


def test_overlapping_windows_are_duplicates() -> None:
    """Chunks that share four fifths of their text are one chunk to the reader."""
    draw = np.random.default_rng(3)
    sentences = [" ".join(f"w{draw.integers(10_000)}" for _ in range(12)) + "." for _ in range(30)]
    windows = [Candidate(" ".join(sentences[at : at + 5]), 1 - at / 100) for at in range(3)]
    chosen = select(windows)
    assert [windows.index(c) for c in chosen.kept] == [0, 2]  # the third shares three fifths
    apart = [Candidate(" ".join(sentences[at : at + 5])) for at in (0, 5, 10)]
    assert len(select(apart).kept) == 3


@given(pool=st.lists(vectors(dimension=3), min_size=1, max_size=8), k=st.integers(1, 8))
def test_it_agrees_with_langchain_on_shared_ground(pool: list[tuple[float, ...]], k: int) -> None:
    """Where scores are the cosines to the question, both say the same."""
    utils = pytest.importorskip("langchain_core.vectorstores.utils")
    question = np.array([1.0, 2.0, 3.0])
    rows = [np.array(v) for v in pool if any(v)]
    if not rows or min(np.linalg.norm(row) for row in rows) < 1e-3:
        return
    picked = utils.maximal_marginal_relevance(question, rows, lambda_mult=0.5, k=k)
    worth = [float(question @ row / np.linalg.norm(row) / np.linalg.norm(question)) for row in rows]
    found = [Candidate(str(i), embedding=row) for i, row in enumerate(rows)]
    ours = select(
        found, lambda_=0.5, top_k=k, dedup_threshold=1.01, similarity="embedding", relevance=worth
    )

    def course(order: Sequence[int]) -> list[float]:
        return [
            0.5 * worth[i] - 0.5 * max((cosine(found[i], found[j]) for j in order[:n]), default=0)
            for n, i in enumerate(order)
        ]

    assert course(ours.indices) == pytest.approx(course(picked), abs=1e-5)


@given(st.integers(0, 2**32 - 1), st.floats(0.8, 3.0), st.integers(10, 40), st.floats(0.0, 0.2))
def test_vectors_that_share_a_direction_have_the_same_duplicates(
    seed: int, length: float, count: int, noise: float
) -> None:
    """Models whose cosines all lie between .7 and 1 made different passages duplicates."""
    drawn = np.random.default_rng(seed)
    rows = drawn.normal(size=(count, 48))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    copies = rows[: count // 5] + noise * 0.3 * drawn.normal(size=(count // 5, 48)) / 7
    texts = [" ".join(f"w{n}x{k}" for k in range(6)) for n in range(count + len(copies))]
    plain = np.concatenate([rows, copies])
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    shifted = np.column_stack([plain, np.full(len(plain), length)])

    def duplicates(vectors: Any) -> set[int]:
        chosen = select(
            [
                Candidate(text, 1 - n / 100, embedding=vector)
                for n, (text, vector) in enumerate(zip(texts, vectors, strict=True))
            ],
            lambda_=1.0,
        )
        return {one.index for one in chosen.dropped}

    expected = set(range(count, count + len(copies)))

    assert duplicates(plain) == expected
    assert duplicates(shifted) == expected


@given(
    st.lists(
        st.sampled_from([f"word{n}" for n in range(400)]), min_size=6, max_size=60, unique=True
    ),
    text,
    text,
    st.sampled_from(["{}", "- {}\n", '"{}"', "> {}", "[Knowledge]\n- {}\n\n[Tool]"]),
)
def test_what_a_text_holds_is_given_and_what_it_holds_half_of_is_not(
    said: list[str], before: str, after: str, frame: str
) -> None:
    """A passage that is sent twice costs twice; one that is wrongly left out costs the answer."""
    whole, half = " ".join(said), " ".join(said[: len(said) // 2])

    assert given_among([whole], [f"{before} {frame.format(whole)} {after}"]) == [True]
    assert given_among([whole], [frame.format(half)]) == [False]
    assert given_among([whole], [frame.format(" ".join(reversed(said)))]) == [False]
