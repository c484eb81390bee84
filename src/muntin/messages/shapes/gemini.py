"""Gemini dicts: everything is a part, the model's role is `model`, and calls often have no id.

Parts are read as the Anthropic blocks they correspond to, in both spellings (`function_call` as the
Python client writes it, `functionCall` as it is sent). A call without an id is known by its name
and by which call of that name in its message it is; so is its response.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.message import UNNAMED
from muntin.messages.shapes.anthropic import ANTHROPIC
from muntin.messages.shapes.blocks import as_block, canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from muntin.messages.message import Block, Role, ToolCall
    from muntin.messages.shapes.views import MediaKind, MessageView

__all__ = ("GEMINI", "GeminiShape")

_SAID = ("result", "output", "error")
"""Keys under which a response holds nothing but a text."""
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


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
        blocks = [_block_of(part, identifier) for part, identifier in _identified(message)]
        return ANTHROPIC.view({"role": message.get("role", "user"), "content": blocks})

    def with_text(self, message: dict[str, Any], text: str) -> dict[str, Any]:
        """Copy the message with another readable text; parts that are no text stay."""
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
        for part, identifier in _identified(message):
            key, response = _held(part, "function_response", "functionResponse")
            if response is None or identifier not in texts:
                kept.append(part)
                continue
            text = texts[identifier]
            if text is not None:
                place = next((name for name in _SAID if name in _response(response)), "result")
                kept.append({**part, key: {**response, "response": {place: text}}})
        return {**message, "parts": kept}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text; instructions of the system stand outside of these."""
        return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        response: dict[str, Any] = {"name": call.name, "response": {"result": text}}
        if not call.id.startswith(UNNAMED):
            response["id"] = call.id
        return {"role": "user", "parts": [{"function_response": response}]}


def _held(part: Any, *keys: str) -> tuple[str, Block | None]:
    """Find what a part holds, under whichever spelling."""
    block = as_block(part) or {}
    for key in keys:
        held = as_block(block.get(key))
        if held is not None:
            return key, held
    return "", None


def _is_text(part: Any) -> bool:
    block = as_block(part)
    if block is None:
        return isinstance(part, str)
    return isinstance(block.get("text"), str) and not block.get("thought")


def _response(response: Block) -> Block:
    return as_block(response.get("response")) or {}


def _identified(message: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """List the parts, each call and response with the id it is known by."""
    met: Counter[tuple[str, str]] = Counter()
    for part in cast("Sequence[Any]", message["parts"]):
        identifier = ""
        for kind in ("call", "response"):
            _, held = _held(part, f"function_{kind}", f"function{kind.title()}")
            if held is None:
                continue
            name = str(held.get("name") or "")
            met[kind, name] += 1
            same = met[kind, name]
            unnamed = f"{UNNAMED}{name}" if same == 1 else f"{UNNAMED}{name}#{same}"
            identifier = str(held.get("id") or unnamed)
        yield part, identifier


def _block_of(part: Any, identifier: str) -> Any:
    """Write a part as the block it corresponds to."""
    block = as_block(part)
    if block is None:
        return part
    sealed = block.get("thought_signature") or block.get("thoughtSignature")
    _, call = _held(part, "function_call", "functionCall")
    if call is not None:
        return {
            "type": "tool_use", "id": identifier, "name": call.get("name"),
            "input": call.get("args") or {},
        }  # fmt: skip
    _, response = _held(part, "function_response", "functionResponse")
    if response is not None:
        content = _text_of(_response(response))
        failed = set(_response(response)) == {"error"}
        return {
            "type": "tool_result", "tool_use_id": identifier, "content": content,
            "is_error": failed,
        }  # fmt: skip
    if isinstance(block.get("text"), str):
        if block.get("thought"):
            return {"type": "thinking", "thinking": block["text"], "signature": sealed}
        return {"type": "text", "text": block["text"]}
    for keys, place in (
        (("inline_data", "inlineData"), "data"),
        (("file_data", "fileData"), "url"),
    ):
        _, held = _held(part, *keys)
        if held is not None:
            label = str(held.get("mime_type") or held.get("mimeType") or "")
            data = held.get("data") or held.get("file_uri") or held.get("fileUri")
            kind = _KINDS.get(label.partition("/")[0], "document")
            return {"type": kind, place: data, "media_type": label}
    return {"type": next(iter(block), "untyped"), **block}


def _text_of(response: Block) -> str:
    """Read a response: its text where it is nothing else, JSON otherwise."""
    if len(response) == 1:
        key, only = next(iter(response.items()))
        if key in _SAID and isinstance(only, str):
            return only
    return canonical_json(response)


GEMINI = GeminiShape()
