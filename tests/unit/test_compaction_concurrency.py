"""One compactor, many threads and tasks: one summary each, nothing lost, no deadlock."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from chats import Recorder, chat, said, texts
from muntin.conversations.compaction import HistoryCompactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.conversations.compaction import Compaction
    from muntin.messages.message import Message


class Gate:
    """A summariser that waits until it is let go, and says when it was asked."""

    def __init__(self, reply: str = "SUM", *, fails: bool = False) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()
        self.calls = 0
        self._reply = reply
        self._fails = fails

    def __call__(self, text: str, instruction: str) -> str:
        self.calls += 1
        self.asked.set()
        assert self.go.wait(30)
        if self._fails:
            raise OSError("down")
        return self._reply


def waiting(
    compactor: HistoryCompactor, gate: Gate, history: list[Any], times: int
) -> list[Compaction]:
    """Ask from so many threads while the first one's summary is being made."""
    with ThreadPoolExecutor(times) as pool:
        futures = [pool.submit(compactor.fold, history) for _ in range(times)]
        assert gate.asked.wait(30)
        gate.go.set()
        return [future.result(30) for future in futures]


def gated(*, fails: bool = False) -> tuple[HistoryCompactor, Gate]:
    gate = Gate(fails=fails)
    return HistoryCompactor(gate, keep_recent=2, trigger_tokens=60), gate


def test_eight_threads_with_one_conversation_cost_one_summary() -> None:
    """Eight open tabs of one chat, one model call, one and the same recap."""
    compactor, gate = gated()
    history = chat(20)
    done = waiting(compactor, gate, history, 8)
    assert gate.calls == 1
    assert {tuple(texts(list(one.messages))) for one in done} == {("[Recap] SUM", "m018", "m019")}
    assert sorted(one.outcome.reason for one in done) == ["compacted", *["reused"] * 7]


def test_those_who_waited_for_a_failure_share_it() -> None:
    """A provider that is down is not asked eight times in a row for the same thing."""
    compactor, gate = gated(fails=True)
    history = chat(20)
    done = waiting(compactor, gate, history, 8)
    assert gate.calls == 1
    assert all(one.messages is history for one in done)
    assert {one.outcome.reason for one in done} == {"summary_failed"}
    assert sorted(one.outcome.model_calls for one in done) == [*[0] * 7, 1]


def test_tasks_of_one_loop_share_a_summary_too() -> None:
    """The async entry point keeps the same promise, and the loop goes on meanwhile."""
    calls: list[str] = []

    async def main() -> list[list[Message]]:
        release = asyncio.Event()

        async def slow(text: str, instruction: str) -> str:
            calls.append(text)
            await release.wait()
            return "SUM"

        compactor = HistoryCompactor(slow, keep_recent=2, trigger_tokens=60)
        tasks = [asyncio.create_task(compactor.acompact(chat(20))) for _ in range(8)]
        await asyncio.sleep(0)
        release.set()
        return await asyncio.gather(*tasks)

    outs = asyncio.run(main())
    assert len(calls) == 1
    assert {tuple(texts(out)) for out in outs} == {("[Recap] SUM", "m018", "m019")}


def test_a_task_that_stops_waiting_does_not_disturb_the_others() -> None:
    async def main() -> list[Message]:
        release = asyncio.Event()

        async def slow(text: str, instruction: str) -> str:
            await release.wait()
            return "SUM"

        compactor = HistoryCompactor(slow, keep_recent=2, trigger_tokens=60)
        leader = asyncio.create_task(compactor.acompact(chat(20)))
        await asyncio.sleep(0)
        impatient = asyncio.create_task(compactor.acompact(chat(20)))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        release.set()
        return await leader

    assert texts(asyncio.run(main())) == ["[Recap] SUM", "m018", "m019"]


def test_when_the_leader_is_cancelled_a_waiter_takes_over() -> None:
    async def main() -> tuple[int, list[Message]]:
        calls = 0
        release = asyncio.Event()

        async def slow(text: str, instruction: str) -> str:
            nonlocal calls
            calls += 1
            await release.wait()
            return f"SUM{calls}"

        compactor = HistoryCompactor(slow, keep_recent=2, trigger_tokens=60)
        leader = asyncio.create_task(compactor.acompact(chat(20)))
        await asyncio.sleep(0)
        waiter = asyncio.create_task(compactor.acompact(chat(20)))
        await asyncio.sleep(0)
        leader.cancel()
        release.set()
        return calls, await waiter

    assert texts(asyncio.run(main())[1]) == ["[Recap] SUM2", "m018", "m019"]


