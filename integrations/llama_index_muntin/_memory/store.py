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

from llama_index_muntin._memory.log import owned

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

    from llama_index_muntin._memory.log import ConversationLog

__all__ = ("StoreMirror",)

_PAUSE = 0.002
"""Seconds between two looks whether another thread is done with the store."""


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
            await self._store.add_messages(self._key, owned(messages))
            self._log.append(messages)

    async def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Let both hold these messages and no others."""
        async with self._alone():
            if messages:
                # Copies: some stores keep the very objects.
                await self._store.set_messages(self._key, owned(messages))
            else:
                await self._store.delete_messages(self._key)
            self._log.replace(messages)
            self._loaded = True

    async def follow(self) -> None:
        """Read what the store holds and the log does not: at first, or written elsewhere."""
        async with self._alone():
            await self._load()

    async def _load(self) -> None:
        """Read on where the store holds more, and all where it holds something else.

        At first an empty store takes over what the log holds: nobody else has it.
        """
        known = len(self._log.messages)
        if self._loaded and await self._store.count_messages(self._key, None) == known:
            return
        stored = await self._store.get_messages(self._key, None)
        if known and not stored and not self._loaded:
            await self._store.add_messages(self._key, self._log.all())
        else:
            self._log.grow_to(stored)
        self._loaded = True

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Keep all other tasks, loops and threads out."""
        loop = asyncio.get_running_loop()
        with self._guard:
            gate = self._loop_gates.setdefault(loop, asyncio.Lock())
        async with gate:
            # A thread that waited for the gate would get it although its task was cancelled, and
            # nobody would ever open it again. Only one task of a loop waits here.
            while not self._gate.acquire(blocking=False):
                await asyncio.sleep(_PAUSE)
            try:
                yield
            finally:
                self._gate.release()
