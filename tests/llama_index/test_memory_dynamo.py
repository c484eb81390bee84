"""A conversation in a chat store that behaves as the one of DynamoDB does."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store import BaseChatStore
from pydantic import PrivateAttr

from llama_doubles import calling, memory_of, recap_of, result, said, talk

if TYPE_CHECKING:
    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


class Table:
    """Keep items, numbers as decimals; refuse floats, as the client of DynamoDB does."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}

    def put_item(self, key: str, history: list[dict[str, Any]]) -> None:
        self.items[key] = [_stored(one) for one in history]

    def get_item(self, key: str) -> list[dict[str, Any]]:
        return list(self.items.get(key, []))


def _stored(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stored(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_stored(one) for one in value]
    if isinstance(value, float):
        raise TypeError("Float types are not supported. Use Decimal types instead.")
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


class DynamoDBChatStore(BaseChatStore):
    """Read and write whole items; the async methods use a table that was never made."""

    _table: Table = PrivateAttr(default_factory=Table)

    @classmethod
    def class_name(cls) -> str:
        return "DynamoDBChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        self._table.put_item(key, [message.model_dump() for message in messages])

    def get_messages(self, key: str) -> list[ChatMessage]:
        return [ChatMessage.model_validate(one) for one in self._table.get_item(key)]

    def add_message(self, key: str, message: ChatMessage) -> None:
        self.set_messages(key, [*self.get_messages(key), message])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        gone = self.get_messages(key)
        self._table.items.pop(key, None)
        return gone

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        raise NotImplementedError

    def delete_last_message(self, key: str) -> ChatMessage | None:
        raise NotImplementedError

    def get_keys(self) -> list[str]:
        return list(self._table.items)

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        raise AttributeError("_atable")

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        raise AttributeError("_atable")

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        raise AttributeError("_atable")

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        raise AttributeError("_atable")


def test_a_conversation_in_dynamo_is_written_and_read(entry_point: EntryPoint) -> None:
    """Its async methods fail at every call."""
    store = DynamoDBChatStore()
    memory = memory_of(500, chat_store=store, session_id="ada")
    entry_point.call(memory, "put_messages", talk(20))
    entry_point.call(memory, "put", said("user", "and now?"))
    other = memory_of(500, chat_store=store, session_id="ada")

    assert entry_point.call(other, "get_all") == [*talk(20), said("user", "and now?")]
    entry_point.call(other, "set", talk(3))
    assert entry_point.call(memory, "get_all") == talk(3)
    entry_point.call(memory, "reset")
    assert store.get_keys() == []


def test_numbers_in_calls_are_the_same_after_dynamo(entry_point: EntryPoint) -> None:
    """A float was refused, and an int came back as another number, so each read lost the recap."""
    store = DynamoDBChatStore()
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return recap_of()(text, instruction)

    memory = memory_of(900, chat_store=store, summarizer=summarize)
    for at in range(12):
        turn = [
            said("user", f"Look into depot {at}.", seen=at, share=at / 8),
            calling(f"c{at}", part=at, ratio=0.5, rows=[1, {"deep": 2.5}]),
            result(f"c{at}", "parcels " * 30),
            said("assistant", f"Depot {at} is full."),
        ]
        entry_point.call(memory, "put_messages", turn)
    for _ in range(3):
        entry_point.call(memory, "get")
    again: Any = entry_point.call(memory_of(900, chat_store=store), "get_all")

    assert len(asked) == 1
    assert again == memory.log.all()
    assert again[4].additional_kwargs == {"seen": 1, "share": 0.125}
    assert again[1].blocks[0].tool_kwargs == {"part": 0, "ratio": 0.5, "rows": [1, {"deep": 2.5}]}
