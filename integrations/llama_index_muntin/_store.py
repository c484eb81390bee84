"""Write a memory's log through into any `AsyncDBChatStore`, one write at a time.

Some stores lose messages that are written at the same time. The log is what is read, so reading
does not cost a query of the whole conversation; a count tells when somebody else has written.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from llama_index_muntin._conversion import copy_of_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

    from llama_index_muntin._log import ConversationLog

__all__ = ("StoreMirror",)


class StoreMirror:
    """Keep a log and a store the same.

    Args:
        store: The store.
        session_id: Key of the conversation in it.
        log: What is read.
    """

    def __init__(self, store: AsyncDBChatStore, session_id: str, log: ConversationLog) -> None:
        self._store = store
        self._key = session_id
        self._log = log
        self._loaded = False
        self._guard = threading.Lock()
        self._gate = threading.Lock()
        self._loop_gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )

    async def append(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages to both."""
        async with self._alone():
            await self._load()
            await self._store.add_messages(self._key, _owned(messages))
            self._log.append(messages)

    async def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Let both hold these messages and no others."""
        async with self._alone():
            if messages:
                await self._store.set_messages(self._key, _owned(messages))
            else:
                await self._store.delete_messages(self._key)
            self._log.replace(messages)
            self._loaded = True

    async def follow(self) -> None:
        """Read what the store holds and the log does not: at first, or written elsewhere."""
        async with self._alone():
            await self._load()

    async def _load(self) -> None:
        known = self._log.all()
        if self._loaded and await self._store.count_messages(self._key, None) == len(known):
            return
        stored = await self._store.get_messages(self._key, None)
        if stored[: len(known)] == known:
            self._log.append(stored[len(known) :])
        else:
            self._log.replace(stored)
        self._loaded = True

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Keep all other tasks, loops and threads out."""
        loop = asyncio.get_running_loop()
        with self._guard:
            gate = self._loop_gates.setdefault(loop, asyncio.Lock())
        async with gate:
            # Only one task of a loop waits here, so the loop's threads are not used up by waiting.
            if not self._gate.acquire(blocking=False):
                await asyncio.to_thread(self._gate.acquire)
            try:
                yield
            finally:
                self._gate.release()


def _owned(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Copy what a store is given: some keep the very objects."""
    return [copy_of_message(message) for message in messages]
