"""Read what other memories of LlamaIndex saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.loading import (
    load_chat_store,  # pyright: ignore[reportUnknownVariableType] - theirs is partly untyped
)

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("read_other",)

_BUFFERS = frozenset({"ChatMemoryBuffer", "ChatSummaryMemoryBuffer"})


def read_other(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Turn the saved form of another memory of LlamaIndex into settings and messages.

    Returns:
        Arguments of `from_defaults`; `None` if it is not one of these.

    Raises:
        ConfigurationError: It holds memory blocks, which cannot be taken over.
    """
    if "log" in data:
        return None
    kind = data.get("class_name")
    limit = data.get("token_limit")
    if kind in _BUFFERS or "chat_store" in data or "chat_history" in data:
        key = str(data.get("chat_store_key") or "chat_history")
        return {
            "token_limit": limit,
            "session_id": key,
            "chat_history": _messages_of(data, key),
        }
    if kind == "Memory" or "token_flush_size" in data:
        if data.get("memory_blocks"):
            raise ConfigurationError(
                "the saved Memory has memory_blocks, which a CompactingMemory does not take: keep "
                "the Memory, and add a MuntinMemoryBlock to it"
            )
        return {"token_limit": limit, "session_id": data.get("session_id")}
    return None


def _messages_of(data: Mapping[str, Any], key: str) -> list[Any]:
    """Return the messages in a saved buffer."""
    if "chat_history" in data:  # the form of old versions
        return [ChatMessage.model_validate(one) for one in data["chat_history"]]
    store = dict(data.get("chat_store") or {})
    kept = store.get("store")
    if isinstance(kept, dict):
        rows = cast("dict[str, list[Any]]", kept).get(key, [])
        return [ChatMessage.model_validate(one) for one in rows]
    return list(load_chat_store(store).get_messages(key)) if store else []
