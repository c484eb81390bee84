"""What LlamaIndex tests of its own memories, input by input, against `CompactingMemory`.

Where the outcome differs, the difference is a row or a point of the migration page.
"""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.utils import get_tokenizer
from pydantic import PrivateAttr

from llama_doubles import said
from llama_index_muntin import CompactingMemory
from llama_index_muntin.testing import StrictLLM
from muntin import ConfigurationError, ContextWindowExceeded, TiktokenCounter, count_messages

if TYPE_CHECKING:
    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

COUNTER = TiktokenCounter("cl100k_base")
FIRST, ANSWER = said("user", "first message"), said("assistant", "first answer")
SECOND, SECOND_ANSWER = said("user", "second message"), said("assistant", "second answer")


def cost(*messages: ChatMessage) -> int:
    """Count messages as they are sent; theirs counts the text alone."""
    return count_messages(messages, counter=COUNTER)


def of(limit: int | None = None, *history: ChatMessage, **more: Any) -> CompactingMemory:
    return CompactingMemory.from_defaults(
        chat_history=list(history), token_limit=limit, tokenizer_fn=get_tokenizer(), **more
    )


# --- of ChatMemoryBuffer -------------------------------------------------------------------------


def test_one_message_without_a_limit(entry_point: EntryPoint) -> None:
    """The first test of each memory."""
    assert entry_point.call(of(None, FIRST), "get") == [FIRST]


def test_a_small_prefix(entry_point: EntryPoint) -> None:
    """A prefix far below the limit changes nothing."""
    assert entry_point.call(of(1000, FIRST), "get", None, 5) == [FIRST]
    assert entry_point.call(of(1000, FIRST), "get", initial_token_count=5) == [FIRST]
    with pytest.raises(ConfigurationError, match="initial_token_count"):
        entry_point.call(of(1000, FIRST), "get", 5)


@pytest.mark.parametrize("limit", [49, 50])
def test_a_prefix_at_or_over_the_limit_is_an_error(limit: int, entry_point: EntryPoint) -> None:
    """Theirs raises `ValueError` over the limit, and returns nothing at the limit."""
    with pytest.raises(ContextWindowExceeded, match="initial_token_count"):
        entry_point.call(of(limit), "get", None, 50)


def test_space_for_less_than_a_turn_keeps_the_question(entry_point: EntryPoint) -> None:
    """Theirs returns an empty list: no question at all."""
    sent: Any = entry_point.call(of(cost(FIRST, ANSWER) - 1, FIRST, ANSWER), "get")

    assert FIRST in sent


@pytest.mark.parametrize("extra", [0, 3])
def test_space_for_the_second_turn(extra: int, entry_point: EntryPoint) -> None:
    """The newest question comes first, never an answer; its own answer may give its place."""
    history = (FIRST, ANSWER, SECOND, SECOND_ANSWER)
    limit = cost(SECOND, SECOND_ANSWER) + extra
    sent: Any = entry_point.call(of(limit, *history), "get")

    assert sent in ([SECOND], [SECOND, SECOND_ANSWER])
    assert cost(*sent) <= limit


def test_set_replaces(entry_point: EntryPoint) -> None:
    """`put` adds, `set` replaces."""
    memory = of(None, FIRST)
    entry_point.call(memory, "put", FIRST)
    assert entry_point.call(memory, "get") == [FIRST, FIRST]
    entry_point.call(memory, "set", [FIRST])
    assert entry_point.call(memory, "get") == [FIRST]


def test_a_limit_of_two_messages(entry_point: EntryPoint) -> None:
    """Newest last, never over the limit, and everything is still there."""
    limit = cost(FIRST, FIRST)
    memory = of(limit, FIRST)
    for message in (FIRST, FIRST, FIRST, said("user", "test message2")):
        entry_point.call(memory, "put", message)
        sent: Any = entry_point.call(memory, "get")
        assert cost(*sent) <= limit
        assert sent[-1] == message
    assert len(memory.get_all()) == 5


