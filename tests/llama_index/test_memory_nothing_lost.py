"""A memory and its store hold the same, and lose nothing, whatever fails or is cancelled."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from llama_doubles import JsonChatStore, LossyStore, memory_of, recap_of, said, talk
from muntin import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import EntryPoint
    from llama_index_muntin import CompactingMemory

pytestmark = pytest.mark.usefixtures("own_loop")


def sql_store(folder: Path) -> SQLAlchemyChatStore:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{folder / 'chats.db'}", poolclass=NullPool
    )  # the store cannot be closed, so no connection may outlive its session
    return SQLAlchemyChatStore(table_name="chats", async_engine=engine)


STORES: dict[str, Callable[[Path], Any]] = {
    "none": lambda _: None,
    "simple": lambda _: SimpleChatStore(),
    "json": lambda _: JsonChatStore(),
    "lossy": lambda _: LossyStore(),
    "sql": sql_store,
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Every kind of store, and none."""
    return STORES[request.param](tmp_path)


def on_disk(store: Any, key: str = "chat_history") -> list[ChatMessage]:
    """Read what a store holds, past the memory."""
    if isinstance(store, SimpleChatStore | JsonChatStore):
        return store.get_messages(key)
    return asyncio.run(store.get_messages(key, None))


def agrees(memory: CompactingMemory) -> list[ChatMessage]:
    """Return what a memory holds, after comparing it with its store and its saved form."""
    held = memory.get_all()
    if memory.chat_store is not None:
        assert on_disk(memory.chat_store) == held
    assert len(json.loads(memory.to_json())["log"]["messages"]) == len(held)
    return held


class Opaque:
    """An object that JSON has no form for."""


