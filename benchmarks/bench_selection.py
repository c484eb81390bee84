"""Selection: maximal marginal relevance against LangChain's and agentmaker's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._harness import Table, at_least, at_most, compare, growth, peer, seconds
from muntin import Candidate, mmr_select

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks._harness import Cell

_SHAPES = ((1000, 384, 20, 30.0), (1000, 1536, 20, 15.0), (1000, 384, 1000, 100.0))
"""Candidates, dimension, how many to pick, and how many times faster than LangChain to be."""


def run() -> list[Table]:
    """Measure all of it."""
    return [_against_langchain(), _against_agentmaker(), _scaling()]


def _pool(n: int, d: int) -> tuple[NDArray[np.float32], list[Candidate]]:
    draw = np.random.default_rng(n + d)
    rows = draw.normal(size=(n, d)).astype(np.float32)
    scores = draw.random(n)
    return rows, [
        Candidate(str(at), float(score), embedding=row)
        for at, (row, score) in enumerate(zip(rows, scores, strict=True))
    ]


def _against_langchain() -> Table:
    utils: Any = peer("langchain_core.vectorstores.utils")
    rows: list[tuple[Cell, ...]] = []
    for n, d, k, goal in _SHAPES:
        vectors, pool = _pool(n, d)
        listed = list(vectors)
        gemm = compare(lambda v=vectors: v @ v.T, lambda p=pool, k=k: mmr_select(p, top_k=k))
        cost: Cell = at_most(gemm.times_faster, 3.0, "x") if k == n else gemm.times_faster
        faster: Cell = None
        if utils is not None:
            found = compare(
                lambda p=pool, k=k: mmr_select(p, top_k=k),
                lambda v=vectors, rows=listed, k=k: utils.maximal_marginal_relevance(
                    v[0], rows, lambda_mult=0.7, k=k
                ),
                rounds=7 if k < n else 3,
                patience=30,
            )
            faster = at_least(found.times_faster, goal, "x")
        rows.append((n, d, k, faster, cost))
    return Table(
        title="Maximal marginal relevance against LangChain",
        columns=("candidates", "dimension", "picks", "times faster", "times one n x n x d product"),
        rows=tuple(rows),
        notes=(
            "LangChain gets a list of float32 arrays, its faster form; ours starts from "
            "`Candidate` objects and also drops duplicates.",
        ),
    )


def _against_agentmaker() -> Table:
    agentmaker: Any = peer("agentmaker")
    _, pool = _pool(1000, 384)
    faster: Cell = None
    if agentmaker is not None:
        theirs = [
            agentmaker.RetrievalResult(
                content=c.content,
                score=c.score,
                source="rag",
                embedding=np.asarray(c.embedding).tolist(),
            )
            for c in pool
        ]
        found = compare(
            lambda: mmr_select(pool, top_k=20),
            lambda: agentmaker.mmr_select(theirs, top_k=20),
            rounds=3,
        )
        faster = at_least(found.times_faster, 500.0, "x")
    return Table(
        title="Maximal marginal relevance against agentmaker",
        columns=("candidates", "dimension", "picks", "times faster"),
        rows=((1000, 384, 20, faster),),
    )


def _scaling() -> Table:
    def picking(dimension: int, top_k: int | None) -> Callable[[int], Callable[[], object]]:
        def make(n: int) -> Callable[[], object]:
            pool = _pool(n, dimension)[1]
            return lambda: mmr_select(pool, top_k=top_k)

        return make

    sizes = (250, 500, 1000, 2000, 3000)
    few, every = growth(picking(384, 20), sizes), growth(picking(64, None), sizes)
    largest = seconds(picking(384, None)(3000))
    return Table(
        title="Growth of selection up to 3,000 candidates",
        columns=("picks", "exponent", "seconds at 3,000 x 384, all picked"),
        rows=(("20", at_most(few, 1.3), None), ("all", at_most(every, 2.2), largest)),
        notes=("Picking all is quadratic by nature: every pair is compared once.",),
    )