@pytest.mark.parametrize("way", ["string", "dict", "pickle"])
def test_saved_and_read(way: str) -> None:
    """A tokenizer of tiktoken cannot be pickled, and does not have to be."""
    memory = of(20, FIRST)
    again: Any = {
        "string": lambda: CompactingMemory.from_string(memory.to_string()),
        "dict": lambda: CompactingMemory.from_dict(memory.to_dict()),
        "pickle": lambda: pickle.loads(pickle.dumps(memory)),
    }[way]()

    assert again.get() == [FIRST]
    assert again.token_limit == 20
    assert again.counter == memory.counter == "tiktoken:cl100k_base"


# --- of ChatSummaryMemoryBuffer ------------------------------------------------------------------


def test_the_older_part_is_summarised(entry_point: EntryPoint) -> None:
    """Theirs asks again for each message; a recap of ours stays until the limit is reached."""
    llm = StrictLLM(lambda _: "They greeted.", window=8000)
    history = [
        said("user" if at % 2 == 0 else "assistant", f"Message {at}: " + "good day to you. " * 6)
        for at in range(12)
    ]
    memory = of(200, *history, summarizer=llm)
    sent: Any = entry_point.call(memory, "get")

    assert sent[0].content == "[Recap] They greeted."
    assert sent[0].role is MessageRole.USER
    assert sent[1:] == history[-len(sent) + 1 :]
    entry_point.call(memory, "put", said("user", "Message 12"))
    after: Any = entry_point.call(memory, "get")
    assert after[: len(sent)] == sent
    assert llm.calls == 1
    assert len(memory.get_all()) == 13


# --- of Memory -----------------------------------------------------------------------------------

MEDIA: list[Any] = [
    types.ImageBlock(url="http://example.com/image.jpg"),
    types.AudioBlock(url="http://example.com/audio.mp3"),
    types.DocumentBlock(
        url="http://example.com/doc.pdf", document_mimetype="application/pdf"
    ),
]  # fmt: skip
BLOCKS: dict[str, list[Any]] = {
    "media": MEDIA,
    "call": [
        types.ToolCallBlock(
            tool_call_id="c1", tool_name="search", tool_kwargs={"query": "word " * 50}
        )
    ],
    "thinking": [types.ThinkingBlock(content="let me reason about this carefully")],
    "citable": [
        types.CitableBlock(
            title="title",
            source="src",
            content=[types.TextBlock(text="hello world"), MEDIA[0]],
        )
    ],
}


@pytest.mark.parametrize("kind", sorted(BLOCKS))
def test_every_block_costs_something(kind: str) -> None:
    """Tool calls counted 0, so the queue never flushed."""
    for block in BLOCKS[kind]:
        message = ChatMessage(role="assistant", blocks=[block])
        assert cost(message) > cost(said("assistant", "")) + 3


def test_calls_with_large_arguments_are_folded(entry_point: EntryPoint) -> None:
    """Twenty messages stayed active with a limit of 50 words."""
    memory = CompactingMemory.from_defaults(token_limit=400, tokenizer_fn=str.split)
    for at in range(10):
        block = types.ToolCallBlock(
            tool_call_id=f"c{at}", tool_name="search", tool_kwargs={"query": "word " * 200}
        )
        entry_point.call(memory, "put", said("user", "hi"))
        entry_point.call(memory, "put", ChatMessage(role="assistant", blocks=[block]))
    sent: Any = entry_point.call(memory, "get")

    assert len(sent) < 20
    assert count_messages(sent, counter=lambda text: len(text.split())) <= 400


def test_over_the_limit_the_newest_question_stays(entry_point: EntryPoint) -> None:
    """Three messages of 500 words with a limit of 1,000."""
    memory = of(1000)
    entry_point.call(
        memory,
        "put_messages",
        [said("user", "x " * 500), said("assistant", "y " * 500), said("user", "z " * 500)],
    )
    sent: Any = entry_point.call(memory, "get")

    assert "z " in str(sent[-1].content)
    assert cost(*sent) <= 1000


