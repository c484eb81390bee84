"""The cached cost and view of a message, and of a whole conversation.

Values that every fit needs of all messages are kept with the conversation and extended when it
grows.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muntin.messages import MessageShape, MessageView

__all__ = ("Conversation", "Measured")


class Measured(NamedTuple):
    """Hold the view and the cost of one message."""

    shape: MessageShape
    """The shape that reads and changes it."""
    view: MessageView
    """The view of the message."""
    tokens: int
    """What it costs, framing included."""
    parts: Any = None
    """The content when it was measured, from `MessageShape.parts`."""
    is_encodable: bool = True
    """Whether it can be written as UTF-8: it holds no lone surrogate."""
    result_tokens: tuple[int, ...] = ()
    """What the text of each result costs, in the order of `view.results`; part of `tokens`."""
    characters: int = 0
    """Characters it keeps in memory, media and unread fields included."""


class Conversation(NamedTuple):
    """Measured messages, and the values that are computed from all of them."""

    parts: list[Any]
    """The content of each message when it was measured."""
    measured: list[Measured]
    """Each message."""
    sizes: array[int]
    """What each costs, framing included."""
    is_encodable: bool
    """Whether all of them can be written as UTF-8."""
    characters: int
    """Characters they keep in memory."""

    @classmethod
    def empty(cls) -> Conversation:
        """Make the conversation of no messages."""
        return cls([], [], array("q"), is_encodable=True, characters=0)

    def until(self, size: int) -> Conversation:
        """Return a conversation of the first `size` messages; unchanged if it has no more."""
        if size == len(self.measured):
            return self
        measured = self.measured[:size]
        return Conversation(
            self.parts[:size],
            measured,
            self.sizes[:size],
            self.is_encodable or _all_encodable(measured),
            _characters(measured),
        )

    def and_then(self, measured: list[Measured]) -> Conversation:
        """Return the conversation extended by these messages."""
        return Conversation(
            self.parts + [one.parts for one in measured],
            self.measured + measured,
            self.sizes + array("q", [one.tokens for one in measured]),
            self.is_encodable and _all_encodable(measured),
            self.characters + _characters(measured),
        )


def _characters(measured: Iterable[Measured]) -> int:
    """Count the characters that messages keep in memory."""
    return sum([one.characters for one in measured])


def _all_encodable(measured: list[Measured]) -> bool:
    return all(one.is_encodable for one in measured)
