"""A memory written through into a chat store."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from llama_doubles import LossyStore, memory_of, put_one_by_one, said, size, talk
from llama_index_muntin._memory import ConversationLog

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


def test_a_store_is_written_through_and_read_back(entry_point: EntryPoint) -> None:
    """A conversation lives as long as its store."""
    store = LossyStore()
    memory = memory_of(500, chat_store=store, session_id="ada")
    entry_point.call(memory, "put_messages", talk(20))
    entry_point.call(memory, "put", said("user", "and now?"))
    other = memory_of(500, chat_store=store, session_id="ada")

    assert entry_point.call(other, "get_all") == [*talk(20), said("user", "and now?")]
    assert size(entry_point.call(other, "get")) <= 500  # pyright: ignore[reportArgumentType] - messages


def test_making_a_memory_erases_nothing(entry_point: EntryPoint) -> None:
    """Creating a summary buffer over a stored history emptied it."""
    store = LossyStore()
    asyncio.run(store.set_messages("ada", talk(5)))
    memory = memory_of(500, chat_store=store, session_id="ada")

    assert len(asyncio.run(store.get_messages("ada"))) == 5
    assert entry_point.call(memory, "get_all") == talk(5)


def test_one_session_does_not_see_another(entry_point: EntryPoint) -> None:
    """One store, many users."""
    store = LossyStore()
    ada, bob = (memory_of(500, chat_store=store, session_id=name) for name in ("ada", "bob"))
    entry_point.call(ada, "put", said("user", "alpha"))
    entry_point.call(bob, "put", said("user", "beta"))

    assert entry_point.call(bob, "get") == [said("user", "beta")]


def test_what_another_process_writes_is_seen(entry_point: EntryPoint) -> None:
    """Two servers may serve one conversation."""
    store = LossyStore()
    one, other = (memory_of(500, chat_store=store, session_id="ada") for _ in range(2))
    entry_point.call(one, "put", said("user", "first"))
    entry_point.call(other, "put", said("assistant", "second"))

    assert entry_point.call(one, "get") == [said("user", "first"), said("assistant", "second")]


def test_set_and_reset_reach_the_store(entry_point: EntryPoint) -> None:
    """A store that keeps what was reset brings it back after a restart."""
    store = LossyStore()
    memory = memory_of(500, chat_store=store, session_id="ada")
    entry_point.call(memory, "set", talk(4))
    assert len(asyncio.run(store.get_messages("ada"))) == 4
    entry_point.call(memory, "reset")

    assert asyncio.run(store.get_messages("ada")) == []


def test_a_read_that_is_cancelled_locks_nobody_out() -> None:
    """A client that gave up while another thread wrote left the memory locked for ever."""
    entered, done = threading.Event(), threading.Event()

    class Held(LossyStore):
        async def add_messages(
            self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
        ) -> None:
            entered.set()
            await asyncio.to_thread(done.wait, 20)
            await super().add_messages(key, messages)

    memory = memory_of(500, chat_store=Held())

    async def give_up() -> None:
        reading = asyncio.create_task(memory.aget())
        await asyncio.sleep(0.02)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    writer = threading.Thread(target=memory.put, args=(said("user", "hi"),), daemon=True)
    writer.start()
    assert entered.wait(20)
    asyncio.run(give_up())
    done.set()
    writer.join(20)
    reader = threading.Thread(target=memory.get, daemon=True)
    reader.start()
    reader.join(20)

    assert not reader.is_alive()
    assert not writer.is_alive()


def test_a_store_that_holds_the_same_is_not_read_again() -> None:
    """Each put and each get copied the whole conversation."""
    reads: list[int] = []

    class Counting(LossyStore):
        async def get_messages(
            self, key: str, status: Any = None, limit: Any = None, offset: Any = None
        ) -> list[ChatMessage]:
            if limit is None:
                reads.append(1)
            return await super().get_messages(key)

    memory = memory_of(3000, chat_store=Counting())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConversationLog, "all", lambda _: pytest.fail("copied as a whole"))
        for message in talk(20):
            memory.put(message)
            memory.get()

    assert len(reads) == 1


def test_sixty_puts_at_once_all_reach_a_store_that_loses_parallel_writes() -> None:
    """Silent loss is the store's, but whoever writes to it one by one does not suffer it."""

    async def chat() -> tuple[list[ChatMessage], list[ChatMessage]]:
        store = LossyStore()
        memory = memory_of(100_000, chat_store=store, session_id="ada")
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        return await store.get_messages("ada"), await memory.aget_all()

    stored, seen = asyncio.run(chat())

    assert [message.content for message in stored] == [f"m{at}" for at in range(60)]
    assert seen == stored


def test_sixty_puts_at_once_all_reach_the_default_store_of_llamaindex() -> None:
    """The same 60 puts leave 4 messages behind when `Memory` makes them."""

    async def chat() -> int:
        store = SQLAlchemyChatStore(table_name="t")
        memory = memory_of(100_000, chat_store=store, session_id="ada")
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        count = await store.count_messages("ada", None)
        await store._async_engine.dispose()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess] - it has no other way to close
        return count

    assert asyncio.run(chat()) == 60


def test_threads_and_loops_take_turns_at_a_store() -> None:
    """A sync put inside a loop runs in a loop of its own."""
    store = LossyStore()
    memory = memory_of(100_000, chat_store=store, session_id="ada")
    threads = [
        threading.Thread(
            target=put_one_by_one,
            args=(memory, [said("user", f"{n}-{at}") for at in range(8)]),
        )
        for n in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(asyncio.run(store.get_messages("ada"))) == len(memory.get_all()) == 32
