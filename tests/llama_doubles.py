"""Conversations, nodes and retrievers that the tests of the LlamaIndex adapter share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.chat_store import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from pydantic import PrivateAttr

from llama_index_muntin import CompactingMemory
from muntin import TiktokenCounter, count_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT = TiktokenCounter()
"""Counts as the strict mock's provider does."""

WORDS = [
    "the", "office", "keeps", "travel", "rules", "for", "every", "country", "and", "each",
    "of", "them", "names", "a", "cap", "in", "euros", "that", "holds", "per", "day", "unless",
    "the", "manager", "has", "agreed", "to", "more", "before", "the", "journey", "began",
]  # fmt: skip


def said(role: str, text: str, **kwargs: Any) -> ChatMessage:
    """Make a message of text."""
    return ChatMessage(role=MessageRole(role), content=text, additional_kwargs=kwargs)


def sentence(number: int, words: int = 34) -> str:
    """Make some prose that differs from number to number."""
    return " ".join(WORDS[(number * 7 + at) % len(WORDS)] for at in range(words)) + f" {number}."


def talk(count: int, words: int = 34) -> list[ChatMessage]:
    """Make a conversation of user and assistant in turns."""
    return [
        said("user" if at % 2 == 0 else "assistant", sentence(at, words)) for at in range(count)
    ]


def talk_of(tokens: int) -> list[ChatMessage]:
    """Make a conversation of at least so many tokens, by the exact count."""
    messages: list[ChatMessage] = []
    total = 3
    while total < tokens:
        role = "user" if len(messages) % 2 == 0 else "assistant"
        messages.append(said(role, sentence(len(messages))))
        total += count_messages(messages[-1:], counter=EXACT) - 3
    return messages


def calling(
    call_id: str, name: str = "look", *, form: str = "block", **arguments: Any
) -> ChatMessage:
    """Make an assistant's message that makes one call, in one of the forms providers leave."""
    import json

    if form == "block" and not hasattr(types, "ToolCallBlock"):
        form = "openai"  # older cores have no block for it
    if form == "block":
        block = types.ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=arguments)
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[block])
    written = json.dumps(arguments)
    entry: Any = {
        "openai": {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": written},
        },
        "anthropic": {"id": call_id, "type": "tool_use", "name": name, "input": arguments},
        "selection": {"tool_id": call_id, "tool_name": name, "tool_kwargs": arguments},
    }[form]
    return ChatMessage(role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": [entry]})


def result(call_id: str, text: str) -> ChatMessage:
    """Make the message that answers a call."""
    return said("tool", text, tool_call_id=call_id)


def found(*texts: str, scores: Sequence[float | None] | None = None) -> list[NodeWithScore]:
    """Make retrieved nodes `n0`, `n1`, ... of texts."""
    marks = scores or [0.9 - at / 100 for at in range(len(texts))]
    return [
        NodeWithScore(node=TextNode(text=text, id_=f"n{at}"), score=marks[at])
        for at, text in enumerate(texts)
    ]


def rules(count: int = 40, words: int = 80) -> list[NodeWithScore]:
    """Make nodes of different prose, about a hundred tokens each."""
    texts: list[str] = []
    for at in range(count):
        step = 1 + at % 5
        said_words = [
            WORDS[(at * 3 + place * step) % len(WORDS)]
            + (f" {at * place}" if place % 9 == 0 else "")
            for place in range(words)
        ]
        texts.append(f"Rule {at}: " + " ".join(said_words))
    return found(*texts)


class FixedRetriever(BaseRetriever):
    """Return the same nodes whatever is asked, and remember what was."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - theirs is partly untyped
        self.nodes = nodes
        self.asked: list[QueryBundle] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle)
        return list(self.nodes)


def memory_of(limit: int = 1000, **more: Any) -> CompactingMemory:
    """Make a memory that counts exactly."""
    settings: dict[str, Any] = {"token_limit": limit, "token_counter": EXACT, **more}
    return CompactingMemory.from_defaults(**settings)


def size(messages: list[ChatMessage]) -> int:
    """Count messages as they are sent."""
    return count_messages(messages, counter=EXACT)


def recap_of(text: str = "They spoke of travel rules.") -> Any:
    """Make a summariser that always says the same."""

    def summarize(_text: str, _instruction: str) -> str:
        return text

    return summarize


class LossyStore(AsyncDBChatStore):
    """Keep messages in a dict, and lose those that are written while another write is going on."""

    _rows: dict[str, list[ChatMessage]] = PrivateAttr(default_factory=dict)

    async def get_messages(
        self, key: str, status: Any = None, limit: Any = None, offset: Any = None
    ) -> list[ChatMessage]:
        return list(self._rows.get(key, []))

    async def count_messages(self, key: str, status: Any = None) -> int:
        return len(self._rows.get(key, []))

    async def add_message(
        self, key: str, message: ChatMessage, status: Any = MessageStatus.ACTIVE
    ) -> None:
        await self.add_messages(key, [message])

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
    ) -> None:
        read = list(self._rows.get(key, []))
        await asyncio.sleep(0.001)
        self._rows[key] = [*read, *messages]

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
    ) -> None:
        self._rows[key] = list(messages)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        return self._rows[key].pop(idx)

    async def delete_messages(self, key: str, status: Any = None) -> None:
        self._rows.pop(key, None)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        return [self._rows[key].pop(0) for _ in range(n)]

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        return []

    async def get_keys(self) -> list[str]:
        return list(self._rows)


def shared_prefix(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> float:
    """Return the share of a request that the next one begins with, in characters."""
    same = total = 0
    still = True
    for at, message in enumerate(before):
        length = len(message.model_dump_json())
        total += length
        still = still and at < len(after) and after[at] == message
        same += length if still else 0
    return same / total if total else 1.0


class JsonChatStore(BaseChatStore):
    """Keep messages as JSON texts under a key, as Redis, Postgres and DynamoDB stores do."""

    _rows: dict[str, list[str]] = PrivateAttr(default_factory=dict)

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the row."""
        self._rows.pop(key, None)
        for message in messages:
            self.add_message(key, message)

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Parse the row."""
        return [ChatMessage.model_validate_json(row) for row in self._rows.get(key, [])]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Add to the row."""
        self._rows.setdefault(key, []).append(message.model_dump_json())

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete the row."""
        gone = self.get_messages(key)
        self._rows.pop(key, None)
        return gone

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete one of the row."""
        return ChatMessage.model_validate_json(self._rows[key].pop(idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the last of the row."""
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        """List the rows."""
        return list(self._rows)


def put_one_by_one(memory: CompactingMemory, messages: list[ChatMessage]) -> None:
    """Put messages one at a time."""
    for message in messages:
        memory.put(message)
