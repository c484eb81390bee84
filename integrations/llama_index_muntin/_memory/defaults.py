"""Arguments of other memories of LlamaIndex: those that are taken, and why others are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index_muntin._memory.port import port_of
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("check_arguments", "database_store")

_NO_BLOCKS = "it has no blocks; put a MuntinMemoryBlock into a Memory instead"
_PRICED = "media are counted by the prices of the model"
_REFUSED = {
    "memory_blocks": _NO_BLOCKS,
    "memory_blocks_template": _NO_BLOCKS,
    "memory_blocks_concurrency": _NO_BLOCKS,
    "insert_method": _NO_BLOCKS,
    "chat_history_token_ratio": "the whole token_limit is for the history",
    "token_flush_size": "a fold leaves about three quarters of token_limit",
    "image_token_size_estimate": _PRICED,
    "audio_token_size_estimate": _PRICED,
    "video_token_size_estimate": _PRICED,
    "document_token_size_estimate": _PRICED,
    "count_initial_tokens": "initial_token_count is always counted",
    "vector_store": "give embed_model= to recall turns by their vectors",
    "index_kwargs": "give embed_model= to recall turns by their vectors",
    "index": "give embed_model= to recall turns by their vectors",
    "retriever_kwargs": "give embed_model= to recall turns by their vectors",
    "primary_memory": "one memory folds and recalls",
    "secondary_memory_sources": "one memory folds and recalls",
    "note_role": "give recap_role=",
    "sql_store": "give chat_store=",
}
"""Arguments of `Memory`, `ChatSummaryMemoryBuffer`, `VectorMemory` and `SimpleComposableMemory`."""


def check_arguments(unknown: Iterable[str]) -> None:
    """Refuse arguments that a memory does not take, by name.

    Raises:
        ConfigurationError: There is at least one.
    """
    told = [f"{name} ({_REFUSED[name]})" if name in _REFUSED else name for name in sorted(unknown)]
    if told:
        raise ConfigurationError(f"CompactingMemory does not take {', '.join(told)}")


def database_store(chat_store: object, settings: Mapping[str, Any]) -> Any:
    """Return the chat store: the given one, or the one `Memory` makes of these settings.

    Args:
        chat_store: The store; `None` if there is none.
        settings: `table_name`, `async_database_uri`, `async_engine`, `db_schema`, each `None`
            where it is not given.

    Raises:
        ConfigurationError: It is not a chat store, or settings of another one are given as well.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if chat_store is not None:
        port_of(chat_store)  # refused here, by its own error
    if not given:
        return chat_store
    if chat_store is not None:
        raise ConfigurationError(
            f"give chat_store or {', '.join(sorted(given))}, not both: the latter make a store"
        )
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    made: dict[str, Any] = {"table_name": "llama_index_memory", **given}
    return SQLAlchemyChatStore(**made)
