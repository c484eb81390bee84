"""Write decisions and messages into the store, and read them back.

A decision holds notes and shortened results, tens of thousands of characters. They are stored under
the hash of their content; a record holds only the figures that show whether it is still valid.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict

from muntin.errors import StateError, ToolResultNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.adapting import Saved
    from muntin.tool_results import ToolResultStore

__all__ = ("packed", "packed_messages", "unpacked", "unpacked_messages")

_AT = "at"


def packed(saved: Saved, store: ToolResultStore) -> Saved | None:
    """Return a decision as a record holds it; `None` if it cannot be stored."""
    send = [
        messages_to_dict([item])[0] if isinstance(item, BaseMessage) else item
        for item in saved["send"]
    ]
    try:
        at = store.put(json.dumps(send, ensure_ascii=True))
    except (StateError, TypeError):  # a full disk, or a message that JSON cannot hold
        at = None
    if at is None:
        return None
    return {**{name: value for name, value in saved.items() if name != "send"}, _AT: at}


def unpacked(saved: Any, store: ToolResultStore) -> Any:
    """Return a decision as it was made; `None` if what was stored is gone."""
    if not isinstance(saved, dict) or _AT not in saved:
        return None
    kept = cast("Mapping[str, Any]", saved)
    try:
        written: list[Any] = json.loads(store.get(str(kept[_AT])))
    except (StateError, ToolResultNotFound, ValueError):
        return None
    send: list[Any] = [
        messages_from_dict([cast("dict[Any, Any]", item)])[0] if isinstance(item, dict) else item
        for item in written
    ]
    return {**{name: value for name, value in kept.items() if name != _AT}, "send": send}


def packed_messages(messages: Sequence[BaseMessage], store: ToolResultStore) -> str | None:
    """Store messages and return their id; `None` if they cannot be stored."""
    try:
        return store.put(json.dumps(messages_to_dict(messages), ensure_ascii=True))
    except (StateError, TypeError):
        return None


def unpacked_messages(at: str, store: ToolResultStore) -> list[BaseMessage]:
    """Return stored messages.

    Raises:
        ToolResultNotFound: The store does not have them.
    """
    return messages_from_dict(json.loads(store.get(at)))
