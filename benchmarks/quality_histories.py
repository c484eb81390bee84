"""Does the answer survive when a long conversation is cut and the question is known?

Real meetings, where the answer can be anywhere, and real chats, where it is a few lines back: one
setting has to serve both. Every turn is charged with four tokens of framing, which the measure
does not ask for.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data
from benchmarks._harness import Table, at_least
from benchmarks.measures import histories
from benchmarks.measures.histories import rendered
from benchmarks.measures.tokens import PER_MESSAGE, count, mean
from muntin import TiktokenCounter, fit_messages
from muntin.conversations import plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._harness import Cell
    from benchmarks.measures.histories import Compactor

__all__ = ("COLUMNS", "cases", "fitted", "halves", "rows_of", "run")

BUDGETS = (1024, 2048, 4096)
QUESTIONS = int(os.environ.get("MUNTIN_QUESTIONS", "3"))
"""Questions asked of each conversation."""
MEASURES = (("meeting", "words"), ("meeting", "turns"), ("irc", "turns"))
GOALS = {
    ("meeting", "words"): (0.66, 0.82, 0.90),
    ("meeting", "turns"): (0.22, 0.40, 0.57),
    ("irc", "turns"): (0.86, 0.98, 1.00),
}

COLUMNS = (
    "kept by",
    "conversations",
    "budget",
    *("meeting words", "meeting turns", "chat turns"),
    "held",
)


def run() -> list[Table]:
    """Measure ours and two simple ways on the conversations."""
    if not has_data():
        absent = "not measured: benchmarks/data is not here"
        return [Table(title="Histories", columns=("measure",), rows=((absent,),))]
    rows: list[tuple[Cell, ...]] = []
    for name, compact in (("recall.plan", _planned()), ("fit_messages", fitted())):
        scores = [histories.score(case, compact, known=True) for case in cases()]
        rows += rows_of(name, "all", scores, GOALS if name == "recall.plan" else None)
        for half, some in halves(scores):
            rows += rows_of(name, half, some)
    simple: list[tuple[str, Compactor]] = [
        ("newest turns", histories.newest),
        ("half newest turns, half BM25", histories.half_newest),
    ]
    for name, compact in simple:
        scores = [histories.score(case, compact, known=True) for case in cases()]
        rows += rows_of(name, "all", scores)
    return [
        Table(
            title="Evidence left when the question is known",
            columns=COLUMNS,
            rows=tuple(rows),
            notes=(
                "Words: those of the answer that are in the evidence. Turns: those that are the "
                "evidence. Held: outputs within the budget.",
                f"{QUESTIONS} questions a conversation.",
            ),
        )
    ]


def cases() -> tuple[histories.Case, ...]:
    """Return the cases, made once."""
    return histories.cases(BUDGETS, QUESTIONS)


def _planned() -> Compactor:
    def keep(
        turns: list[dict[str, Any]], budget: int, question: str | None
    ) -> list[dict[str, Any]]:
        texts = [rendered(turn) for turn in turns]
        costs = [count(text) + PER_MESSAGE for text in texts]
        kept = plan(texts, question, max_tokens=budget, costs=costs).kept
        return [{"role": turns[at]["role"], "content": texts[at]} for at in kept]

    return keep


def fitted() -> Compactor:
    """Keep what `fit_messages` keeps."""
    counter = TiktokenCounter("o200k_base")

    def keep(
        turns: list[dict[str, Any]], budget: int, question: str | None
    ) -> list[dict[str, Any]]:
        messages = [{"role": turn["role"], "content": rendered(turn)} for turn in turns]
        return fit_messages(messages, budget=budget, question=question, counter=counter).messages

    return keep


def halves(scores: Sequence[histories.Score]) -> list[tuple[str, list[histories.Score]]]:
    """Halve scores by a hash of the conversation they come from."""
    sides: tuple[list[histories.Score], list[histories.Score]] = ([], [])
    for one in scores:
        digest = hashlib.sha256(one.conversation.encode()).hexdigest()
        sides[int(digest, 16) % 2].append(one)
    return [("first half", sides[0]), ("second half", sides[1])]


def rows_of(
    name: str,
    half: str,
    scores: Sequence[histories.Score],
    goals: dict[tuple[str, str], tuple[float, ...]] | None = None,
) -> list[tuple[Cell, ...]]:
    """Write one row a budget."""
    rows: list[tuple[Cell, ...]] = []
    for at, budget in enumerate(BUDGETS):
        some = [one for one in scores if one.budget == budget]
        means = [
            mean(getattr(one, measure) for one in some if one.kind == kind)
            for kind, measure in MEASURES
        ]
        cells: list[Cell] = [round(value, 3) for value in means]
        if goals:
            limits = [goals[measure][at] for measure in MEASURES]
            cells = [at_least(*pair) for pair in zip(means, limits, strict=True)]
        held = sum(one.held for one in some) / len(some)
        rows.append((name, half, budget, *cells, f"{held:.0%}"))
    return rows
