"""Saved forms: those of other memories of LlamaIndex, and counters found again by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.storage.chat_store.loading import (
    load_chat_store,  # pyright: ignore[reportUnknownVariableType] - theirs is partly untyped
)

from llama_index_muntin._models import counter_named
from muntin.counting import TiktokenCounter, count_tokens, counter_for, counter_name
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.counting import NamedCounter, TokenCounter

__all__ = ("counter_of_tokenizer", "counter_saved", "name_to_save", "read_other")

_OWN = "own:"
"""Prefix of the saved name of a counter that cannot be found by its name."""
_BUFFERS = frozenset({"ChatMemoryBuffer", "ChatSummaryMemoryBuffer"})


def counter_of_tokenizer(tokenizer: Any) -> TokenCounter:
    """Return the counter of a tokenizer: the exact one where it is tiktoken's, by its name."""
    inner: Any = tokenizer
    while isinstance(inner, partial):
        inner = cast("Any", inner).func
    encoding = getattr(getattr(inner, "__self__", None), "name", None)
    if type(getattr(inner, "__self__", None)).__module__.startswith("tiktoken") and encoding:
        return TiktokenCounter(str(encoding))
    return lambda text: len(tokenizer(text))


def name_to_save(counter: NamedCounter) -> str:
    """Return the name to save for a counter; one that no name finds again is marked."""
    name = counter.name
    return name if _is_found(name) else f"{_OWN}{name.removeprefix(_OWN)}"


def counter_saved(name: str) -> NamedCounter:
    """Find a counter by the name it was saved under.

    Raises:
        ConfigurationError: It was a counter of the caller's own, which no name finds.
    """
    if name.startswith(_OWN):
        raise ConfigurationError(
            f"this memory was saved with a token counter of your own ({name[len(_OWN) :]!r}), "
            f"which is not part of the saved form: read it with token_counter= or tokenizer_fn="
        )
    return counter_named(name)


def _is_found(name: str) -> bool:
    return counter_named(name).name == name or name == counter_name(counter_for(count_tokens))


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
    from llama_index.core.base.llms.types import ChatMessage

    if "chat_history" in data:  # the form of old versions
        return [ChatMessage.model_validate(one) for one in data["chat_history"]]
    store = dict(data.get("chat_store") or {})
    kept = store.get("store")
    if isinstance(kept, dict):
        rows = cast("dict[str, list[Any]]", kept).get(key, [])
        return [ChatMessage.model_validate(one) for one in rows]
    return list(load_chat_store(store).get_messages(key)) if store else []
