"""What trimming a long conversation costs, measured in counts of the whole of it, and its growth.

A full count is every text of the history counted once by the same counter. What is trimmed is
compared with it twice: by the characters that are given to the counter, which is exact and the same
on every machine, and by time, in turns with such a count, so that the figures do not depend on the
machine or on who else uses it. Reading messages, finding what belongs together and writing a
digest take time and count little, so the second is the larger one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_most, compare, exponent, peer
from benchmarks.battery import Message, long_history
from muntin import (
    HistoryCompactor,
    TiktokenCounter,
    count_messages,
    count_tokens,
    estimate_tokens,
    fit_messages,
    repair,
    truncate_tool_result,
)
from muntin import Message as Said
from muntin.counting import MessageCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks._harness import Cell
    from muntin import TokenCounter

    _Make = Callable[[list[Message], int, TokenCounter], Callable[[], object] | None]

SIZE = int(os.environ.get("MUNTIN_FITTING", "5000"))
"""Messages of the history."""
SHARES = (0.5, 0.9)
LINES = 5
"""Lines of a result at most, where messages are short; a real run has ten times as many."""
APPENDED = 20
"""Messages that are appended one by one; the cost is their mean."""
COLD, WARM, GROWTH = 1.5, 0.05, 1.15
_ROUNDS = 5
_AHEAD = 60 * APPENDED
"""Messages the warm row may go on with, however often it is repeated."""


def run() -> list[Table]:
    """Measure trimming of short and of real-sized messages, and growth."""
    return [trimming(LINES), trimming(10 * LINES), scaling()]


def _texts(history: Sequence[Message]) -> list[str]:
    texts = [one["content"] for one in history if one.get("content")]
    return texts + [json.dumps(made) for one in history for made in one.get("tool_calls") or ()]


def trimming(most_lines: int) -> Table:
    """Trim to half and to nine tenths: once, and after each of some appended messages."""
    counter = TiktokenCounter("o200k_base")
    longer = long_history(SIZE + _AHEAD, most_lines=most_lines)
    history = [*longer[: SIZE - 1], longer[-1]]
    texts = _texts(history)
    whole = count_messages(history, counter=counter)

    def full() -> int:
        return sum(map(counter, texts))

    rows: list[tuple[Cell, ...]] = []
    for share in SHARES:
        budget = int(share * whole)
        peers = [_langchain, _agentmaker] if most_lines == LINES else []
        cold = compare(_cold(history, budget, counter), full, rounds=_ROUNDS)
        warm = compare(_warm(longer, budget, counter), full, rounds=_ROUNDS)
        rows.append(
            (
                f"{share:.0%}",
                at_most(_counted(_cold, history, budget, texts), COLD, " full counts"),
                1 / cold.times_faster,
                at_most(_counted(_warm, longer, budget, texts) / APPENDED, WARM, " full counts"),
                1 / warm.times_faster / APPENDED,
                *(_costs(peer_, history, budget, texts) for peer_ in peers),
                *["–"] * (2 - len(peers)),
            )
        )
    return Table(
        title=f"Trimming {SIZE:,} messages of {whole // SIZE} tokens, in full counts (o200k)",
        columns=(
            "kept",
            "cold, counted",
            "cold, in time",
            "after one appended message, counted",
            "in time",
            "trim_messages, each time, counted / in time",
            "reduce_agent, each time, counted / in time",
        ),
        rows=tuple(rows),
        notes=(
            "A full count is every text of the history counted once by the same counter. Counted: "
            "the characters that the counter was given, in those of the history; this is what the "
            "goals are set in, and what other tools are known for. In time: timed in turns with a "
            "full count, so reading, dividing and digesting the messages is in it as well. After "
            f"one appended message: the mean over {APPENDED} of them with the same `counts=`, the "
            "calls that move the cut included.",
            "Peers remember nothing between calls. LangChain's runs with `include_system`; "
            "agentmaker's keeps three steps behind a summary that costs nothing here, so it looks "
            "at the budget once and then throws away all but the newest steps. They are timed "
            "with the shorter messages only, and where they are installed.",
        ),
    )


class _Spy:
    """Counts as another counter does, and notes how many characters it was given."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.characters = 0

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        return self._counter(text)


def _counted(make: _Make, history: list[Message], budget: int, texts: Sequence[str]) -> float:
    """Count the characters of one call, in those of all texts; `nan` where a peer is missing."""
    spy = _Spy(TiktokenCounter("o200k_base"))
    work = make(history, budget, spy)
    if work is None:
        return float("nan")
    spy.characters = 0
    work()
    return spy.characters / sum(map(len, texts))


def _costs(make: _Make, history: list[Message], budget: int, texts: Sequence[str]) -> str:
    """Say what a peer counts and how long it takes, both in full counts."""
    counter = TiktokenCounter("o200k_base")
    theirs = make(history, budget, counter)
    if theirs is None:
        return "–"
    taken = compare(theirs, lambda: sum(map(counter, texts)), rounds=3)
    return f"{_counted(make, history, budget, texts):.2f} / {1 / taken.times_faster:.2f}"


