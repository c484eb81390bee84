"""Vercel AI SDK dicts: `UIMessage`s of versions 4 and 5, and `ModelMessage`s.

A UI message holds a whole answer in `parts`: text, reasoning, files, and tool parts that hold the
output and the input. A model message has `tool-call` blocks in the content of the assistant
and `tool-result` blocks in a message of its own. Both are read as the blocks they correspond to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.messages.shapes.blocks import as_block, canonical_json
from muntin.messages.shapes.providers.anthropic import ANTHROPIC
from muntin.messages.shapes.providers.openai_chat import role_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages.message import Block, Role, ToolCall
    from muntin.messages.shapes.views import MessageView

__all__ = ("VERCEL", "VercelShape")

_BLOCKS = frozenset({"tool-call", "tool-result"})
_TEXTS = frozenset({"text", "error-text"})
_DONE = frozenset({"output-available", "output-error", "result"})
"""States of a tool part that holds its output."""
_SILENT = frozenset({"step-start", "source-url", "source-document", "source"})
"""Parts of a user interface that are not sent."""


class VercelShape:
    """Read and change messages of the Vercel AI SDK."""

    name = "vercel"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        if not isinstance(message, dict) or "role" not in message:
            return False
        given = cast("dict[str, Any]", message)
        if "toolInvocations" in given or _holds(given.get("content"), _BLOCKS):
            return True
        return _holds(given.get("parts"), None)

    def parts(self, message: dict[str, Any]) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return message

    def view(self, message: dict[str, Any]) -> MessageView:
        """Read the message."""
        blocks: list[Any] = []
        paired: list[str] = []
        for part in _parts_of(message):
            block = _block_of(part)
            if block is not None and block.get("type") == "paired":
                paired.append(canonical_json(block["value"]))
            elif block is not None:
                blocks.append(block)
        role = role_of(message.get("role"))
        read = ANTHROPIC.view({"role": role, "content": blocks, "id": message.get("id")})
        is_tool = role == "tool" or read.role == "tool"
        return read._replace(role="tool" if is_tool else role, server=(*read.server, *paired))

    def with_text(self, message: dict[str, Any], text: str) -> dict[str, Any]:
        """Copy the message with another readable text; other parts stay."""
        key, parts = _place(message)
        if parts is None:
            return {**message, "content": text}
        kept: list[Any] = []
        placed = False
        for part in parts:
            if (as_block(part) or {}).get("type") != "text":
                kept.append(part)
            elif not placed:
                kept.append({**part, "text": text})
                placed = True
        changed = {**message, key: kept if placed else [{"type": "text", "text": text}, *kept]}
        if key == "parts" and isinstance(message.get("content"), str):
            changed["content"] = text
        return changed

    def with_results(
        self,
        message: dict[str, Any],
        texts: Mapping[str, str | None],
        *,
        bare: Collection[str] = (),  # noqa: ARG002 - an output is a value and holds no media
    ) -> dict[str, Any]:
        """Copy the message with other result texts."""
        content = message.get("content")
        if not isinstance(content, list):
            return message
        kept: list[Any] = []
        for part in cast("list[Any]", content):
            block = as_block(part) or {}
            identifier = str(block.get("toolCallId") or "")
            if block.get("type") != "tool-result" or identifier not in texts:
                kept.append(part)
                continue
            text = texts[identifier]
            if text is not None:
                value = {"output": {"type": "text", "value": text}}
                kept.append({**block, **({"result": text} if "result" in block else value)})
        return {**message, "content": kept}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text, as both kinds of message write it."""
        return {"role": role, "content": text, "parts": [{"type": "text", "text": text}]}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        block = {
            "type": "tool-result",
            "toolCallId": call.id,
            "toolName": call.name,
            "output": {"type": "text", "value": text},
        }
        return {"role": "tool", "content": [block]}


def _holds(value: Any, kinds: Collection[str] | None) -> bool:
    """Return whether a list holds a block of one of the types; `None` accepts every type."""
    if not isinstance(value, list):
        return False
    blocks = [as_block(one) or {} for one in cast("list[Any]", value)]
    return any(
        isinstance(block.get("type"), str) and (kinds is None or block["type"] in kinds)
        for block in blocks
    )


def _place(message: Mapping[str, Any]) -> tuple[str, Sequence[Any] | None]:
    """Return the key under which the parts are, and the parts; `None` for plain text."""
    for key in ("parts", "content"):
        if isinstance(message.get(key), list):
            return key, cast("list[Any]", message[key])
    return "content", None


def _parts_of(message: Mapping[str, Any]) -> list[Any]:
    _, parts = _place(message)
    if parts is not None:
        return list(parts)
    text = message.get("content")
    found: list[Any] = [{"type": "text", "text": text}] if text else []
    given = message.get("toolInvocations")
    if isinstance(given, list):
        found += [
            {"type": "tool-invocation", "toolInvocation": one} for one in cast("list[Any]", given)
        ]
    return found


def _block_of(part: Any) -> Block | None:
    """Return a part as the block it corresponds to; `None` if it is not sent."""
    block = as_block(part)
    if block is None:
        return {"type": "text", "text": str(part)}
    kind = str(block.get("type") or "")
    if kind in _SILENT:
        return None
    if kind == "tool-invocation":
        return _tool(as_block(block.get("toolInvocation")) or {})
    if kind == "tool-result":
        output = block.get("output", block.get("result"))
        return {
            "type": "tool_result", "tool_use_id": block.get("toolCallId"),
            "content": _text_of(output),
            "is_error": str((as_block(output) or {}).get("type", "")).startswith("error"),
        }  # fmt: skip
    if kind == "tool-call" or kind == "dynamic-tool" or kind.startswith("tool-"):
        return _tool(block)
    if kind == "reasoning":
        return {"type": "reasoning", "text": block.get("text") or block.get("reasoning") or ""}
    if kind == "file":
        label = str(block.get("mediaType") or block.get("mimeType") or "")
        media = "image" if label.startswith("image/") else "document"
        data = block.get("url") or block.get("data")
        return {"type": media, "url": data, "media_type": label}
    return block


def _tool(block: Block) -> Block:
    """Read a tool part: a call, or a call with its output inside the same part."""
    state = str(block.get("state") or "")
    name = block.get("toolName") or str(block.get("type") or "").removeprefix("tool-")
    arguments = block.get("input", block.get("args"))
    if state in _DONE:
        output = block.get("output", block.get("result", block.get("errorText")))
        return {"type": "paired", "value": {"name": name, "input": arguments, "output": output}}
    return {
        "type": "tool_use", "id": block.get("toolCallId"), "name": name,
        "input": {} if arguments is None else arguments,
    }  # fmt: skip


def _text_of(output: Any) -> str:
    """Read an output: a text, `{"type": "text", "value"}`, or any JSON value."""
    block = as_block(output)
    if block is not None and "value" in block and "type" in block:
        value = block["value"]
        return (
            value if block["type"] in _TEXTS and isinstance(value, str) else canonical_json(value)
        )
    return output if isinstance(output, str) else canonical_json(output)


VERCEL = VercelShape()
