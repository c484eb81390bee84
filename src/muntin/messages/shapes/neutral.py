"""The shape of `Message`, the library's own value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from muntin.messages.message import Message
from muntin.messages.shapes.blocks import BlockReader, replace_result, replace_text
from muntin.messages.shapes.views import MessageView, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from muntin.messages.message import Role, ToolCall

__all__ = ("MESSAGE", "NeutralShape")

INJECTED = "muntin"
"""Metadata key of messages this library made."""


class NeutralShape:
    """Read and change `Message` values."""

    name = "message"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, Message)

    def parts(self, message: Message) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return (
            message.content,
            message.role,
            tuple((call.id, call.name, call.arguments) for call in message.tool_calls),
            message.tool_call_id,
            message.name,
            message.id,
            message.pinned,
            INJECTED in message.metadata,
            bool(message.metadata.get("is_error", False)),
        )

    def view(self, message: Message) -> MessageView:
        """Read the message."""
        read = BlockReader()
        read.content(message.content)
        results = read.results
        text, media = read.text, read.media
        if message.role == "tool":
            results = (
                *results,
                ToolResult(
                    call_id=message.tool_call_id or "",
                    text=text,
                    is_error=bool(message.metadata.get("is_error", False)),
                    media=() if results else media,
                ),
            )
            text = ""
        return MessageView(
            role=message.role,
            text=text,
            calls=(*message.tool_calls, *read.calls_besides(message.tool_calls)),
            results=results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            media=media,
            unknown=read.unknown,
            name=message.name,
            id=message.id,
            pinned=message.pinned or read.compacts,
            compacts=read.compacts,
            injected=INJECTED in message.metadata,
        )

    def with_text(self, message: Message, text: str) -> Message:
        """Copy the message with another readable text."""
        return replace(message, content=replace_text(message.content, text))

    def with_results(
        self, message: Message, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> Message:
        """Copy the message with other result texts."""
        answered = message.tool_call_id or ""
        text = texts.get(answered)
        if message.role != "tool" or text is None:
            return message
        content = replace_result(message.content, text, bare=answered in bare)
        return replace(message, content=content)

    def note(self, text: str, role: Role) -> Message:
        """Make a message that holds a text."""
        return Message(text, role, metadata={INJECTED: "note"})

    def answer(self, call: ToolCall, text: str) -> Message:
        """Make a message that answers a call."""
        return Message(
            text, "tool", tool_call_id=call.id, name=call.name, metadata={INJECTED: "answer"}
        )


MESSAGE = NeutralShape()
