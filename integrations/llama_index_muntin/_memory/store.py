"""Write a memory's log through into a chat store, so that both always hold the same.

One write at a time: some stores lose messages that are written at the same time. A write that is
cancelled still ends, in the background, before the next one begins; after one that failed, the
store is read again, and what a failed replacement destroyed is put back. Messages are kept in the
form in which the store returns them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from llama_index.core.async_utils import (
    asyncio_run,  # pyright: ignore[reportUnknownVariableType] - theirs is untyped
)

from llama_index_muntin._conversion import copy_of_message
from llama_index_muntin._memory.messages import owned, shared, stored_form
from llama_index_muntin._memory.port import adrive, drive, port_of
from muntin.conversations import cleaned
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from llama_index_muntin._memory.log import ConversationLog
    from llama_index_muntin._memory.port import Operation

__all__ = ("StoreMirror",)

_PAUSE = 0.002
"""Seconds between two attempts to acquire the lock that another thread holds."""


class StoreMirror:
    """Keep a log and a store the same.

    Args:
        store: A `BaseChatStore` or an `AsyncDBChatStore`.
        session_id: Key of the conversation in the store.
        log: The log.
    """

    def __init__(self, store: object, session_id: str, log: ConversationLog) -> None:
        self._port = port_of(store)
        self._key = session_id
        self._log = log
        self._settled = False
        self._lost: list[ChatMessage] | None = None
        self._gate = threading.Lock()
        self._holder: int | None = None
        self._writes: set[asyncio.Task[None]] = set()
        self._guard = threading.Lock()
        self._turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )

    def append(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages to both.

        Raises:
            ConfigurationError: One of them cannot be kept; nothing is changed.
        """
        self._write(self._appended(stored_form(owned(messages))))

    async def aappend(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages to both, as `append` does."""
        await self._awrite(self._appended(stored_form(owned(messages))))

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Let both hold these messages and no others.

        Raises:
            ConfigurationError: One of them cannot be kept; nothing is changed.
        """
        self._write(self._replaced(stored_form(owned(messages))))

    async def areplace(self, messages: Sequence[ChatMessage]) -> None:
        """Let both hold these messages and no others, as `replace` does."""
        await self._awrite(self._replaced(stored_form(owned(messages))))

    def follow(self) -> None:
        """Read what the store holds and the log does not.

        During a write of the same thread, the log is used unchanged.
        """
        if self._holder == threading.get_ident():
            return
        if self._port.is_async_only:
            asyncio_run(self.afollow())
            return
        with self._alone():
            drive(self._port.store, self._load())

    async def afollow(self) -> None:
        """Read what the store holds and the log does not."""
        async with self._aalone():
            await adrive(self._port.store, self._load())

    # --- policy ---------------------------------------------------------------------------------

    def _appended(self, messages: list[ChatMessage]) -> Operation[None]:
        yield from self._load()
        self._settled = False
        yield from self._port.add(self._key, _copies(messages))
        self._log.extend(messages)
        self._settled = True

    def _replaced(self, messages: list[ChatMessage]) -> Operation[None]:
        if messages:  # a reset needs nothing of what there was
            yield from self._load()
        before = self._log.all()
        same = shared(before, messages)
        self._settled = False
        if messages and same == len(before):
            if messages[same:]:
                yield from self._port.add(self._key, _copies(messages[same:]))
        else:
            try:
                yield from self._port.replace(self._key, _copies(messages))
            except GeneratorExit:  # the program ends: the next use puts it back
                self._lost = before
                raise
            except BaseException:
                self._lost = before
                yield from self._restore()
                raise
        self._lost = None
        self._log.hold(messages)
        self._settled = True

    def _restore(self) -> Operation[None]:
        """Put back what a failed replacement may have destroyed."""
        if self._lost is not None:
            yield from self._port.replace(self._key, _copies(self._lost))
            self._lost = None

    def _load(self) -> Operation[None]:
        """Read the store where it may hold something else than the log.

        At the first read, the messages of the log are written to an empty store, because only the
        log holds them.
        """
        yield from self._restore()
        known = list(self._log.messages)
        if self._settled and (yield from self._port.is_unchanged(self._key, known)):
            return
        stored = cleaned((yield from self._port.read(self._key)))
        if known and not stored and not self._settled:
            yield from self._port.add(self._key, self._log.all())
        else:
            same = shared(known, stored)
            self._log.hold([*known[:same], *owned(stored[same:])])
        self._settled = True

    # --- running it -----------------------------------------------------------------------------

    def _write(self, operation: Operation[None]) -> None:
        if self._holder == threading.get_ident():
            raise ConfigurationError(
                "a sync method of a memory was called while an async one of the same memory is "
                "running on this event loop: await the async method"
            )
        if self._port.is_async_only:
            asyncio_run(self._awrite(operation))
            return
        with self._alone():
            drive(self._port.store, operation)

    async def _awrite(self, operation: Operation[None]) -> None:
        """Write in a task of its own, which a cancelled caller leaves to its end."""
        write = asyncio.ensure_future(self._alone_with(operation))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        try:
            await asyncio.shield(write)
        except asyncio.CancelledError:
            write.add_done_callback(_log_failure)
            raise

    async def _alone_with(self, operation: Operation[None]) -> None:
        async with self._aalone():
            await adrive(self._port.store, operation)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Keep all other threads and loops out."""
        with self._gate:
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None

    @asynccontextmanager
    async def _aalone(self) -> AsyncGenerator[None]:
        """Keep all other tasks, threads and loops out.

        Tasks of one loop take turns. The lock is polled: a thread that waited for it would acquire
        it although its task was cancelled, and nothing would release it.
        """
        loop = asyncio.get_running_loop()
        with self._guard:
            turn = self._turns.setdefault(loop, asyncio.Lock())
        async with turn:
            while not self._gate.acquire(blocking=False):
                await asyncio.sleep(_PAUSE)
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None
                self._gate.release()


def _copies(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Copy messages for a store: some keep the very objects."""
    return [copy_of_message(message) for message in messages]


def _log_failure(write: asyncio.Task[Any]) -> None:
    """Log why a write failed after its caller was cancelled."""
    if not write.cancelled() and write.exception() is not None:
        logging.getLogger(__name__).error(
            "a cancelled write to a chat store failed; the store is read again at the next use",
            exc_info=write.exception(),
        )
