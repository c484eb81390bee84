"""Is what an agent needs next still there? Real runs, cut just before a tool call, tight budgets.

The runs are halved by a hash of their id: defaults were chosen on one half, both are shown. The
budget holds by our count, framing included, which is stricter than the measure's own.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data, json_lines
from benchmarks._harness import Table, at_least, peer
from benchmarks.measures import runs
from benchmarks.measures.tokens import messages_tokens
from muntin import TiktokenCounter, fit_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._harness import Cell

SHARES = (0.1, 0.25, 0.5)
GOALS = {0.1: 0.75, 0.25: 0.93, 0.5: 0.98}
SOUND = ("paired", "system", "question", "held")
CUTS = int(os.environ.get("MUNTIN_CUTS", "1"))
"""Places at which each run is cut."""


def run() -> list[Table]:
    """Measure ours and LangChain's on the runs."""
    if not has_data():
        absent = "not measured: benchmarks/data is not here"
        return [Table(title="Trajectories", columns=("measure",), rows=((absent,),))]
    counter = TiktokenCounter("o200k_base")

    def fit(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
        return fit_messages(messages, budget=budget, counter=counter).messages

    cases = list(runs.cases(json_lines("trajectories.dev.jsonl.gz"), shares=SHARES, cuts=CUTS))
    scores = [runs.score(case, fit) for case in cases]
    rows: list[tuple[Cell, ...]] = []
    for name, chosen in (("all", scores), *_halves(scores)):
        rows += [
            _row("muntin", name, share, [one for one in chosen if one.share == share])
            for share in SHARES
        ]
    if peer("langchain_core.messages") is not None:
        theirs = [runs.score(case, _trimmed) for case in cases]
        rows += [
            _row("LangChain trim_messages", "all", share, [o for o in theirs if o.share == share])
            for share in SHARES
        ]
    return [
        Table(
            title="Values an agent needs next, kept with their label in a result a provider takes",
            columns=(
                "function",
                "runs",
                "budget",
                "cases",
                "kept",
                "refused",
                "pairs / system / question / budget",
            ),
            rows=tuple(rows),
            notes=(f"Each run is cut at {CUTS} place(s).",),
        )
    ]


def _trimmed(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    from langchain_core.messages import (
        convert_to_messages,
        convert_to_openai_messages,
        trim_messages,
    )

    def sized(some: Any) -> int:
        return messages_tokens(convert_to_openai_messages(some))  # pyright: ignore[reportArgumentType] - a list

    trimmed = trim_messages(
        convert_to_messages(messages),
        max_tokens=budget,
        token_counter=sized,
        strategy="last",
        include_system=True,
    )
    return convert_to_openai_messages(trimmed)  # pyright: ignore[reportReturnType] - a list


def _halves(scores: Sequence[runs.Score]) -> list[tuple[str, list[runs.Score]]]:
    sides: tuple[list[runs.Score], list[runs.Score]] = ([], [])
    for one in scores:
        sides[int(hashlib.md5(one.run.encode()).hexdigest(), 16) % 2].append(one)
    return [("chosen on", sides[0]), ("the other half", sides[1])]


def _row(function: str, half: str, share: float, scores: Sequence[runs.Score]) -> tuple[Cell, ...]:
    done = [one for one in scores if not one.refused]
    kept = [one.kept for one in scores if one.kept is not None]
    value = round(sum(kept) / len(kept), 3)
    is_goal = function == "muntin" and half == "all"
    cell: Cell = at_least(value, GOALS[share]) if is_goal else value
    sound = " / ".join(
        f"{100 * sum(getattr(one, field) for one in done) / len(done):.0f} %" for field in SOUND
    )
    return function, half, f"{share:.0%}", len(scores), cell, len(scores) - len(done), sound
