"""Replace messages that cannot be written as UTF-8, and measure a conversation on the way."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from muntin.messages import cleaned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.counting import Conversation, MessageCounts

__all__ = ("clean_messages", "cleaned")


def clean_messages(
    messages: Sequence[Any], counts: MessageCounts
) -> tuple[Sequence[Any], Conversation]:
    """Replace messages that hold lone surrogates, and measure all on the way.

    Returns:
        The messages (the same object when there was nothing to replace), and what they cost.
    """
    read = counts.read(messages)
    if read.is_encodable:
        return messages, read
    clean = [
        message if one.is_encodable else cleaned(message)
        for message, one in zip(messages, read.measured, strict=True)
    ]
    if all(map(is_, clean, messages)):
        # Objects that cannot be copied by their fields are left unchanged.
        return messages, read
    return clean, counts.read(clean)
