"""Time grows with the input and no faster, at every public entry point.

Each entry point is timed at four sizes by the processor's clock, which other programs hardly touch,
and the exponent of growth is fitted: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks._harness import exponent
from benchmarks.battery import long_history
from benchmarks.bench_fitting import processor_seconds

from muntin import (
    CallableSource,
    Candidate,
    ContextBuilder,
    ExtractiveSummarizer,
    HistoryCompactor,
    Message,
    count_messages,
    count_tokens,
    estimate_tokens,
    fit_messages,
    mmr_select,
    reduce_agent,
    repair,
    truncate_to_tokens,
    truncate_tool_result,
)
from muntin.counting.message_counts import MessageCounts

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

MOST = 1.35
"""Below any n log n with a constant part, far below 2."""
_LINE = "2026-03-01 12:00 INFO worker 17 took A-4711 from shelf 42, all is well.\n"
_MESSAGES = (600, 1_200, 2_400, 4_800)
_CHARACTERS = (250_000, 500_000, 1_000_000, 2_000_000)
_CANDIDATES = (250, 500, 1_000, 2_000)


def _fit(size: int) -> Callable[[], object]:
    history = long_history(size)
    budget = count_messages(history) // 2
    return lambda: fit_messages(history, budget=budget, counts=MessageCounts(count_tokens))


def _count(size: int) -> Callable[[], object]:
    history = long_history(size)
    # Counts are shared per counter: another counter has seen nothing yet.
    return lambda: count_messages(history, counter=lambda text: count_tokens(text))


def _repair(size: int) -> Callable[[], object]:
    history = [one for at, one in enumerate(long_history(size)) if at % 7]
    return lambda: repair(history)


def _repair_chat_calls(size: int) -> Callable[[], object]:
    calls = [
        {"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for at in range(size)
    ]
    return lambda: repair(
        [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "user", "content": "?"},
        ]
    )


def _repair_response_calls(size: int) -> Callable[[], object]:
    calls = [
        {"type": "function_call", "call_id": f"c{at}", "name": "look", "arguments": "{}"}
        for at in range(size)
    ]
    return lambda: repair([*calls, {"role": "user", "content": "?"}])


def _repair_results(size: int) -> Callable[[], object]:
    results = [
        {"type": "tool_result", "tool_use_id": f"c{at}", "content": "ok"} for at in range(size)
    ]
    return lambda: repair([{"role": "user", "content": results}])


def _compact(size: int) -> Callable[[], object]:
    history = [Message(f"Order A-{at} left the warehouse. " * 6, "user") for at in range(size)]
    return lambda: HistoryCompactor().compact(history)


def _reduce(size: int) -> Callable[[], object]:
    history = long_history(size)
    budget = count_messages(history) // 2

    async def summarize(text: str, instruction: str) -> str:
        return "Orders were looked up."

    async def go() -> object:
        return await reduce_agent(history, budget=budget, summarize=summarize)

    return lambda: asyncio.run(go())


def _candidates(size: int) -> list[Candidate]:
    draw = np.random.default_rng(size)
    rows = draw.normal(size=(size, 64)).astype(np.float32)
    return [
        Candidate(f"Passage {at} says {at * 7} things.", 1.0 - at / size, "rag", embedding=row)
        for at, row in enumerate(rows)
    ]


def _select(size: int) -> Callable[[], object]:
    pool = _candidates(size)
    return lambda: mmr_select(pool, top_k=20)


def _build(size: int) -> Callable[[], object]:
    pool = _candidates(size)
    source = CallableSource("rag", lambda query: pool)
    return lambda: ContextBuilder().build_block("Which passage?", sources=[source], budget=2_000)


def _of_text(work: Callable[[str], object]) -> Callable[[int], Callable[[], object]]:
    log = _LINE * (_CHARACTERS[-1] // len(_LINE))
    return lambda size: lambda: work(log[:size])


_ENTRY_POINTS: dict[str, tuple[tuple[int, ...], Callable[[int], Callable[[], object]]]] = {
    "fit_messages": (_MESSAGES, _fit),
    "count_messages": (_MESSAGES, _count),
    "repair": (_MESSAGES, _repair),
    "repair, calls of one message": (_MESSAGES, _repair_chat_calls),
    "repair, calls in a row": (_MESSAGES, _repair_response_calls),
    "repair, results of one message": (_MESSAGES, _repair_results),
    "HistoryCompactor": (_MESSAGES, _compact),
    "reduce_agent": (_MESSAGES, _reduce),
    "mmr_select": (_CANDIDATES, _select),
    "ContextBuilder.build_block": (_CANDIDATES, _build),
    "count_tokens": (_CHARACTERS, _of_text(count_tokens)),
    "estimate_tokens": (_CHARACTERS, _of_text(estimate_tokens)),
    "truncate_to_tokens": (_CHARACTERS, _of_text(lambda text: truncate_to_tokens(text, 1_000))),
    "truncate_tool_result": (
        _CHARACTERS,
        _of_text(lambda text: truncate_tool_result(text, 1_000)),
    ),
    "ExtractiveSummarizer": (
        tuple(size // 8 for size in _CHARACTERS),
        _of_text(lambda text: ExtractiveSummarizer()(text, max_tokens=200)),
    ),
}


@pytest.mark.parametrize("entry_point_name", sorted(_ENTRY_POINTS))
def test_time_grows_no_faster_than_the_input(entry_point_name: str) -> None:
    """A quadratic entry point works in every demonstration and stops a long conversation."""
    sizes, make = _ENTRY_POINTS[entry_point_name]
    points = [(size, processor_seconds(make(size))) for size in sizes]
    assert exponent(points) < MOST, points
