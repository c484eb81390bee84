"""What all parts measure with: interleaved timing, growth, tables, and peers that may be absent.

Seconds depend on the machine and on who else is using it; ratios of two things timed in turns
hardly do. So every speed here is a ratio to something timed in the same minute, and the spread of
the rounds stands beside it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import math
import os
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

__all__ = (
    "Comparison",
    "Goal",
    "Table",
    "at_least",
    "at_most",
    "compare",
    "exponent",
    "growth",
    "machine",
    "peer",
    "seconds",
    "versions",
)

PACKAGES = (
    "muntin",
    "numpy",
    "pydantic",
    "tiktoken",
    "agentfit-py",
    "agentmaker",
    "chatcram",
    "compaction-conformance-kit",
    "langchain",
    "langchain-core",
    "langgraph",
    "langmem",
    "litellm",
    "llama-index-core",
    "rank-bm25",
)

# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A measured number beside the number to reach."""

    value: float
    limit: float
    least: bool
    """Whether `limit` is a floor; a ceiling otherwise."""
    unit: str = ""

    @property
    def reached(self) -> bool:
        """Whether the value is on the right side of the limit."""
        return self.value >= self.limit if self.least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        mark = "reached" if self.reached else "**missed**"
        return f"{_number(self.value)}{self.unit} ({sign} {_number(self.limit)}{self.unit}: {mark})"


def at_least(value: float, limit: float, unit: str = "") -> Goal:
    """State a value that should be `limit` or more."""
    return Goal(value=value, limit=limit, least=True, unit=unit)


def at_most(value: float, limit: float, unit: str = "") -> Goal:
    """State a value that should be `limit` or less."""
    return Goal(value=value, limit=limit, least=False, unit=unit)


Cell = str | int | float | Goal | None
"""What a table holds; `None` reads "not measured"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of results, as a part's `run()` returns them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences below the table: what was measured, what was left out and why."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: a row of {len(row)} cells under "
                    f"{len(self.columns)} columns: {row}"
                )

    @property
    def missed(self) -> tuple[Goal, ...]:
        """The goals of this table that were not reached."""
        cells = (cell for row in self.rows for cell in row)
        return tuple(cell for cell in cells if isinstance(cell, Goal) and not cell.reached)

    def markdown(self) -> str:
        """Render the table for `results.md`."""
        lines = [f"### {self.title}", "", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row([_text(cell) for cell in row]) for row in self.rows]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, object]:
        """Return the table as JSON-ready data; goals become value, limit and whether reached."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
            "notes": list(self.notes),
        }


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return _number(cell)
    return str(cell).replace("|", "\\|").replace("\n", " ")


def _number(value: float) -> str:
    if not math.isfinite(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _plain(cell: Cell) -> object:
    if not isinstance(cell, Goal):
        return cell
    bound = "at_least" if cell.least else "at_most"
    return {"value": cell.value, bound: cell.limit, "unit": cell.unit, "reached": cell.reached}


# --- timing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two things timed in turns."""

    ours: float
    """Median seconds of one call of ours."""
    theirs: float
    """Median seconds of one call of theirs."""
    times_faster: float
    """Median over the rounds of theirs / ours."""
    low: float
    """Lowest round of `times_faster`."""
    high: float
    """Highest round of `times_faster`."""
    rounds: int


def compare(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int = 7,
    patience: float = 60.0,
    shortest: float = 0.02,
) -> Comparison:
    """Time two functions in turns and compare them round by round.

    Each round times both, the order alternating, so that a change of the machine's mood falls on
    both. A function faster than `shortest` seconds is repeated until it takes that long.

    Args:
        ours: What this library does.
        theirs: The same work done by a peer.
        rounds: Rounds wanted.
        patience: Seconds after which no further round is begun; three are made in any case.
        shortest: Seconds that one measurement should take at least.
    """
    repeats = (_repeats(ours, shortest), _repeats(theirs, shortest))
    pairs: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while len(pairs) < rounds and (len(pairs) < 3 or time.perf_counter() - begun < patience):
        if len(pairs) % 2:
            other, own = _timed(theirs, repeats[1]), _timed(ours, repeats[0])
        else:
            own, other = _timed(ours, repeats[0]), _timed(theirs, repeats[1])
        pairs.append((own, other))
    ratios = [other / own for own, other in pairs]
    return Comparison(
        ours=statistics.median(own for own, _ in pairs),
        theirs=statistics.median(other for _, other in pairs),
        times_faster=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        rounds=len(pairs),
    )


def seconds(function: Callable[[], object], *, rounds: int = 5, shortest: float = 0.02) -> float:
    """Return the median seconds of one call."""
    repeats = _repeats(function, shortest)
    return statistics.median(_timed(function, repeats) for _ in range(rounds))


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Fit `seconds = c * size ** e` through (size, seconds) and return `e`: 1 is linear."""
    xs = [math.log(size) for size, _ in points]
    ys = [math.log(taken) for _, taken in points]
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def growth(make: Callable[[int], Callable[[], object]], sizes: Sequence[int]) -> float:
    """Time `make(size)()` over the sizes and return the exponent of growth: 1 is linear."""
    return exponent([(size, seconds(make(size), rounds=3)) for size in sizes])


def _repeats(function: Callable[[], object], shortest: float) -> int:
    function()  # the first call fills caches and imports
    taken = max(_timed(function, 1), 1e-9)
    return max(1, math.ceil(shortest / taken))


def _timed(function: Callable[[], object], repeats: int) -> float:
    gc.collect()
    gc.disable()
    try:
        begun = time.perf_counter()
        for _ in range(repeats):
            function()
        return (time.perf_counter() - begun) / repeats
    finally:
        gc.enable()


# --- surroundings --------------------------------------------------------------------------------


def peer(module: str) -> ModuleType | None:
    """Import a peer, or return None where it is not installed.

    A part that gets None writes `None` into the cells of that peer and says so in a note; it does
    not fail, because some peers need a newer Python than this library does.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Return the installed versions of this library and of everything it is compared with."""
    found: dict[str, str] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, object]:
    """Return what the figures depend on: processor, cores, operating system."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}
