"""Anthropic dicts: calls and results are content blocks, results come in user messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.messages.shapes.blocks import BlockReader, as_block, replace_result, replace_text
from muntin.messages.shapes.providers.openai_chat import role_of
from muntin.messages.shapes.views import MessageView

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages.message import Role, ToolCall

__all__ = ("ANTHROPIC", "AnthropicShape")


class AnthropicShape:
    """Read and change Anthropic message dicts."""

    name = "anthropic"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, dict) and "role" in message

    def parts(self, message: dict[str, Any]) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return message

    def view(self, message: dict[str, Any]) -> MessageView:
        """Read the message."""
        read = BlockReader()
        read.content(message.get("content"))
        role = role_of(message.get("role"))
        if role == "user" and read.results and not read.text.strip():
            role = "tool"
        identifier = message.get("id")
        return MessageView(
            role=role,
            text=read.text,
            calls=read.calls,
            results=read.results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            media=read.media,
            unknown=read.unknown,
            pinned=read.compacts or read.changes_tools,
            compacts=read.compacts,
            id=identifier if isinstance(identifier, str) else None,
        )

    def with_text(self, message: dict[str, Any], text: str) -> dict[str, Any]:
        """Copy the message with another readable text."""
        return {**message, "content": replace_text(message.get("content"), text)}

    def with_results(
        self,
        message: dict[str, Any],
        texts: Mapping[str, str | None],
        *,
        bare: Collection[str] = (),
    ) -> dict[str, Any]:
        """Copy the message with other result texts."""
        content = message.get("content")
        if not isinstance(content, list):
            return message
        blocks: list[Any] = []
        for block in cast("Sequence[Any]", content):
            known = as_block(block)
            if known is None or known.get("type") != "tool_result":
                blocks.append(block)
                continue
            called = str(known.get("tool_use_id") or "")
            text = texts.get(called)
            if called not in texts:
                blocks.append(known)
            elif text is not None:
                content = replace_result(known.get("content"), text, bare=called in bare)
                blocks.append({**known, "content": content})
        return {**message, "content": blocks}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text."""
        return {"role": role, "content": text}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        result = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {"role": "user", "content": [result]}


ANTHROPIC = AnthropicShape()
