"""Pydantic AI messages: requests and responses, each a list of parts.

One request may hold a system prompt, a user prompt and results of tools. A request with a system
prompt and other parts is pinned, so that the prompt is never cut with them. Instructions are
charged once: every request holds them, and those of the newest one are sent. Nothing is imported
before a note or an answer is made.
"""

from __future__ import annotations

import base64
import datetime
import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.shapes.blocks import BlockReader, canonical_json
from muntin.messages.shapes.views import MessageView, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages.message import Role, ToolCall

__all__ = ("PYDANTIC_AI", "PydanticAIShape")

_MODULE = "pydantic_ai.messages"
_MARK = {"muntin": "note"}
_THEN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
"""Time of everything that is made here: no clock is read, so equal inputs give equal messages."""
_RESULTS = frozenset({"tool-return", "retry-prompt"})
_PROMPTS = frozenset({"system-prompt", "user-prompt", "text"})
_READ = (
    "part_kind", "content", "tool_name", "args", "tool_call_id", "signature", "outcome", "id",
)  # fmt: skip


class PydanticAIShape:
    """Read and change `ModelRequest` and `ModelResponse`."""

    name = "pydantic-ai"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        kind = cast("type[object]", type(message))
        return kind.__module__ == _MODULE and kind.__name__ in ("ModelRequest", "ModelResponse")

    def parts(self, message: Any) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        read = [
            tuple(_comparable(getattr(part, field, None)) for field in _READ)
            for part in message.parts
        ]
        return (message.kind, read, message.metadata, getattr(message, "instructions", None))

    def view(self, message: Any) -> MessageView:
        """Read the message."""
        read = BlockReader()
        results: list[ToolResult] = []
        kinds = {str(part.part_kind) for part in message.parts}
        is_mixed = "system-prompt" in kinds and len(kinds) > 1
        prompts: list[str] = []
        for part in message.parts:
            kind = str(part.part_kind)
            if kind == "system-prompt" and is_mixed:
                prompts.append(part.content)
            elif kind in _RESULTS and getattr(part, "tool_name", None):
                results.append(_result(part))
            else:
                for block in _blocks(part):
                    read.content(block)
        role: Role = "assistant"
        if message.kind == "request":
            asks = kinds - _RESULTS - {"system-prompt"}
            role = "user" if asks else "tool" if results else "system"
        return MessageView(
            role=role,
            text=read.text,
            calls=read.calls,
            results=tuple(results),
            server=(*read.server, *prompts),
            reasoning=read.reasoning,
            signed=read.signed,
            media=read.media,
            unknown=read.unknown,
            pinned=is_mixed,
            injected=bool(message.metadata and _MARK.items() <= message.metadata.items()),
            instructions=getattr(message, "instructions", None) or "",
        )

    def with_text(self, message: Any, text: str) -> Any:
        """Copy the message with another readable text; other parts stay."""
        kept: list[Any] = []
        placed = False
        kinds = {part.part_kind for part in message.parts}
        keeps = "system-prompt" if len(kinds) > 1 else ""
        for part in message.parts:
            if part.part_kind not in _PROMPTS or part.part_kind == keeps:
                kept.append(part)
            elif not placed:
                content = part.content
                if not isinstance(content, str):
                    others = [one for one in content if not isinstance(one, str)]
                    content = [text, *others]
                else:
                    content = text
                kept.append(replace(part, content=content))
                placed = True
        if not placed:
            made = _messages()
            part = made.TextPart(text) if message.kind == "response" else _prompt(text)
            kept.insert(0, part)
        return replace(message, parts=kept)

    def with_results(
        self,
        message: Any,
        texts: Mapping[str, str | None],
        *,
        bare: Collection[str] = (),  # noqa: ARG002 - a result holds a value and no media
    ) -> Any:
        """Copy the message with other result texts."""
        kept: list[Any] = []
        for part in message.parts:
            identifier = str(getattr(part, "tool_call_id", ""))
            if part.part_kind not in _RESULTS or identifier not in texts:
                kept.append(part)
                continue
            text = texts[identifier]
            if text is not None:
                kept.append(replace(part, content=text))
        return replace(message, parts=kept)

    def note(self, text: str, role: Role) -> Any:
        """Make a message that holds a text."""
        made = _messages()
        if role == "assistant":
            return made.ModelResponse([made.TextPart(text)], timestamp=_THEN, metadata=dict(_MARK))
        system = role == "system"
        part = made.SystemPromptPart(text, timestamp=_THEN) if system else _prompt(text)
        return made.ModelRequest([part], metadata=dict(_MARK))

    def answer(self, call: ToolCall, text: str) -> Any:
        """Make a message that answers a call."""
        made = _messages()
        part = made.ToolReturnPart(
            tool_name=call.name, content=text, tool_call_id=call.id, timestamp=_THEN
        )
        return made.ModelRequest([part], metadata=dict(_MARK))


def _messages() -> Any:
    return importlib.import_module(_MODULE)


def _prompt(text: str) -> Any:
    return _messages().UserPromptPart(text, timestamp=_THEN)


def _comparable(value: Any) -> Any:
    """Return a value as plain data, so that a change in place is noticed."""
    if isinstance(value, (list, tuple)):
        return [_comparable(one) for one in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, (str, int, float, bytes, dict)):
        return cast("Any", value)
    return repr(value)


def _result(part: Any) -> ToolResult:
    content = part.content
    text = content if isinstance(content, str) else canonical_json(content)
    failed = part.part_kind == "retry-prompt" or getattr(part, "outcome", "success") == "failed"
    return ToolResult(str(part.tool_call_id or ""), text, failed)


def _blocks(part: Any) -> list[Any]:
    """Return a part as the blocks it corresponds to."""
    kind, content = part.part_kind, getattr(part, "content", None)
    if kind == "thinking":
        return [{"type": "thinking", "thinking": content, "signature": part.signature}]
    if kind == "tool-call":
        return [
            {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name,
             "input": part.args if part.args is not None else {}}
        ]  # fmt: skip
    if kind.startswith("builtin-tool"):
        held = {"name": part.tool_name, "args": getattr(part, "args", None), "content": content}
        return [{"type": "server_tool_use", **held}]
    if isinstance(content, str) or content is None:
        return [content]
    given = cast("list[Any]", content if isinstance(content, (list, tuple)) else [content])
    return [_content(one) for one in given]


def _content(one: Any) -> Any:
    """Return one piece of a prompt as a block: text, a link, or binary data."""
    if isinstance(one, str):
        return one
    kind = str(getattr(one, "kind", ""))
    label = str(getattr(one, "media_type", "") or "")
    if kind == "binary":
        data = base64.b64encode(one.data).decode()
        media = label.partition("/")[0]
        media = media if media in ("image", "audio", "video") else "document"
        return {"type": media, "base64": data, "media_type": label}
    if kind.endswith("-url"):
        return {"type": kind.removesuffix("-url"), "url": one.url, "media_type": label}
    return {"type": kind or type(one).__name__, "value": repr(one)}


PYDANTIC_AI = PydanticAIShape()