def test_all_messages_by_status_and_a_reset(entry_point: EntryPoint) -> None:
    """`aget_all(status=)` and `areset(status=)` are of `Memory` alone."""
    memory = of(1000, FIRST, ANSWER)

    assert entry_point.call(memory, "get_all", status=MessageStatus.ACTIVE) == [FIRST, ANSWER]
    with pytest.raises(ConfigurationError, match="ARCHIVED"):
        entry_point.call(memory, "reset", status=MessageStatus.ARCHIVED)
    entry_point.call(memory, "reset", status=MessageStatus.ACTIVE)
    assert entry_point.call(memory, "get") == []


TURNS: dict[str, tuple[int, list[ChatMessage]]] = {
    "large question": (140, [said("user", "x " * 100), said("assistant", "ok")]),
    "two turns": (
        200,
        [said(role, f"{letter} " * 50) for role, letter in
         zip(("user", "assistant") * 2, "abcd", strict=True)],
    ),
    "a tool": (
        150,
        [said("user", "a " * 40), said("assistant", "b " * 20), said("tool", "c " * 20),
         said("assistant", "d " * 20)],
    ),
    "only a tool": (
        80, [said("user", "x " * 50), said("assistant", "call"), said("tool", "result")]
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(TURNS))
def test_the_first_message_is_a_user_and_no_result_stands_alone(
    kind: str, entry_point: EntryPoint
) -> None:
    """Bedrock takes nothing else, and a result without its call is refused by all."""
    limit, history = TURNS[kind]
    memory = of(limit)
    entry_point.call(memory, "put_messages", history)
    sent: Any = entry_point.call(memory, "get")

    assert sent
    assert sent[0].role is MessageRole.USER
    assert sent[0] == history[0] or kind == "two turns"
    assert all(message.role is not MessageRole.TOOL for message in sent)
    assert cost(*sent) <= limit


class Buckets(AsyncDBChatStore):
    """Keep active and archived messages apart, as a store of one's own may."""

    _rows: dict[MessageStatus, dict[str, list[ChatMessage]]] = PrivateAttr(
        default_factory=lambda: {status: {} for status in MessageStatus}
    )

    def _row(self, key: str, status: MessageStatus) -> list[ChatMessage]:
        return self._rows[status].setdefault(key, [])

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        wanted = [status] if status else [MessageStatus.ACTIVE, MessageStatus.ARCHIVED]
        found = [message for one in wanted for message in self._row(key, one)]
        return found[offset or 0 :][:limit]

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        return len(await self.get_messages(key, status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        self._row(key, status).append(message)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        self._row(key, status).extend(messages)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        self._row(key, status)[:] = messages

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        return self._row(key, MessageStatus.ACTIVE).pop(idx)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        for one in [status] if status else list(MessageStatus):
            self._row(key, one).clear()

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        active = self._row(key, MessageStatus.ACTIVE)
        oldest = active[:n]
        del active[:n]
        return oldest

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        oldest = await self.delete_oldest_messages(key, n)
        self._row(key, MessageStatus.ARCHIVED).extend(oldest)
        return oldest

    async def get_keys(self) -> list[str]:
        return list(self._rows[MessageStatus.ACTIVE])


def test_a_store_that_a_memory_archived_into_is_taken_over_in_order(
    entry_point: EntryPoint,
) -> None:
    """Archived messages came behind the active ones, and outlived a `set`."""
    store = Buckets()
    old = Memory.from_defaults(
        session_id="ada", token_limit=60, token_flush_size=20, chat_store=store
    )
    history = [
        said("user" if at % 2 == 0 else "assistant", f"m{at} " + "word " * 8) for at in range(12)
    ]
    for message in history:
        old.put(message)
    memory = of(2000, chat_store=store, session_id="ada")

    assert 0 < len(old.get_all(status=MessageStatus.ACTIVE)) < 12
    assert entry_point.call(memory, "get_all") == history
    entry_point.call(memory, "set", [FIRST])
    assert of(2000, chat_store=store, session_id="ada").get_all() == [FIRST]


def test_sync_puts_work_across_event_loops() -> None:
    """The sync wrappers make a loop for each call."""
    memory = of(1000, chat_store=Buckets())
    memory.put(said("user", "one"))
    memory.put(said("user", "two"))

    assert [message.content for message in memory.get_all()] == ["one", "two"]