@pytest.mark.parametrize("verb", ["set", "put_messages", "put"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_message_that_cannot_be_written_changes_nothing(
    store: Any, verb: str, place: str, entry_point: EntryPoint
) -> None:
    """`set` deleted the history on disk before it failed; without a store every later save did."""
    memory = memory_of(500, chat_store=store)
    memory.put_messages(talk(4))
    bad = ChatMessage(role="user", content="x", additional_kwargs={"handle": Opaque()})
    batch: list[Any] = [bad, *talk(2)] if place == "first" else [*talk(2), bad]
    given: Any = bad if verb == "put" else batch

    with pytest.raises(ConfigurationError, match="handle"):
        entry_point.call(memory, verb, given)

    assert agrees(memory) == talk(4)
    entry_point.call(memory, "put", said("user", "and on"))
    assert len(agrees(memory)) == 5


def test_an_empty_batch_is_no_write(store: Any, entry_point: EntryPoint) -> None:
    """An insert of no rows is an IntegrityError in SQL."""
    memory = memory_of(500, chat_store=store)
    entry_point.call(memory, "put_messages", [])
    assert memory.get_all() == []
    entry_point.call(memory, "put_messages", talk(2))
    entry_point.call(memory, "put_messages", [])

    assert agrees(memory) == talk(2)


def test_plain_values_come_back_alike_from_memory_and_store(
    store: Any, entry_point: EntryPoint
) -> None:
    """A set in `additional_kwargs` is a list on disk: two readers saw two conversations."""
    memory = memory_of(500, chat_store=store)
    kwargs = {"tags": {"a"}, "at": 2.5, "deep": {"x": [1, None]}}
    entry_point.call(memory, "put", ChatMessage(role="user", content="x", additional_kwargs=kwargs))

    assert len(agrees(memory)) == 1


@pytest.mark.parametrize("during", ["reset", "set"])
def test_a_fold_whose_messages_are_gone_is_reported_as_discarded(store: Any, during: str) -> None:
    """The outcome claimed `compacted`, and the recap told of a conversation that was reset."""

    async def chat() -> CompactingMemory:
        started, gone = asyncio.Event(), asyncio.Event()

        async def summarize(text: str, instruction: str) -> str:
            started.set()
            await gone.wait()
            return "They spoke of travel rules."

        memory = memory_of(500, chat_store=store, summarizer=summarize)
        await memory.aput_messages(talk(30))
        reading = asyncio.create_task(memory.aget())
        await started.wait()
        await (memory.areset() if during == "reset" else memory.aset([said("user", "Anew.")]))
        gone.set()
        await reading
        return memory

    memory = asyncio.run(chat())

    assert memory.last_outcome is not None
    assert memory.last_outcome.reason == "history_changed"
    assert memory.last_outcome.folded == ()
    assert memory.log.recap == ""
    assert len(agrees(memory)) == (0 if during == "reset" else 1)


@pytest.mark.parametrize("after", [0.0, 0.001, 0.003, 0.01])
@pytest.mark.parametrize("verb", ["aput_messages", "aset", "areset"])
def test_a_write_that_is_cancelled_is_whole_or_absent(store: Any, verb: str, after: float) -> None:
    """A client that disconnects must not leave a conversation half replaced."""
    new = [said("user", f"new {at}") for at in range(5)]

    async def chat() -> CompactingMemory:
        memory = memory_of(900, chat_store=store)
        await memory.aput_messages(talk(6))
        args = () if verb == "areset" else (new,)
        write = asyncio.create_task(getattr(memory, verb)(*args))
        await asyncio.sleep(after)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        await memory.aget_all()
        return memory

    memory = asyncio.run(chat())
    whole = {"aput_messages": [*talk(6), *new], "aset": new, "areset": []}[verb]

    assert agrees(memory) in (talk(6), whole)


class Failing(LossyStore):
    """A store whose connection breaks in the middle of a write, once or for good."""

    fails: int = 1

    async def set_messages(self, key: str, messages: list[ChatMessage], status: Any = None) -> None:
        await self.delete_messages(key)
        if self.fails:
            self.fails -= 1
            await super().set_messages(key, messages[:1])
            raise OSError("connection lost")
        await super().set_messages(key, messages)


@pytest.mark.parametrize("fails", [1, 2])
def test_what_a_broken_replacement_destroyed_is_put_back(
    fails: int, entry_point: EntryPoint
) -> None:
    """Stores delete first and insert then; a crash in between was the end of the conversation."""
    store = Failing(fails=fails)
    memory = memory_of(900, chat_store=store)
    entry_point.call(memory, "put_messages", talk(6))

    with pytest.raises(OSError, match="connection lost"):
        entry_point.call(memory, "set", [said("user", "Anew.")])
    entry_point.call(memory, "get")

    assert agrees(memory) == talk(6)


class LostReply(LossyStore):
    """A store that writes, and whose answer never arrives."""

    async def add_messages(self, key: str, messages: list[ChatMessage], status: Any = None) -> None:
        await super().add_messages(key, messages)
        raise OSError("no answer")


def test_a_write_of_unknown_fate_is_looked_up(entry_point: EntryPoint) -> None:
    """The row was there, the memory did not know it, and the next write hid that."""
    store = LostReply()
    memory = memory_of(900, chat_store=store)
    with pytest.raises(OSError, match="no answer"):
        entry_point.call(memory, "put", said("user", "written?"))

    assert agrees(memory) == [said("user", "written?")]


def test_a_set_that_continues_the_conversation_keeps_its_recap(
    store: Any, entry_point: EntryPoint
) -> None:
    """Engines are given `chat_history=` at every request: each paid for the same recap again."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return "They spoke of travel rules."

    memory = memory_of(900, chat_store=store, summarizer=summarize)
    history = talk(40)
    for _ in range(3):
        entry_point.call(memory, "set", history)
        entry_point.call(memory, "get")
        history = [*history, *talk(2)]

    assert len(asked) == 1
    assert len(agrees(memory)) == 44


def test_two_memories_of_one_store_lose_nothing(tmp_path: Path, entry_point: EntryPoint) -> None:
    """Two workers answer one conversation in turn, and each folds what both have put."""
    for make in ("simple", "json", "sql"):
        store = STORES[make](tmp_path)
        pair = [memory_of(900, chat_store=store, summarizer=recap_of()) for _ in range(2)]
        for at in range(60):
            entry_point.call(
                pair[at % 2], "put", said("user" if at % 2 else "assistant", f"say {at}")
            )
            if at % 7 == 0:
                entry_point.call(pair[(at + 1) % 2], "get")

        first, second = (entry_point.call(one, "get_all") for one in pair)
        assert first == second == on_disk(store)
        assert [one.content for one in on_disk(store)] == [f"say {at}" for at in range(60)]


def test_a_recap_survives_what_another_worker_puts(tmp_path: Path) -> None:
    """A message of another process made the memory forget its recap, and pay for it again."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return "They spoke of travel rules."

    store = sql_store(tmp_path)
    mine = memory_of(900, chat_store=store, summarizer=summarize)
    other = memory_of(900, chat_store=store)
    mine.put_messages(talk(40))
    mine.get()
    for at in range(4):
        other.put(said("user", f"from elsewhere {at}"))
        mine.put(said("assistant", f"here {at}"))
        mine.get()

    assert len(asked) == 1
    assert mine.log.recap
    assert len(mine.get_all()) == 48


async def put_many(memory: CompactingMemory, name: str, count: int) -> None:
    for at in range(count):
        await memory.aput(said("user", f"{name} {at}"))


@pytest.mark.slow
def test_a_thousand_interleaved_puts_are_all_kept(tmp_path: Path) -> None:
    """Two processes write to one database at the same time."""
    import subprocess
    import sys

    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from test_memory_nothing_lost import put_many, sql_store\n"
        "from llama_doubles import memory_of\n"
        "memory = memory_of(900, chat_store=sql_store(Path(sys.argv[1])))\n"
        "asyncio.run(put_many(memory, sys.argv[2], 500))\n"
    )
    here = __file__.rpartition("/")[0]
    memory_of(900, chat_store=sql_store(tmp_path)).put(said("user", "first"))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), name],
            env={"PYTHONPATH": f"{here}:{here.rpartition('/')[0]}", "PATH": "/usr/bin:/bin"},
        )
        for name in ("a", "b")
    ]
    assert [one.wait(timeout=300) for one in running] == [0, 0]

    kept = [one.content for one in memory_of(900, chat_store=sql_store(tmp_path)).get_all()]
    for name in ("a", "b"):
        assert [text for text in kept if text and text.startswith(f"{name} ")] == [
            f"{name} {at}" for at in range(500)
        ]
    assert len(kept) == 1001


