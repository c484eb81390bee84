"""The neutral view of a message: the values that every decision about it is made from.

`MessageView` is a named tuple because one is made for every message of a long conversation: it
costs a fourth of a frozen dataclass, and reading takes much of the time of a first fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from muntin.messages.framework_messages import is_framework_text

if TYPE_CHECKING:
    from muntin.messages.message import Role, ToolCall

__all__ = ("Media", "MediaKind", "MessageView", "ToolResult")

MediaKind = Literal["image", "document", "audio", "video", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, document, audio or video in a message: never counted by its base64 length."""

    kind: MediaKind
    """Kind of the thing, as far as the block names it."""
    size: int | None = None
    """Bytes of the raw thing; `None` where only a link or an id is given."""
    width: int | None = None
    """Pixels across, read from the image's own header; `None` when unknown."""
    height: int | None = None
    """Pixels down; `None` when unknown."""
    detail: str = ""
    """The provider's `detail` setting (`low`, `high`, `auto`); `""` where there is none."""
    by_area: bool = False
    """Whether the provider prices images by their area instead of by tiles."""
    label: str = ""
    """Type or file name for a reader, such as `image/png`."""

    @property
    def stub(self) -> str:
        """A line that replaces the thing when it is removed."""
        pixels = f" {self.width}x{self.height}" if self.width and self.height else ""
        size = f" {self.size} bytes" if self.size else ""
        label = f" {self.label}" if self.label else ""
        return f"[{self.kind}{label}{pixels}{size}]"


class ToolResult(NamedTuple):
    """The result of one tool call."""

    call_id: str
    """The call it answers. `""` where the message names none."""
    text: str
    """The readable part of the result."""
    is_error: bool = False
    """Whether the message is marked as a failed call."""
    media: tuple[Media, ...] = ()
    """Images and the like that the call came back with; they are in the view's `media` too."""


class MessageView(NamedTuple):
    """One message, read. A value: it holds no reference to the message it was read from."""

    role: Role
    """Role of the sender. A message with results is `tool` unless it also holds user text."""
    text: str = ""
    """Readable text that is sent, without results, calls and reasoning."""
    calls: tuple[ToolCall, ...] = ()
    """Calls that wait for a result in a later message."""
    results: tuple[ToolResult, ...] = ()
    """Results this message carries for calls of earlier messages."""
    server: tuple[str, ...] = ()
    """Server-side calls and their results, paired inside this message; JSON text each."""
    reasoning: str = ""
    """Readable reasoning that is sent again. Encrypted blobs are not in here."""
    signed: bool = False
    """Whether the reasoning carries a signature, so that the message must not be edited."""
    leads: bool = False
    """Whether it is bound to the message after it (a reasoning item before its answer)."""
    item: bool = False
    """Whether it is a piece of a model turn that continues in the neighbouring items."""
    media: tuple[Media, ...] = ()
    """Images, documents, audio and video in it."""
    unknown: tuple[tuple[str, str], ...] = ()
    """Blocks of unknown types: type and canonical JSON with base64 runs left out."""
    name: str | None = None
    """Name of the speaker or tool as it is sent; `None` when absent."""
    id: str | None = None
    """Identifier of the message; `None` when absent."""
    pinned: bool = False
    """Whether it must survive every cut unchanged."""
    compacts: bool = False
    """Whether it holds a provider's own summary of everything before it."""
    injected: bool = False
    """Whether this library (or a framework) put it there: a recap, a digest, restored state."""
    instructions: str = ""
    """Instructions that the framework sends once with a request: those of its newest message."""

    @property
    def stands_alone(self) -> bool:
        """Whether it has nothing to do with calls, results or other pieces of a model turn."""
        return not (self.calls or self.results or self.leads or self.item or self.role == "tool")

    @property
    def is_user_turn(self) -> bool:
        """Whether the user wrote this message, and not this library or a framework."""
        return (
            self.role == "user"
            and not self.injected
            and not is_framework_text(self.text, self.name)
        )