@pytest.mark.parametrize("added", [1, 3])
def test_a_message_that_comes_meanwhile_is_neither_lost_nor_covered(added: int) -> None:
    """The user goes on typing while the recap is made."""
    compactor, gate = gated()
    history = chat(20)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compactor.fold, history)
        assert gate.asked.wait(30)
        history += chat(added, start=20)
        gate.go.set()
        done = future.result(30)
    assert texts(list(done.messages)) == ["[Recap] SUM", *texts(history[18:])]
    assert done.outcome.covered == 18


def test_a_longer_history_waits_for_the_recap_of_the_shorter_one() -> None:
    """Two requests of one chat, a turn apart: one summary, and each gets its own tail."""
    compactor, gate = gated()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(compactor.compact, chat(20))
        assert gate.asked.wait(30)
        second = pool.submit(compactor.compact, chat(21))
        gate.go.set()
        assert texts(first.result(30)) == ["[Recap] SUM", "m018", "m019"]
        assert texts(second.result(30)) == ["[Recap] SUM", "m018", "m019", "m020"]
    assert gate.calls == 1


def test_messages_removed_meanwhile_do_not_come_back_as_a_recap() -> None:
    """The user cleared the chat while its recap was made."""
    compactor, gate = gated()
    history = chat(20)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compactor.fold, history)
        assert gate.asked.wait(30)
        history[:] = chat(3, start=500)
        gate.go.set()
        done = future.result(30)
    assert done.messages is history
    assert done.outcome.reason == "history_changed"


def test_different_conversations_do_not_wait_for_each_other() -> None:
    """One stuck provider call must not stop the whole server."""
    compactor, gate = gated()
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(compactor.compact, chat(20))
        assert gate.asked.wait(30)
        out = compactor.compact(chat(20, start=500), summarize=Recorder("OTHER"))
        assert texts(out)[0] == "[Recap] OTHER"
        assert not stuck.done()
        gate.go.set()
        assert texts(stuck.result(30))[0] == "[Recap] SUM"


def test_a_plain_call_never_blocks_the_loop_a_pass_needs() -> None:
    """A plain call in the loop's own thread, while a task of that loop makes the summary."""

    async def main() -> tuple[list[Message], str, list[Message]]:
        release = asyncio.Event()

        async def slow(text: str, instruction: str) -> str:
            await release.wait()
            return "SUM"

        compactor = HistoryCompactor(slow, keep_recent=2, trigger_tokens=60)
        history = chat(20)
        leader = asyncio.create_task(compactor.acompact(history))
        await asyncio.sleep(0)
        now = compactor.compact(history)
        assert now is history
        assert compactor.last_outcome is not None
        reason = compactor.last_outcome.reason
        release.set()
        return now, reason, await leader

    _, reason, out = asyncio.run(main())
    assert reason == "in_flight"
    assert texts(out) == ["[Recap] SUM", "m018", "m019"]


@pytest.mark.parametrize("timeout", [None, 30.0])
def test_a_summariser_that_asks_for_a_summary_itself_does_not_wait_for_itself(
    timeout: float | None,
) -> None:
    """An agent as a summariser may pass through the same compactor: no deadlock, no recursion."""
    reasons: list[str] = []
    history = chat(20)

    def plain(text: str, instruction: str) -> str:
        reasons.append(compactor.fold(history).outcome.reason)
        return "SUM"

    async def twin(text: str, instruction: str) -> str:
        reasons.append((await compactor.afold(history)).outcome.reason)
        return "SUM"

    runs: list[tuple[Any, Callable[[], list[Message]]]] = [
        (plain, lambda: compactor.compact(history)),
        (plain, lambda: asyncio.run(compactor.acompact(history))),
        (twin, lambda: compactor.compact(history)),
        (twin, lambda: asyncio.run(compactor.acompact(history))),
    ]
    for summarize, go in runs:
        compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60, timeout=timeout)
        assert texts(go()) == ["[Recap] SUM", "m018", "m019"]
    assert reasons == ["in_flight"] * 4


def test_many_threads_on_many_conversations_lose_nothing() -> None:
    """Eight workers, twelve chats that grow: every message is covered or there, each time."""
    compactor = HistoryCompactor(Recorder("SUM"), keep_recent=2, trigger_tokens=100)

    def grow(number: int) -> None:
        history: list[Message] = []
        for turn in range(60):
            history.append(said(1_000 * number + turn))
            done = compactor.fold(history)
            recap = done.outcome.covered > 0
            assert len(done.messages) == len(history) - done.outcome.covered + recap
            assert list(done.messages)[recap:] == history[done.outcome.covered :]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(grow, range(12)))