texts = st.text(st.characters(exclude_categories=()), min_size=1, max_size=60)
messages = st.builds(said, st.sampled_from(["user", "assistant", "system"]), texts)


class MemoryAndStore(RuleBasedStateMachine):
    """Any order of reads, writes, failures and resets leaves memory and store with the same."""

    @initialize(kind=st.sampled_from(["none", "simple", "json", "lossy"]))
    def start(self, kind: str) -> None:
        self.store = {
            "none": lambda: None,
            "simple": SimpleChatStore,
            "json": JsonChatStore,
            "lossy": LossyStore,
        }[kind]()
        self.memory = memory_of(200, chat_store=self.store)
        self.expected: list[str] = []

    def _run(self, verb: str, *args: Any, is_async: bool) -> Any:
        if is_async:
            return asyncio.run(getattr(self.memory, f"a{verb}")(*args))
        return getattr(self.memory, verb)(*args)

    @rule(batch=st.lists(messages, max_size=6), is_async=st.booleans())
    def put(self, batch: list[ChatMessage], is_async: bool) -> None:  # noqa: FBT001 - drawn
        self._run("put_messages", batch, is_async=is_async)
        self.expected += [_plain(one) for one in batch]

    @rule(batch=st.lists(messages, max_size=6), is_async=st.booleans())
    def replace(self, batch: list[ChatMessage], is_async: bool) -> None:  # noqa: FBT001 - drawn
        self._run("set", batch, is_async=is_async)
        self.expected = [_plain(one) for one in batch]

    @rule(batch=st.lists(messages, max_size=3), verb=st.sampled_from(["set", "put_messages"]))
    def refuse(self, batch: list[ChatMessage], verb: str) -> None:
        bad: list[Any] = [*batch, object()]
        with pytest.raises(ConfigurationError):
            self._run(verb, bad, is_async=False)

    @rule(is_async=st.booleans())
    def forget(self, is_async: bool) -> None:  # noqa: FBT001 - drawn
        self._run("reset", is_async=is_async)
        self.expected = []

    @rule(is_async=st.booleans())
    def read(self, is_async: bool) -> None:  # noqa: FBT001 - drawn
        try:
            self._run("get", is_async=is_async)
        except Exception as error:
            if type(error).__name__ != "ContextWindowExceeded":
                raise

    @rule(is_async=st.booleans())
    def write_elsewhere(self, is_async: bool) -> None:  # noqa: FBT001 - drawn
        if self.store is None:
            return
        other = memory_of(200, chat_store=self.store)
        other.put(said("user", "from elsewhere"))
        self._run("get_all", is_async=is_async)
        self.expected.append("from elsewhere")

    @invariant()
    def both_hold_the_same(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert [one.content for one in agrees(self.memory)] == self.expected


def _plain(message: ChatMessage) -> str:
    """Return the text of a message, as UTF-8 can write it."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in _text(message))


def _text(message: ChatMessage) -> str:
    assert message.role is not MessageRole.TOOL
    return message.content or ""


TestMemoryAndStore = MemoryAndStore.TestCase
TestMemoryAndStore.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
TestMemoryAndStore = pytest.mark.usefixtures("own_loop")(TestMemoryAndStore)


def test_a_sync_verb_during_an_async_one_is_refused_not_deadlocked(tmp_path: Path) -> None:
    """A lock held by a task of the same thread waits for itself for ever."""
    refused: list[type[BaseException]] = []

    class Calling(JsonChatStore):
        async def async_add_message(self, key: str, message: ChatMessage) -> None:
            try:
                memory.put(said("user", "inside"))
            except ConfigurationError as error:
                refused.append(type(error))
            assert isinstance(memory.get_all(), list)
            self.add_message(key, message)

    memory = memory_of(900, chat_store=Calling())
    asyncio.run(memory.aput(said("user", "outside")))

    assert refused == [ConfigurationError]
    assert [one.content for one in agrees(memory)] == ["outside"]
