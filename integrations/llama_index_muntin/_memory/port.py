"""Operations on a chat store, the same for every kind LlamaIndex has.

An operation is a generator that yields calls and receives their results, so that one policy serves
stores with sync and async methods (`BaseChatStore`) and stores with async ones alone
(`AsyncDBChatStore`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from llama_index.core.storage.chat_store import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from llama_index_muntin._memory.messages import same_messages
from muntin.conversations import cleaned
from muntin.errors import ConfigurationError
from muntin.runtime import adrive as adrive_flow
from muntin.runtime import drive as drive_flow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.base.llms.types import ChatMessage

__all__ = ("Call", "Operation", "StorePort", "adrive", "drive", "port_of")

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method that exists sync, async or both."""

    method: str | None
    """Name of the async method; `None` if there is none that works."""
    plain: str | None
    """Name of the sync method; `None` if there is none."""
    args: tuple[Any, ...]
    """Arguments."""


Operation: TypeAlias = Generator[Call, Any, ResultT]
"""Yields calls, receives their results, returns a result."""


def drive(target: object, operation: Operation[ResultT]) -> ResultT:
    """Run an operation with the sync methods of a target."""
    return drive_flow(
        operation, lambda call: _method(target, call.plain or call.method)(*call.args)
    )


async def adrive(target: object, operation: Operation[ResultT]) -> ResultT:
    """Run an operation with the async methods of a target."""

    def answer(call: Call) -> Awaitable[Any]:
        if call.method is None:
            return asyncio.to_thread(_method(target, call.plain), *call.args)
        return _method(target, call.method)(*call.args)

    return await adrive_flow(operation, answer)


def _method(target: object, name: str | None) -> Callable[..., Any]:
    return getattr(target, name or "")


class StorePort(Protocol):
    """What a memory needs of a store."""

    store: Any
    """The store."""
    is_async_only: bool
    """Whether it has no sync methods."""

    def is_unchanged(self, key: str, known: Sequence[ChatMessage]) -> Operation[bool]:
        """Return whether the store surely holds what is known, without reading all of it."""
        ...

    def read(self, key: str) -> Operation[list[ChatMessage]]:
        """Read all messages."""
        ...

    def add(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        """Add messages, at least one."""
        ...

    def replace(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        """Hold these messages and no others; none deletes the conversation."""
        ...


class _DatabasePort:
    """A store with async methods that counts its messages."""

    is_async_only = True

    def __init__(self, store: AsyncDBChatStore) -> None:
        self.store = store

    def is_unchanged(self, key: str, known: Sequence[ChatMessage]) -> Operation[bool]:
        count = yield Call("count_messages", None, (key, None))
        if count != len(known):
            return False
        if not known:
            return True
        newest = yield Call("get_messages", None, (key, None, 1, count - 1))
        return bool(newest) and same_messages(cleaned(newest)[-1], known[-1])

    def read(self, key: str) -> Operation[list[ChatMessage]]:
        found = yield Call("get_messages", None, (key, None))
        active = yield Call("count_messages", None, (key, MessageStatus.ACTIVE))
        if active == len(found):
            return list(found)
        # A `Memory` archived the oldest. Some stores return these behind the others.
        archived = yield Call("get_messages", None, (key, MessageStatus.ARCHIVED))
        rest = yield Call("get_messages", None, (key, MessageStatus.ACTIVE))
        return [*archived, *rest]

    def add(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        yield Call("add_messages", None, (key, messages))

    def replace(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        # Of every status: some stores replace only the active ones.
        yield Call("delete_messages", None, (key,))
        if messages:
            yield Call("set_messages", None, (key, messages))


class _ChatStorePort:
    """A store with sync and async methods, which can only be read as a whole."""

    is_async_only = False

    def __init__(self, store: BaseChatStore) -> None:
        self.store = store

    def is_unchanged(self, key: str, known: Sequence[ChatMessage]) -> Operation[bool]:  # noqa: ARG002 - it has to be read
        return False
        yield  # an operation without a call

    def read(self, key: str) -> Operation[list[ChatMessage]]:
        found = yield Call("aget_messages", "get_messages", (key,))
        return list(found or [])

    def add(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        for message in messages:
            yield Call("async_add_message", "add_message", (key, message))

    def replace(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        if messages:
            yield Call("aset_messages", "set_messages", (key, messages))
        else:
            yield Call("adelete_messages", "delete_messages", (key,))


class _DynamoPort(_ChatStorePort):
    """A `DynamoDBChatStore`: its async methods cannot run, and its numbers are decimals.

    The async methods use a table that is never made, so the sync ones are called, in a thread where
    a loop is running. The database knows no floats and returns every number as a `Decimal`.
    """

    def read(self, key: str) -> Operation[list[ChatMessage]]:
        found: list[ChatMessage] | None = yield Call(None, "get_messages", (key,))
        return [_with_numbers(message, _plain) for message in found or []]

    def add(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        for message in messages:
            yield Call(None, "add_message", (key, _with_numbers(message, _decimal)))

    def replace(self, key: str, messages: list[ChatMessage]) -> Operation[None]:
        if messages:
            written = [_with_numbers(message, _decimal) for message in messages]
            yield Call(None, "set_messages", (key, written))
        else:
            yield Call(None, "delete_messages", (key,))


def _with_numbers(message: ChatMessage, convert: Callable[[Any], Any]) -> ChatMessage:
    """Copy a message with its numbers converted."""
    return message.model_copy(
        update={
            "additional_kwargs": _walked(message.additional_kwargs, convert),
            "blocks": [
                block.model_copy(
                    update={
                        name: _walked(value, convert)
                        for name, value in block
                        if isinstance(value, dict | list)
                    }
                )
                for block in message.blocks
            ],
        }
    )


def _walked(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _walked(one, convert) for key, one in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_walked(one, convert) for one in cast("list[Any]", value)]
    return convert(value)


def _plain(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def _decimal(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def port_of(store: object) -> StorePort:
    """Return the operations on a store.

    Raises:
        ConfigurationError: It is neither kind of chat store.
    """
    if isinstance(store, AsyncDBChatStore):
        return _DatabasePort(store)
    if isinstance(store, BaseChatStore):
        # By its name: the package of this store may not be installed.
        return (
            _DynamoPort(store)
            if store.class_name() == "DynamoDBChatStore"
            else _ChatStorePort(store)
        )
    raise ConfigurationError(
        f"chat_store must be a BaseChatStore or an AsyncDBChatStore, got a {type(store).__name__}"
    )
