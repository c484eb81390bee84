"""Are both passages of a two-step answer in the block? Real questions, small budgets, no vectors.

Weights were chosen on the questions of even number; the odd ones are shown beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data
from benchmarks._harness import Table, at_least
from benchmarks.measures import linked, two_steps
from benchmarks.measures.tokens import count
from muntin import Candidate, ContextBuilder, ContextConfig
from muntin.passages import Gathered

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks._harness import Cell

BUDGETS = (256, 384, 512, 768, 1024)
GOALS = {
    "titled": (0.59, 0.80, 0.88, 0.94, 0.957),
    "metadata": (0.59, 0.80, 0.88, 0.94, 0.957),
    "bare": (0.48, 0.66, 0.75, 0.85, 0.88),
}
ANSWER_BUDGETS = (128, 256, 512, 1024)
ANSWER_GOALS = (0.60, 0.76, 0.87, 0.93)
LINKED_BUDGETS = {
    "code": (512, 1024, 2048),
    "ids": (128, 256, 512),
    "three steps": (96, 160, 256),
    "German": (80, 160, 320),
    "Chinese": (80, 160, 320),
}
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("muntin", {}),
    ("muntin, links alone", {"coverage_weight": 0.0}),
    ("muntin, coverage alone", {"link_weight": 0.0}),
    ("muntin, neither", {"link_weight": 0.0, "coverage_weight": 0.0}),
    (
        "muntin, neither, mmr_lambda .5",
        {"link_weight": 0.0, "coverage_weight": 0.0, "mmr_lambda": 0.5},
    ),
)


def run() -> list[Table]:
    """Measure ours and naive greedy on the development questions."""
    if not has_data():
        return [
            Table(
                title="Both passages of a two-step answer",
                columns=("result",),
                rows=(("not measured: benchmarks/data is not here",),),
            ),
            _linked(),
        ]
    return [*(_table(titles) for titles in GOALS), _answers(), _linked()]


def _table(titles: str) -> Table:
    rows: list[tuple[Cell, ...]] = [
        _row("naive greedy", _shares(two_steps.greedy, titles), None),
        *(
            _row(
                name,
                _shares(_ours(**options), titles),
                GOALS[titles] if not options else None,
            )
            for name, options in WAYS
        ),
    ]
    return Table(
        title=f"Share of 140 two-step questions with both passages in the block ({titles})",
        columns=("assembler", *(f"{budget} tokens" for budget in BUDGETS), "odd questions only"),
        rows=tuple(rows),
        notes=(
            "titled: the text begins with its title; metadata: the title is metadata only; bare: "
            "no title anywhere, names come from first sentences.",
        ),
    )


def _answers() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, way, goals in (
        ("naive greedy", two_steps.greedy, None),
        ("muntin", _ours(), ANSWER_GOALS),
        ("muntin, no windows of sentences", _ours(windows=False), None),
    ):
        shares: list[tuple[float, float]] = []
        for budget in ANSWER_BUDGETS:
            found = two_steps.answers_placed(way, "titled", budget)
            shares.append((sum(found) / len(found), sum(found[1::2]) / len(found[1::2])))
        rows.append(_row(name, shares, goals))
    return Table(
        title="Share of two-step questions whose answer is in the block (titled)",
        columns=("assembler", *(f"{budget} tokens" for budget in ANSWER_BUDGETS), "odd only"),
        rows=tuple(rows),
        notes=("Questions that are answered by yes or no are left out.",),
    )


def _linked() -> Table:
    """Compare kinds of links: code, ids, chains of three, German and Chinese."""
    rows: list[tuple[Cell, ...]] = []
    for kind in linked.KINDS:
        for name, way in (
            ("naive greedy", two_steps.greedy),
            ("muntin", _ours()),
            ("muntin, neither links nor coverage", _ours(link_weight=0.0, coverage_weight=0.0)),
        ):
            shares: list[tuple[float, float]] = []
            for budget in LINKED_BUDGETS[kind]:
                found = linked.all_placed(way, kind, budget)
                shares.append((sum(found) / len(found), sum(found[1::2]) / len(found[1::2])))
            budgets = " ".join(map(str, LINKED_BUDGETS[kind]))
            rows.append((f"{kind} ({len(found)})", budgets, *_row(name, shares, None)))
    return Table(
        title="Share of made questions with all passages of a linked answer in the block",
        columns=(
            "links (questions)",
            "tokens",
            "assembler",
            "first",
            "second",
            "third",
            "odd only",
        ),
        rows=tuple(rows),
        notes=("Cases are made, so the shares compare assemblers and do not predict real ones.",),
    )


def _row(
    name: str, shares: list[tuple[float, float]], goals: tuple[float, ...] | None
) -> tuple[Cell, ...]:
    cells: list[Cell] = [
        at_least(round(every, 3), goals[at]) if goals else round(every, 3)
        for at, (every, _) in enumerate(shares)
    ]
    return (name, *cells, " ".join(f"{odd:.3f}" for _, odd in shares))


def _shares(assemble: Callable[..., Any], titles: str) -> list[tuple[float, float]]:
    """Return the share of all questions and of those of odd number, at each budget."""
    shares: list[tuple[float, float]] = []
    for budget in BUDGETS:
        found = two_steps.both_placed(assemble, titles, budget)
        shares.append((sum(found) / len(found), sum(found[1::2]) / len(found[1::2])))
    return shares


def _ours(**options: Any) -> Callable[..., tuple[str, list[str]]]:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1, **options), token_counter=count)

    def assemble(question: str, offered: list[Any], budget: int) -> tuple[str, list[str]]:
        candidates = tuple(
            Candidate(
                one["text"],
                float(one["score"]),
                id=one["id"],
                metadata={"title": one["title"]} if one["title"] else {},
            )
            for one in offered
        )
        context = builder.assemble_block(
            question, Gathered(candidates={"rag": candidates}), budget=budget
        )
        return context.text, [placed.id for placed in context.candidates]

    return assemble
