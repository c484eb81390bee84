"""Does what an agent needs next survive? Real runs, cut just before a tool call, at tight budgets.

The yardstick is not ours and lies outside the repository; where it is absent this part says so.
Its runs are halved by a hash of their id: defaults were chosen on one half, both are shown. The
budget holds by our count, framing included, which is stricter than the yardstick's own.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from benchmarks._data import SHARED, json_lines, yardstick
from benchmarks._harness import Table, at_least
from muntin import TiktokenCounter, fit_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._harness import Cell

SHARES = (0.1, 0.25, 0.5)
GOALS = {0.1: 0.75, 0.25: 0.93, 0.5: 0.98}
SOUND = ("pair", "sys", "q", "held")
CUTS = int(os.environ.get("MUNTIN_CUTS", "1"))
"""Places at which each run is cut; 1 is what the yardstick's own table uses."""


def run() -> list[Table]:
    """Measure ours on the development runs."""
    if not (SHARED / "eval" / "eval_traj.py").exists():
        absent = "not measured: set MUNTIN_SHARED to the folder that holds eval/"
        return [Table(title="Trajectories", columns=("measure",), rows=((absent,),))]
    yard: Any = yardstick("eval_traj")
    counter = TiktokenCounter("o200k_base")

    def fit(messages: list[dict[str, Any]], budget: int, case: object) -> list[dict[str, Any]]:
        del case  # what the yardstick knows about the future is not ours to look at
        return fit_messages(messages, budget=budget, counter=counter).messages

    runs = list(json_lines("trajectories.dev.jsonl.gz"))
    scores = [yard.score(case, fit) for case in yard.cases(runs, cuts=CUTS)]
    rows: list[tuple[Cell, ...]] = []
    for name, chosen in (("all", scores), *_halves(scores)):
        rows += [_row(name, share, [one for one in chosen if one["frac"] == share])
                 for share in SHARES]  # fmt: skip
    return [
        Table(
            title="Values an agent needs next, kept with their label in a result a provider takes",
            columns=(
                "runs",
                "budget",
                "cases",
                "kept",
                "raised",
                "pairs / system / question / budget",
            ),
            rows=tuple(rows),
            notes=(f"Each run is cut at {CUTS} place(s).",),
        )
    ]


def _halves(scores: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for one in scores:
        sides[int(hashlib.md5(one["tr"].encode()).hexdigest(), 16) % 2].append(one)
    return [("chosen on", sides[0]), ("the other half", sides[1])]


def _row(name: str, share: float, scores: Sequence[dict[str, Any]]) -> tuple[Cell, ...]:
    done = [one for one in scores if not one["raised"]]
    kept = [
        one["lab_next"] if not one["raised"] and one["ok_all"] else 0.0
        for one in scores
        if one["lab_next"] is not None
    ]
    value = sum(kept) / len(kept)
    cell: Cell = at_least(value, GOALS[share]) if name == "all" else f"{value:.3f}"
    sound = " / ".join(f"{100 * sum(one[key] for one in done) / len(done):.0f} %" for key in SOUND)
    return name, f"{share:.0%}", len(scores), cell, len(scores) - len(done), sound
