"""Batches over processes: throughput per core, two workers against one, memory over long runs."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_least, at_most, peer
from benchmarks.batches import CONFIG, Batch, question, run_batch
from muntin import (
    AgentState,
    Candidate,
    ContextBuilder,
    StateStore,
    ToolResultStore,
)
from muntin.passages import GivenSource
from muntin.stores import FolderRecords, MemoryRecords, SqliteRecords

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = int(os.environ.get("MUNTIN_BATCH", "10000"))
"""Rows of a batch."""
CALLS = 50_000


def run() -> list[Table]:
    """Measure batches and long runs."""
    return [batches(), memory(), stores()]


def batches() -> Table:
    """Fit and assemble the same rows with one worker, with two, and on Ray."""
    has_ray = peer("ray") is not None
    rows: list[tuple[Any, ...]] = []
    for work, limit in (("fit", 1.8), ("assemble", 1.8), ("loop", None)):
        batch = Batch(work=work, rows=SIZE // 4 if limit is None else SIZE)
        digests: set[str] = set()
        for on in ("processes", "ray") if has_ray else ("processes",):
            one = run_batch(batch, workers=1, on=on)
            two = run_batch(batch, workers=2, on=on)
            digests |= {one.digest, two.digest}
            wall, cpu = one.seconds / two.seconds, one.cpu / two.cpu
            rows.append(
                (
                    f"{work} on {on}",
                    batch.rows,
                    batch.rows / two.cpu,
                    1e6 * two.cpu / batch.rows / 3600,
                    wall if limit is None else at_least(wall, limit, "x"),
                    cpu if limit is None else at_least(cpu, 0.9, "x"),
                    two.parent / two.cpu,
                    two.late - two.early if limit is None else at_most(two.late - two.early, 5),
                    at_least(float(len(digests) == 1 and not two.failed), 1),
                )
            )
    return Table(
        title="Batches over processes and Ray",
        columns=(
            "work",
            "rows",
            "rows a second and core, two workers",
            "core hours for a million",
            "two workers against one, by the wall",
            "the same, by processor time",
            "share of the parent",
            "MB a worker grows after a fifth",
            "same bytes",
        ),
        rows=tuple(rows),
        notes=(
            f"A conversation has {Batch(work='fit', rows=1).messages} messages and is fitted into "
            f"{Batch(work='fit', rows=1).budget} tokens; a context has 40 passages offered and "
            f"{CONFIG.max_tokens} tokens. Rows are JSON text, no two alike. Starting the "
            f"processes is part of the time, starting Ray is not. The wall shows 2 only where two "
            f"cores are free; the loop has no data and shows what the machine can do. "
            f"`python -m benchmarks.batches --rows 100000 --messages 12` runs more rows.",
        ),
    )


def memory() -> Table:
    """Assemble again and again in one process and look at its memory."""
    builder = ContextBuilder(CONFIG)
    sizes: list[float] = []
    for number in range(CALLS):
        asked = question(number)
        offered = [Candidate(text, source="rag") for text in asked["passages"]]
        builder.assemble(asked["question"], sources=[GivenSource("rag", offered)])
        if number % (CALLS // 10) == CALLS // 10 - 1:
            gc.collect()
            sizes.append(_resident())
    growth = sizes[-1] - sizes[1]
    return Table(
        title="Memory of one process",
        columns=("calls", "MB after a fifth", "MB at the end", "growth in MB"),
        rows=((CALLS, sizes[1], sizes[-1], at_most(growth, 5, "MB")),),
        notes=("Each call has another question and other passages.",),
    )


def stores() -> Table:
    """Save states and originals in the stores that need no server."""
    rows: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, records in (
            ("memory", MemoryRecords()),
            ("folder", FolderRecords(Path(folder, "kept"))),
            ("SQLite", SqliteRecords(Path(folder, "kept.db"))),
        ):
            states, results = StateStore(records, key="state"), ToolResultStore(records)
            findings: Any = [f"Order A-{n} left warehouse {n % 13} on day {n}." for n in range(100)]
            states.save(AgentState(goal="Find the late orders", key_findings=findings))
            texts = [f"{n} ".ljust(20_000, "x") for n in range(50)]
            record = records.get("state")
            rows.append(
                (
                    name,
                    _each(50, lambda _: states.update(_renamed)),  # noqa: B023 - used at once
                    _each(50, lambda n: results.put(texts[n])),  # noqa: B023
                    _each(50, lambda n: results.put(texts[n])),  # noqa: B023
                    _each(50, lambda n: results.get(results.put(texts[n]) or "")),  # noqa: B023
                    len(record.body) if record else None,
                )
            )
    return Table(
        title="Stores without a server",
        columns=(
            "store",
            "ms an update",
            "ms a new original",
            "ms the same again",
            "ms stored and read",
            "bytes of the state",
        ),
        rows=tuple(rows),
        notes=("A state has 100 findings, an original 20 KB. Milliseconds by the wall.",),
    )


def _each(count: int, work: Callable[[int], object]) -> float:
    begun = time.perf_counter()
    for number in range(count):
        work(number)
    return (time.perf_counter() - begun) * 1000 / count


def _renamed(state: AgentState) -> None:
    state.goal += "."


def _resident() -> float:
    """Megabytes this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
