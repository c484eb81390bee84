"""Batches over processes and over Ray: time, processor time, memory and bytes of one run.

    python -m benchmarks.batches --rows 100000 --messages 12 --work fit --on ray --workers 1 2

Rows are JSON text, as a batch reads them from a file, and no two hold the same texts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import re
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin import ContextConfig
from muntin.scaling import assemble_row, fit_row, map_records, map_records_on_ray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("CONFIG", "Batch", "Run", "question", "run_batch")

CONFIG = ContextConfig(max_tokens=1_500)
Row = dict[str, Any]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows to work on, and what is done with each."""

    work: str
    """`fit`, `assemble`, or `loop`: a loop without data, which shows what the machine can do."""
    rows: int
    messages: int = 60
    """Messages of a conversation."""
    passages: int = 40
    """Passages offered to a question."""

    def records(self) -> Iterator[Row]:
        """Make the rows, one at a time."""
        make = {"fit": self._chat, "assemble": self._asked, "loop": self._empty}[self.work]
        return map(make, range(self.rows))

    @property
    def budget(self) -> int:
        """Tokens a conversation is fitted into: about half of them."""
        return 25 * self.messages

    @property
    def function(self) -> Callable[[Row], Row]:
        """What is done with a row."""
        return {
            "fit": partial(fit_row, budget=self.budget),
            "assemble": partial(assemble_row, config=CONFIG),
            "loop": loop,
        }[self.work]

    def _chat(self, number: int) -> Row:
        messages = [{"role": "system", "content": f"You help customers of shop {number}. " * 5}]
        for at in range(self.messages - 1):
            role = ("user", "assistant")[at % 2]
            text = f"Order A-{number}-{at // 2} left warehouse {at * 7 % 13} on day {at}. " * 3
            messages.append({"role": role, "content": text})
        return {"id": number, "messages": json.dumps(messages)}

    def _empty(self, number: int) -> Row:
        return {"id": number}

    def _asked(self, number: int) -> Row:
        asked = question(number, self.passages)
        return {**asked, "passages": json.dumps(asked["passages"])}


def question(number: int, passages: int = 40) -> Row:
    """Make a question with passages; another number gives other texts."""
    offered = [
        f"Order A-{number}-{at} left warehouse {at * 7 % 13} on day {at}. " * 4
        for at in range(passages)
    ]
    return {"question": f"Where is order A-{number}-7?", "passages": offered}


def loop(row: Row) -> Row:
    """Count to a number: work that needs no memory and no library."""
    total = 0
    for number in range(100_000):
        total += number
    return {**row, "text": str(total), "report": "", "error": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run of a batch took."""

    seconds: float
    """By the clock on the wall."""
    cpu: float
    """Processor seconds of all processes of the batch."""
    parent: float
    """Processor seconds of the process that gave out the rows."""
    digest: str
    """Hash of all results, in their order."""
    failed: int
    early: float
    """MB of the largest worker after a fifth of the rows; 0 without workers."""
    late: float
    """MB of the largest worker at the end."""


def run_batch(batch: Batch, *, workers: int, on: str = "processes") -> Run:
    """Run a batch once.

    Args:
        batch: The rows.
        workers: Processes, or processors of the Ray cluster, which is started here.
        on: `processes` or `ray`.
    """
    outcomes: Callable[[], Iterator[Any]]
    if on == "processes":
        outcomes = partial(map_records, batch.function, batch.records(), workers=workers)
        return _timed(outcomes, batch.rows)
    ray: Any = import_module("ray")
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=300_000_000,
    )
    try:
        return _timed(partial(map_records_on_ray, batch.function, batch.records()), batch.rows)
    finally:
        ray.shutdown()


def _timed(outcomes: Callable[[], Iterator[Any]], rows: int) -> Run:
    others, begun = _cpu_of(_descendants()), time.perf_counter()
    used = _used()
    own = time.process_time()
    digest = hashlib.sha256()
    failed = 0
    memory = [0.0, 0.0]
    started: dict[int, float] = {}
    for number, outcome in enumerate(outcomes(), start=1):
        row = outcome.value or {"error": str(outcome.error), "report": ""}
        digest.update(f"{row.get('messages', row.get('text'))}{row['report']}".encode())
        failed += bool(row["error"])
        if number in (rows // 5, rows - 1):
            started = _descendants()
            memory[number != rows // 5] = max(map(_megabytes, started), default=0.0)
    seconds = time.perf_counter() - begun
    alive = _cpu_of(_descendants())
    cpu = _used() - used + alive - others
    return Run(
        seconds=seconds,
        cpu=cpu,
        parent=time.process_time() - own,
        digest=digest.hexdigest(),
        failed=failed,
        early=memory[0],
        late=memory[1],
    )


def _used() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _descendants() -> dict[int, float]:
    """Return the living descendants of this process with the processor seconds of each."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        seconds[process] = sum(map(int, fields[11:15])) / _TICKS
    found: dict[int, float] = {}
    waiting = [os.getpid()]
    while waiting:
        of = waiting.pop()
        children = [child for child, parent in parents.items() if parent == of]
        found |= {child: seconds[child] for child in children}
        waiting += children
    return found


def _cpu_of(processes: dict[int, float]) -> float:
    return sum(processes.values())


def _megabytes(process: int) -> float:
    """Return the memory of a Python worker that it shares with no other process; 0 for others."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"RssAnon:\s*(\d+)", status)
    is_worker = b"ray::" in command or b"spawn_main" in command
    return int(found[1]) / 1000 if found and is_worker else 0.0


def main() -> int:
    """Run one batch with each number of workers and print what each run took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--passages", type=int, default=40)
    parser.add_argument("--work", choices=("fit", "assemble", "loop"), default="fit")
    parser.add_argument("--on", choices=("processes", "ray"), default="processes")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    batch = Batch(
        work=given.work, rows=given.rows, messages=given.messages, passages=given.passages
    )
    runs: list[Run] = []
    for workers in given.workers:
        run = run_batch(batch, workers=workers, on=given.on)
        runs.append(run)
        print(
            f"{given.work} {given.rows:,} rows on {given.on}, {workers} workers: "
            f"{run.seconds:.0f} s, {run.cpu:.0f} s of processor, {run.parent:.1f} s of it in the "
            f"parent, {given.rows / run.cpu:.0f} rows a second and core, {run.failed} failed, "
            f"a worker has {run.early:.0f} MB after a fifth and {run.late:.0f} MB at the end, "
            f"sha256 {run.digest[:16]}",
            flush=True,
        )
    if len(runs) > 1:
        print(f"{runs[0].seconds / runs[-1].seconds:.2f}x by the wall, "
              f"{runs[0].cpu / runs[-1].cpu:.2f} by processor time, "
              f"same bytes: {len({run.digest for run in runs}) == 1}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
