"""Batches over processes: throughput per core, two workers against one, memory over long runs."""

from __future__ import annotations

import gc
import hashlib
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_least, at_most, peer
from benchmarks.battery import long_history
from muntin import (
    AgentState,
    Candidate,
    ContextBuilder,
    ContextConfig,
    StateStore,
    ToolResultStore,
)
from muntin.passages import GivenSource
from muntin.scaling import assemble_row, assemble_rows, fit_row, fit_rows, map_records_on_ray
from muntin.stores import FolderRecords, MemoryRecords, SqliteRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SIZE = int(os.environ.get("MUNTIN_BATCH", "10000"))
"""Rows of a batch."""
MESSAGES = 60
BUDGET = 1_500
CALLS = 50_000
CONFIG = ContextConfig(max_tokens=1_500)

_HISTORY = long_history(MESSAGES)


def run() -> list[Table]:
    """Measure batches and long runs."""
    return [batches(), memory(), stores()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One batch."""

    seconds: float
    """By the clock on the wall."""
    cpu: float
    """Of all processes of the batch."""
    digest: str
    """Hash of all results, in their order."""
    failed: int


def batches() -> Table:
    """Fit and assemble the same rows with one worker, with two, and on Ray."""
    fit = partial(fit_rows, budget=BUDGET)
    build = partial(assemble_rows, config=CONFIG)
    rows: list[tuple[Any, ...]] = []
    for name, work, make in (("fit", fit, _chats), ("assemble", build, _questions)):
        one = _timed(lambda work=work, make=make: work(make(), workers=1))
        two = _timed(lambda work=work, make=make: work(make(), workers=2))
        row = partial(fit_row, budget=BUDGET) if name == "fit" else None
        ray = _on_ray(row or partial(assemble_row, config=CONFIG), make)
        rows.append(
            (
                name,
                SIZE,
                SIZE / one.cpu,
                1e6 * one.cpu / SIZE / 3600,
                at_least(one.seconds / two.seconds, 1.8, "x"),
                at_least(one.cpu / two.cpu, 0.9, "x"),
                None if ray is None else SIZE / ray.seconds / 2,
                at_least(float(one.digest == two.digest == (ray or one).digest), 1),
            )
        )
    return Table(
        title="Batches over processes",
        columns=(
            "work",
            "rows",
            "rows a second and core",
            "core hours for a million",
            "two workers against one, by the wall",
            "the same, by processor time",
            "rows a second and core on Ray",
            "same bytes",
        ),
        rows=tuple(rows),
        notes=(
            f"A conversation has {MESSAGES} messages and is fitted into {BUDGET} tokens; a context "
            f"has 40 passages offered and {CONFIG.max_tokens} tokens. Starting the processes is "
            f"part of the time. The wall shows 2 only where two cores are free; processor time "
            f"shows what dividing the work costs on any machine.",
        ),
    )


def memory() -> Table:
    """Assemble again and again in one process and look at its memory."""
    builder = ContextBuilder(CONFIG)
    sizes: list[float] = []
    for number in range(CALLS):
        question = _question(number)
        offered = [Candidate(text, source="rag") for text in question["passages"]]
        builder.assemble(question["question"], sources=[GivenSource("rag", offered)])
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


def _chats() -> Iterator[dict[str, Any]]:
    for number in range(SIZE):
        first = {"role": "system", "content": f"You help customers of shop {number}. " * 5}
        yield {"id": number, "messages": [first, *_HISTORY[1:]]}


def _questions() -> Iterator[dict[str, Any]]:
    return map(_question, range(SIZE))


def _question(number: int) -> dict[str, Any]:
    passages = [
        f"Order A-{number}-{at} left warehouse {at * 7 % 13} on day {at}. " * 4 for at in range(40)
    ]
    return {"question": f"Where is order A-{number}-7?", "passages": passages}


def _timed(work: Callable[[], Iterable[dict[str, Any]]]) -> _Run:
    begun, cpu = time.perf_counter(), _cpu()
    digest = hashlib.sha256()
    failed = 0
    for row in work():
        digest.update(f"{row.get('messages', row.get('text'))}{row['report']}".encode())
        failed += bool(row["error"])
    return _Run(
        seconds=time.perf_counter() - begun,
        cpu=_cpu() - cpu,
        digest=digest.hexdigest(),
        failed=failed,
    )


def _on_ray(
    function: Callable[[Any], dict[str, Any]], make: Callable[[], Iterator[dict[str, Any]]]
) -> _Run | None:
    if peer("ray") is None:
        return None
    outcomes = map_records_on_ray(function, make())
    return _timed(lambda: (one.value or {"error": "?", "report": ""} for one in outcomes))


def _cpu() -> float:
    """Seconds of this process and of those it started that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _resident() -> float:
    """Megabytes this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