def _cold(history: list[Message], budget: int, counter: TokenCounter) -> Callable[[], object]:
    return lambda: fit_messages(
        history, budget=budget, counter=counter, counts=MessageCounts(counter)
    )


def _warm(longer: list[Message], budget: int, counter: TokenCounter) -> Callable[[], object]:
    """Fit after each of some messages more, further on in every round; begun beforehand."""
    counts = MessageCounts(counter)
    history = longer[:SIZE]
    fit_messages(history, budget=budget, counter=counter, counts=counts)
    ahead = iter(longer[SIZE:])

    def grow() -> None:
        for _ in range(APPENDED):
            history.append(next(ahead))
            fit_messages(history, budget=budget, counter=counter, counts=counts)

    return grow


def _langchain(
    history: list[Message], budget: int, counter: TokenCounter
) -> Callable[[], object] | None:
    messages: Any = peer("langchain_core.messages")
    if messages is None:
        return None
    converted = messages.convert_to_messages(
        [{**one, "content": one.get("content") or ""} for one in history]
    )

    def count(given: list[Any]) -> int:
        return sum(
            4
            + counter(one.content)
            + sum(counter(json.dumps(made)) for made in getattr(one, "tool_calls", ()))
            for one in given
        )

    return lambda: messages.trim_messages(
        converted, max_tokens=budget, token_counter=count, strategy="last", include_system=True
    )


def _agentmaker(
    history: list[Message], budget: int, counter: TokenCounter
) -> Callable[[], object] | None:
    context: Any = peer("agentmaker.context")
    if context is None:
        return None

    async def summarize(text: str, instruction: str) -> str:  # noqa: ARG001 - the peer's protocol
        return "Earlier orders were looked up."

    return lambda: asyncio.run(
        context.reduce_agent(
            history, summarize=summarize, budget=budget, turn_start=1, counter=counter
        )
    )


# --- growth --------------------------------------------------------------------------------------

MESSAGES = tuple(max(20, SIZE // part) for part in (8, 4, 2, 1))
CHARACTERS = tuple(2_000 * SIZE // part for part in (16, 4, 1))


def _doors() -> dict[str, tuple[Sequence[int], Callable[[int], Callable[[], object]]]]:
    """Name what is measured: its sizes, and how to make the call for one of them."""
    log = "".join(
        f"2026-03-01 12:00:{at % 60:02d} INFO worker {at} took A-{at * 7} from shelf {at % 99}\n"
        for at in range(CHARACTERS[-1] // 60)
    )

    def fit(size: int) -> Callable[[], object]:
        history = long_history(size)
        budget = count_messages(history) // 2
        return lambda: fit_messages(history, budget=budget, counts=MessageCounts(count_tokens))

    def count(size: int) -> Callable[[], object]:
        history = long_history(size)
        return lambda: MessageCounts(count_tokens).measure_all(history)

    def mend(size: int) -> Callable[[], object]:
        history = [one for at, one in enumerate(long_history(size)) if at % 7]
        return lambda: repair(history)

    def compact(size: int) -> Callable[[], object]:
        history = [Said(text, "user") for text in _texts(long_history(size))[:size]]
        return lambda: HistoryCompactor(
            lambda text, instruction: "A recap.",  # noqa: ARG005 - agentmaker's protocol
        ).compact(history)

    return {
        "fit_messages, cold": (MESSAGES, fit),
        "counting messages, cold": (MESSAGES, count),
        "repair": (MESSAGES, mend),
        "HistoryCompactor.compact": (MESSAGES, compact),
        "truncate_tool_result": (
            CHARACTERS,
            lambda size: lambda: truncate_tool_result(log[:size], 1_000),
        ),
        "estimate_tokens": (CHARACTERS, lambda size: lambda: estimate_tokens(log[:size])),
    }


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of three calls.

    Growth is not a ratio of two things timed in turns, so it is taken from the clock that other
    programs hardly touch.
    """
    taken: list[float] = []
    for _ in range(3):
        gc.collect()
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return max(min(taken), 1e-6)


def scaling() -> Table:
    """Fit how time grows with messages and with characters."""
    rows: list[tuple[Cell, ...]] = []
    for name, (sizes, make) in _doors().items():
        points = [(size, processor_seconds(make(size))) for size in sizes]
        unit = "messages" if sizes is MESSAGES else "characters"
        rows.append(
            (
                name,
                f"{sizes[0]:,} to {sizes[-1]:,} {unit}",
                at_most(exponent(points), GROWTH),
                points[-1][1],
            )
        )
    return Table(
        title="Growth: time as size to the power of",
        columns=("door", "sizes", "exponent", "processor seconds at the largest"),
        rows=tuple(rows),
        notes=("1 is linear, 2 quadratic. Counted by `count_tokens`, which costs least.",),
    )
