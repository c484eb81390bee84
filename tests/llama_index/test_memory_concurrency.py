"""Puts at the same time, templates in the history, and what a long chat costs."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import threading
import time

import pytest

pytest.importorskip("llama_index.core")


from typing import TYPE_CHECKING

from llama_doubles import memory_of, recap_of, said, sentence, talk

if TYPE_CHECKING:
    from llama_index_muntin import (
        CompactingMemory,
    )

pytestmark = pytest.mark.usefixtures("own_loop")


def test_sixty_puts_at_once_store_sixty_in_order() -> None:
    """`Memory` stores 4 of 60 and raises nothing."""

    async def chat() -> CompactingMemory:
        memory = memory_of(100_000)
        await memory.aput(said("user", "warm-up"))
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        return memory

    stored = [message.content for message in asyncio.run(chat()).get_all()]

    assert stored == ["warm-up", *(f"m{at}" for at in range(60))]


def test_twenty_first_puts_at_once_store_twenty() -> None:
    """The first use of a fresh `Memory` by 20 tasks raises 20 times."""

    async def chat() -> CompactingMemory:
        memory = memory_of(300, summarizer=recap_of())
        await asyncio.gather(*(memory.aput(said("user", sentence(at))) for at in range(20)))
        return memory

    assert len(asyncio.run(chat()).get_all()) == 20


def test_threads_that_put_at_once_lose_nothing() -> None:
    """Streaming engines write the answer from a thread of their own."""
    memory = memory_of(800, summarizer=recap_of())

    def work(name: int) -> None:
        for at in range(25):
            memory.put(said("user", f"{name}-{at} {sentence(at)}"))
            memory.get()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contents = [str(message.content) for message in memory.get_all()]

    assert len(contents) == 150
    for name in range(6):
        mine = [text for text in contents if text.startswith(f"{name}-")]
        assert mine == sorted(mine, key=lambda text: int(text.split()[0].split("-")[1]))


def test_a_sync_verb_works_inside_a_running_loop() -> None:
    """Core calls `get` from coroutines."""

    async def chat() -> int:
        memory = memory_of(400, summarizer=recap_of())
        memory.put_messages(talk(30))
        return len(memory.get())

    assert asyncio.run(chat()) > 1


def test_a_turn_costs_the_same_however_long_the_chat_is() -> None:
    """Each `get` of a buffer reads and counts everything again."""

    def turns(memory: CompactingMemory, count: int) -> float:
        begun = time.process_time()  # a busy machine does not stretch it
        for at in range(count):
            memory.put(said("user", sentence(at)))
            memory.get()
        return (time.process_time() - begun) / count

    memory = memory_of(1500, summarizer=recap_of())
    memory.put_messages(talk(100))
    turns(memory, 40)
    early = min(turns(memory, 50) for _ in range(3))
    for message in talk(700):
        memory.put(message)
    late = min(turns(memory, 50) for _ in range(3))

    assert late < 4 * early


@pytest.mark.slow
def test_a_read_of_two_thousand_messages_takes_no_time() -> None:
    """It was reported as a minute, and is quadratic still."""
    memory = memory_of(2000, summarizer=recap_of())
    for message in talk(2000):
        memory.put(message)
    begun = time.perf_counter()
    memory.get()

    assert time.perf_counter() - begun < 0.05
