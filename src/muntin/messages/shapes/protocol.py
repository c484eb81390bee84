"""What a shape can do: read a message through the neutral view, and make changed copies of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from muntin.messages.message import Role, ToolCall
    from muntin.messages.shapes.views import MessageView

__all__ = ("MessageShape",)


class MessageShape(Protocol):
    """How messages of one kind are read, and how changed copies of them are made.

    No method ever changes the message it is given.
    """

    name: str
    """Short name for errors and reports, such as `openai-chat`."""

    def reads(self, message: Any) -> bool:
        """Return whether this shape understands the message."""
        ...

    def parts(self, message: Any) -> Any:
        """Return everything the view is read from, as plain comparable data.

        Caches compare it with what they saw before, so it is cheap: live strings, lists and dicts,
        no copies. Objects that can change in place and compare by identity do not belong in it.
        """
        ...

    def view(self, message: Any) -> MessageView:
        """Read the message."""
        ...

    def with_text(self, message: Any, text: str) -> Any:
        """Return a copy whose readable text is `text`; the rest does not change."""
        ...

    def with_results(
        self, message: Any, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> Any:
        """Return a copy in which results (by call id) read as given; `None` removes one.

        Parts of a result that are not text stay, such as images, except in results named in `bare`:
        their new text describes what was removed.
        """
        ...

    def note(self, text: str, role: Role) -> Any:
        """Make a new message of this shape that holds `text`."""
        ...

    def answer(self, call: ToolCall, text: str) -> Any:
        """Make a new message of this shape that answers `call`."""
        ...
