"""Processor-heavy work of the core's async entry points leaves the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from langchain_agents import prose
from muntin import (
    CallableSource,
    ContextBuilder,
    ContextConfig,
    HistoryCompactor,
    afit_messages,
    reduce_agent,
)
from muntin.runtime import LARGE, SummaryRequest, arun, in_thread, off_loop, size_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PASSAGES = [prose(90, at) for at in range(800)]


def talk(turns: int = 400) -> list[dict[str, Any]]:
    """Write a conversation anew, so that nothing of it was counted before."""
    seed = next(_SEEDS)
    return [
        message
        for at in range(turns)
        for message in (
            {"role": "user", "content": prose(70, seed + at)},
            {"role": "assistant", "content": prose(70, seed + 5000 + at)},
        )
    ] + [{"role": "user", "content": "And now?"}]


_SEEDS = iter(range(0, 10**9, 10_000))


async def summary(text: str, instruction: str) -> str:
    return f"They went through {len(text)} characters of ledgers."


def fitting() -> Callable[[], Awaitable[Any]]:
    given = talk()
    return lambda: afit_messages(given, budget=8000)


def fitting_with_a_model() -> Callable[[], Awaitable[Any]]:
    given = talk()
    return lambda: afit_messages(given, budget=8000, summarizer=summary)


def building() -> Callable[[], Awaitable[Any]]:
    builder = ContextBuilder(ContextConfig(max_tokens=16_000))
    sources = [CallableSource("rag", lambda question: PASSAGES)]
    return lambda: builder.abuild("Which invoice was paid twice?", sources=sources)


def building_a_block() -> Callable[[], Awaitable[Any]]:
    builder = ContextBuilder(ContextConfig(max_tokens=16_000))
    sources = [CallableSource("rag", lambda question: PASSAGES)]
    return lambda: builder.abuild_block("Which invoice was paid twice?", sources=sources)


def compacting() -> Callable[[], Awaitable[Any]]:
    given = talk()
    return lambda: HistoryCompactor(trigger_tokens=4000).acompact(given)


def reducing() -> Callable[[], Awaitable[Any]]:
    given = talk(200)
    return lambda: reduce_agent(given, summarize=summary, budget=4000)


ENTRY_POINTS = [
    fitting, fitting_with_a_model, building, building_a_block, compacting, reducing,
]  # fmt: skip


@pytest.mark.parametrize("make", ENTRY_POINTS)
def test_the_loop_thread_does_a_small_share_of_the_work(make: Any) -> None:
    """A server that fits on its loop answers no other request meanwhile: it did all of it there."""

    async def measured() -> float:
        ask = make()
        on_loop, whole = time.thread_time(), time.process_time()
        await ask()
        on_loop, whole = time.thread_time() - on_loop, time.process_time() - whole
        return on_loop / whole

    shares = sorted(asyncio.run(measured()) for _ in range(2))

    assert shares[0] <= 0.15, shares


async def _longest_pause(calls: list[Any]) -> float:
    """Make all calls at once; return the longest time between two ticks of 5 ms, in seconds."""
    pauses: list[float] = []
    ended = False

    async def tick() -> None:
        while not ended:
            begun = time.monotonic()
            await asyncio.sleep(0.005)
            pauses.append(time.monotonic() - begun)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await asyncio.gather(*(call() for call in calls))
    ended = True
    await ticking
    assert len(pauses) > 20
    return max(pauses)


def test_five_hundred_calls_do_not_stop_a_ticker() -> None:
    """With a thread for each call, the loop waits for all of them: health checks fail."""

    def work() -> int:
        return sum(at * at for at in range(40_000))

    calls = [lambda: off_loop(work, size=LARGE)] * 500

    # The machine may be busy with other tests; one of three has to pass.
    assert any(asyncio.run(_longest_pause(calls)) < 0.2 for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("make", ENTRY_POINTS)
def test_five_hundred_calls_of_an_entry_point_do_not_stop_a_ticker(make: Any) -> None:
    """As above, with real work."""
    calls = [make()] * 500

    assert asyncio.run(_longest_pause(calls)) < 0.2


# --- the mechanism -------------------------------------------------------------------------------


def test_large_work_runs_in_few_threads_and_small_work_on_the_loop() -> None:
    """A thread per call costs more than small work, and hundreds of them starve the loop."""
    seen: list[str] = []

    def work() -> str:
        time.sleep(0.001)
        seen.append(threading.current_thread().name)
        return threading.current_thread().name

    async def all_of_them() -> str:
        here = await off_loop(work, size=LARGE - 1)
        await asyncio.gather(*(off_loop(work, size=LARGE) for _ in range(200)))
        return here

    most = 0
    watching = True

    def watch() -> None:
        nonlocal most
        while watching:
            alive = sum(one.name == "muntin-work" for one in threading.enumerate())
            most = max(most, alive)
            time.sleep(0.0005)

    watcher = in_thread(watch, name="watch")
    here = asyncio.run(all_of_them())
    watching = False
    watcher.result()

    assert here == "MainThread"
    assert seen.count("muntin-work") == 200
    assert 1 <= most <= 4


def test_work_sees_the_context_variables_of_its_caller_and_does_not_change_them() -> None:
    """Settings of a run (its thread, its callbacks) travel in context variables."""
    run_name: contextvars.ContextVar[str] = contextvars.ContextVar("run_name", default="none")

    def work() -> str:
        found = run_name.get()
        run_name.set("changed")
        return found

    async def one(name: str) -> tuple[str, str]:
        run_name.set(name)
        return await off_loop(work, size=LARGE), run_name.get()

    async def both() -> Any:
        return await asyncio.gather(one("ada"), one("bo"))

    assert asyncio.run(both()) == [("ada", "ada"), ("bo", "bo")]


def test_work_that_waits_for_other_work_does_not_wait_for_its_own_thread() -> None:
    """A hook that fits another conversation inside ten calls would wait for ever."""

    def work() -> int:
        return asyncio.run(off_loop(lambda: 1, size=LARGE))

    async def many() -> list[int]:
        calls = (off_loop(work, size=LARGE) for _ in range(10))
        return await asyncio.wait_for(asyncio.gather(*calls), timeout=30)

    assert asyncio.run(many()) == [1] * 10


def test_an_exception_of_the_work_is_raised_where_it_is_awaited() -> None:
    """An error in a thread that is not raised again is lost."""

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(off_loop(fail, size=LARGE))


@pytest.mark.parametrize("began", [True, False])
def test_a_cancelled_caller_leaves_at_once_and_its_result_is_handed_over(
    began: bool,  # noqa: FBT001 - drawn by pytest
) -> None:
    """A request that was cancelled must neither wait nor leave a pass that nobody ends."""
    may_end = threading.Event()
    started = threading.Event()
    dropped: list[int] = []

    def work() -> int:
        started.set()
        may_end.wait(30)
        return 7

    async def cancelled() -> float:
        blocked = [
            asyncio.create_task(off_loop(work, size=LARGE)) for _ in range(0 if began else 4)
        ]
        task = asyncio.create_task(off_loop(work, size=LARGE, abandoned=dropped.append))
        while not started.is_set():
            await asyncio.sleep(0.001)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - begun
        may_end.set()
        await asyncio.gather(*blocked)
        return took

    assert asyncio.run(cancelled()) < 5
    for _ in range(1000):
        if dropped or not began:
            break
        time.sleep(0.005)
    assert dropped == ([7] if began else [])


def test_a_compaction_that_was_cancelled_does_not_block_the_next_one() -> None:
    """The plan of a cancelled call was made in a thread: without an end all others wait for it."""
    history = talk(300)
    compactor = HistoryCompactor(summary, trigger_tokens=2000)
    fold = compactor._passes.begin  # pyright: ignore[reportPrivateUsage]
    planned = threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        step = fold(*args, **kwargs)
        planned.set()
        time.sleep(0.05)
        return step

    async def both() -> list[Any]:
        compactor._passes.begin = slow  # pyright: ignore[reportPrivateUsage]
        task = asyncio.create_task(compactor.acompact(history))
        while not planned.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        compactor._passes.begin = fold  # pyright: ignore[reportPrivateUsage]
        return await asyncio.wait_for(compactor.acompact(history), timeout=30)

    assert len(asyncio.run(both())) < len(history)


def test_a_sync_compaction_on_the_loop_does_not_wait_for_one_that_needs_the_loop() -> None:
    """The pass was planned in a thread, but its model answers on the loop."""
    history = talk(300)
    asked = asyncio.Event()
    seen: list[Any] = []

    async def slow(text: str, instruction: str) -> str:
        asked.set()
        await asyncio.sleep(0.02)
        return "They went through the ledgers."

    compactor = HistoryCompactor(slow, trigger_tokens=2000)

    async def both() -> Any:
        task = asyncio.create_task(compactor.acompact(history))
        await asked.wait()
        seen.append(compactor.compact(history))
        return await asyncio.wait_for(task, timeout=30)

    compacted = asyncio.run(both())
    assert len(seen[0]) == len(history)
    assert len(compacted) < len(history)


def test_a_policy_that_was_cancelled_while_it_works_is_closed_or_left_to_end() -> None:
    """Closing a generator that a thread runs raises an error in place of the cancellation."""
    working = threading.Event()

    def policy() -> Any:
        working.set()
        time.sleep(0.05)
        yield SummaryRequest(text="a", instruction="b", max_tokens=3)

    async def cancelled() -> None:
        task = asyncio.create_task(arun(policy(), summary, size=LARGE))
        while not working.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """A server that forks its workers after the first request would wait for threads it has not."""
    may_end = threading.Event()

    async def occupied() -> int:
        blocked = [
            asyncio.create_task(off_loop(lambda: may_end.wait(30), size=LARGE)) for _ in range(8)
        ]
        await asyncio.sleep(0.02)
        child = os.fork()
        if child == 0:
            may_end.set()
            answer = in_thread(lambda: asyncio.run(off_loop(lambda: 1, size=LARGE)), name="child")
            try:
                code = 0 if answer.result(20) == 1 else 1
            except BaseException:  # noqa: BLE001 - the child reports by its exit code
                code = 2
            os._exit(code)
        may_end.set()
        await asyncio.gather(*blocked)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert asyncio.run(occupied()) == 0


@pytest.mark.parametrize(
    ("messages", "least"),
    [
        ([], 0),
        ([{"role": "user", "content": "a" * 400}], 400),
        ([{"role": "user", "content": [{"type": "text", "text": "a" * 400}]}], 400),
        ([{"role": "user", "parts": [{"text": "a" * 400}]}], 400),
        ([{"type": "function_call_output", "output": "a" * 400}], 400),
        (["a" * 400, "b" * 400], 800),
        ([("user", "a" * 400)], 400),
        ("a" * 400, 400),
        ([{"role": "user", "content": "a"}] * 100_000, LARGE),
        (None, 0),
        (7, 0),
    ],
    ids=str,
)
def test_the_size_of_messages_is_estimated_in_every_shape(messages: Any, least: int) -> None:
    """A shape whose text is not seen is worked on while the loop waits."""
    size = size_of(messages)

    assert least <= size <= max(2 * least, 1200)


def test_the_size_of_messages_of_frameworks_is_estimated() -> None:
    """LangChain and LlamaIndex keep their text in attributes."""
    langchain = pytest.importorskip("langchain_core.messages")
    llama = pytest.importorskip("llama_index.core.llms")
    blocks: Any = [{"type": "text", "text": "a" * 400}]
    for messages in (
        [langchain.HumanMessage("a" * 400)],
        [langchain.HumanMessage(blocks)],
        langchain.HumanMessage("a" * 400),
        [llama.ChatMessage("a" * 400)],
    ):
        assert 400 <= size_of(messages) < 1200
