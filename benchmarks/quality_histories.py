"""Does the answer survive when a long conversation is cut and the question is known?

Real meetings, where the answer stands anywhere, and real chat, where it stands a few lines back:
one setting has to serve both. The yardstick is not ours and lies outside the repository; where it
is absent this part says so. Every turn is charged with four tokens of framing, which the yardstick
does not ask for.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks._data import SHARED, json_lines, yardstick
from benchmarks._harness import Table, at_least
from muntin import TiktokenCounter, fit_messages
from muntin.conversations import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks._harness import Cell

__all__ = ("COLUMNS", "Compactor", "cases", "fitted", "halves", "present", "rows_of", "run")

BUDGETS = (1024, 2048, 4096)
QUESTIONS = int(os.environ.get("MUNTIN_QUESTIONS", "3"))
"""Questions asked of each conversation; 3 is what the yardstick's own table uses."""
FRAMING = 4
MEASURES = (("meeting", "ans"), ("meeting", "ev"), ("irc", "ev"))
GOALS = {
    ("meeting", "ans"): (0.66, 0.82, 0.90),
    ("meeting", "ev"): (0.22, 0.40, 0.57),
    ("irc", "ev"): (0.86, 0.98, 1.00),
}

COLUMNS = (
    "kept by",
    "conversations",
    "budget",
    *("meeting words", "meeting turns", "chat turns"),
    "held",
)

Compactor: TypeAlias = "Callable[[list[dict[str, Any]], int, str | None], Any]"


def run() -> list[Table]:
    """Measure ours and the yardstick's peers on the development conversations."""
    if not present():
        absent = "not measured: set MUNTIN_SHARED to the folder that holds eval/"
        return [Table(title="Histories", columns=("measure",), rows=((absent,),))]
    yard: Any = yardstick("eval_hist")
    rows: list[tuple[Cell, ...]] = []
    known = True
    ours: dict[str, Compactor] = {"recall.plan": _planned(yard), "fit_messages": fitted(yard)}
    for name, compactor in ours.items():
        scores = [yard.score(case, compactor, known) for case in cases()]
        rows += rows_of(name, "all", scores, GOALS if name == "recall.plan" else None)
        for half, some in halves(scores):
            rows += rows_of(name, half, some)
    for name in ("tail", "ref_half", "ref_aware15"):
        scores = [yard.score(case, getattr(yard, name), known) for case in cases()]
        rows += rows_of(f"yardstick's {name}", "all", scores)
    return [
        Table(
            title="Evidence left when the question is known",
            columns=COLUMNS,
            rows=tuple(rows),
            notes=(
                "Words: those of the answer that stood in the evidence. Turns: those that are the "
                "evidence. Held: outputs within the budget.",
                f"{QUESTIONS} questions a conversation.",
            ),
        )
    ]


def present() -> bool:
    """Say whether the yardstick is here."""
    return (SHARED / "eval" / "eval_hist.py").exists()


@lru_cache(maxsize=1)
def cases() -> tuple[dict[str, Any], ...]:
    """Return the cases of the yardstick, made once."""
    yard: Any = yardstick("eval_hist")
    conversations = list(json_lines("conversations.dev.jsonl.gz"))
    return tuple(yard.cases(conversations, BUDGETS, QUESTIONS))


def _planned(yard: Any) -> Compactor:
    count = lru_cache(maxsize=None)(TiktokenCounter("o200k_base"))

    def keep(
        turns: list[dict[str, Any]], budget: int, question: str | None
    ) -> list[dict[str, str]]:
        texts = [yard.render(turn) for turn in turns]
        costs = [count(text) + FRAMING for text in texts]
        kept = plan(texts, question, max_tokens=budget, costs=costs).kept
        return [{"role": turns[at]["role"], "content": texts[at]} for at in kept]

    return keep


def fitted(yard: Any) -> Compactor:
    """Keep what `fit_messages` keeps."""
    counter = TiktokenCounter("o200k_base")

    def keep(
        turns: list[dict[str, Any]], budget: int, question: str | None
    ) -> list[dict[str, Any]]:
        messages = [{"role": turn["role"], "content": yard.render(turn)} for turn in turns]
        return fit_messages(messages, budget=budget, question=question, counter=counter).messages

    return keep


def halves(scores: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Halve scores by a hash of the conversation they come from."""
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for one in scores:
        sides[int(hashlib.sha256(one["id"].encode()).hexdigest(), 16) % 2].append(one)
    return [("first half", sides[0]), ("second half", sides[1])]


def mean_of(scores: Sequence[dict[str, Any]], kind: str, measure: str) -> float:
    """Average a measure over the scores of one kind that have it."""
    values = [one[measure] for one in scores if one["kind"] == kind and one[measure] is not None]
    return sum(values) / len(values)


def rows_of(
    name: str,
    half: str,
    scores: Sequence[dict[str, Any]],
    goals: dict[tuple[str, str], tuple[float, ...]] | None = None,
) -> list[tuple[Cell, ...]]:
    """Write one row a budget."""
    rows: list[tuple[Cell, ...]] = []
    for at, budget in enumerate(BUDGETS):
        some = [one for one in scores if one["budget"] == budget]
        means = [mean_of(some, kind, measure) for kind, measure in MEASURES]
        cells: list[Cell] = [f"{mean:.3f}" for mean in means]
        if goals:
            limits = [goals[measure][at] for measure in MEASURES]
            cells = [at_least(*pair) for pair in zip(means, limits, strict=True)]
        held = sum(one["held"] or 0 for one in some) / len(some)
        rows.append((name, half, budget, *cells, f"{held:.0%}"))
    return rows
