"""Gemini dicts: everything is a part, the model's role is `model`, and calls often have no id.

Parts are read as the Anthropic blocks they correspond to, in both spellings (`function_call` as the
Python client writes it, `functionCall` as it is sent). A call without an id gets one from its
name and its position among the calls of that name; so does its response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.messages.message import UNNAMED
from muntin.messages.shapes.blocks import as_block
from muntin.messages.shapes.parts import SAID, held_in, identified, parts_as_blocks, response_of
from muntin.messages.shapes.providers.anthropic import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from muntin.messages.message import Role, ToolCall
    from muntin.messages.shapes.views import MessageView

__all__ = ("GEMINI", "GeminiShape")


class GeminiShape:
    """Read and change Gemini `contents`."""

    name = "gemini"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, dict) and isinstance(
            cast("dict[str, Any]", message).get("parts"), (list, tuple)
        )

    def parts(self, message: dict[str, Any]) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return message

    def view(self, message: dict[str, Any]) -> MessageView:
        """Read the message."""
        role = message.get("role", "user")
        return ANTHROPIC.view({"role": role, "content": parts_as_blocks(message)})

    def with_text(self, message: dict[str, Any], text: str) -> dict[str, Any]:
        """Copy the message with another readable text; other parts stay."""
        kept: list[Any] = []
        placed = False
        for part in message["parts"]:
            if not _is_text(part):
                kept.append(part)
            elif not placed:
                kept.append(text if isinstance(part, str) else {**part, "text": text})
                placed = True
        return {**message, "parts": kept if placed else [{"text": text}, *kept]}

    def with_results(
        self,
        message: dict[str, Any],
        texts: Mapping[str, str | None],
        *,
        bare: Collection[str] = (),  # noqa: ARG002 - a response holds a value and no media
    ) -> dict[str, Any]:
        """Copy the message with other result texts."""
        kept: list[Any] = []
        for part, identifier in identified(message):
            key, response = held_in(part, "function_response", "functionResponse")
            if response is None or identifier not in texts:
                kept.append(part)
                continue
            text = texts[identifier]
            if text is not None:
                place = next((name for name in SAID if name in response_of(response)), "result")
                kept.append({**part, key: {**response, "response": {place: text}}})
        return {**message, "parts": kept}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text; system instructions are not part of `contents`."""
        return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        response: dict[str, Any] = {"name": call.name, "response": {"result": text}}
        if not call.id.startswith(UNNAMED):
            response["id"] = call.id
        return {"role": "user", "parts": [{"function_response": response}]}


def _is_text(part: Any) -> bool:
    block = as_block(part)
    if block is None:
        return isinstance(part, str)
    return isinstance(block.get("text"), str) and not block.get("thought")


GEMINI = GeminiShape()
