"""Write to a memory: put, set and reset, in the log alone or through to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core.storage.chat_store.base_db import MessageStatus

from llama_index_muntin._memory.messages import is_answer
from llama_index_muntin._memory.settings import MemorySettings
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.types import ChatMessage

__all__ = ("WritableMemory",)


class WritableMemory(MemorySettings):
    """A memory whose messages can be added, replaced and removed.

    Each method changes the log and the store, or neither.
    """

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Add a message."""
        await self.aput_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages: all of them or, with an error, none.

        Raises:
            ConfigurationError: One of them is not a message, or cannot be written as JSON.
        """
        added = list(messages)
        if self._mirror is None:
            self.log.append(added)
        elif added:
            self._mirror.append(added)
        self._noted(added)

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages, as `put_messages` does."""
        added = list(messages)
        if self._mirror is None:
            self.log.append(added)
        elif added:
            await self._mirror.aappend(added)
        self._noted(added)

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Hold these messages and no others.

        Raises:
            ConfigurationError: One of them is not a message, or cannot be written as JSON; nothing
                is changed.
        """
        if self._mirror is None:
            self.log.replace(list(messages))
        else:
            self._mirror.replace(list(messages))
        self._expect()

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """Hold these messages and no others, as `set` does."""
        if self._mirror is None:
            self.log.replace(list(messages))
        else:
            await self._mirror.areplace(list(messages))
        self._expect()

    def reset(self, status: MessageStatus | None = None) -> None:
        """Forget everything.

        Args:
            status: As `Memory` takes one; `ACTIVE` forgets everything, too.

        Raises:
            ConfigurationError: It is `ARCHIVED`: the recap covers these messages.
        """
        _check_reset(status)
        self.set([])

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Forget everything, as `reset` does."""
        _check_reset(status)
        await self.aset([])

    def _noted(self, messages: Sequence[ChatMessage]) -> None:
        """Report new messages to the ledger; an answer closes the turn."""
        self._expect()
        if any(is_answer(message) for message in messages):
            self._room.close_turn()


def _check_reset(status: MessageStatus | None) -> None:
    if status == MessageStatus.ARCHIVED:
        raise ConfigurationError(
            "status must be None or ACTIVE, got ARCHIVED: the recap covers the archived messages, "
            "so they are forgotten together"
        )
