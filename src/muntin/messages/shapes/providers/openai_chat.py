"""Chat-completions dicts, and every plain `{"role", "content"}` dict.

Apart from the content it reads refusals, reasoning that compatible servers take back, and `parts`
as Gemini writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.message import UNNAMED, ToolCall
from muntin.messages.shapes.blocks import (
    BlockReader,
    as_block,
    canonical_json,
    replace_result,
    replace_text,
)
from muntin.messages.shapes.parts import parts_as_blocks
from muntin.messages.shapes.views import MessageView, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.messages.message import Block, Role

__all__ = ("OPENAI_CHAT", "OpenAIChatShape", "role_of")

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


def role_of(given: Any) -> Role:
    """Translate a provider's role; an unknown one is read as `user`, which is never trusted."""
    return _ROLES.get(str(given), "user")


class OpenAIChatShape:
    """Read and change chat-completions dicts."""

    name = "openai-chat"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, dict) and "role" in message

    def parts(self, message: dict[str, Any]) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return message

    def view(self, message: dict[str, Any]) -> MessageView:
        """Read the message."""
        held = message.get
        role, content = role_of(held("role")), held("content")
        if len(message) == _PLAIN and type(content) is str and role != "tool":
            return MessageView(role, content)
        calls = _calls(message) if "tool_calls" in message or "function_call" in message else ()
        name, identifier = held("name"), held("id")
        name = name if isinstance(name, str) else None
        identifier = identifier if isinstance(identifier, str) else None
        if _is_bare(message, content):
            # Nearly all messages of nearly all conversations: nothing to take apart.
            text, results = content or "", ()
            if role == "tool":
                text, results = "", (ToolResult(_answered(message), text),)
            return MessageView(role, text, calls, results, name=name, id=identifier)
        read = BlockReader()
        read.content(content)
        if isinstance(message.get("refusal"), str):
            read.content(message["refusal"])
        _read_reasoning(read, message)
        if isinstance(message.get("parts"), list):
            repeated = {"type": "text", "text": content}
            read.content([block for block in parts_as_blocks(message) if block != repeated])
        text, results = read.text, read.results
        if role == "tool":
            media = () if results else read.media
            results = (*results, ToolResult(_answered(message), text, media=media))
            text = ""
        return MessageView(
            role=role,
            text=text,
            calls=(*calls, *read.calls_besides(calls)),
            results=results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            media=read.media,
            unknown=read.unknown,
            pinned=read.changes_tools,
            name=name,
            id=identifier,
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
        answered, content = _answered(message), message.get("content")
        text = texts.get(answered)
        if text is None or role_of(message.get("role")) != "tool":
            return message
        said = replace_result(content, text, bare=answered in bare)
        if said == text and isinstance(content, list):
            said = [{"type": "text", "text": text}]
        return {**message, "content": said}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text."""
        return {"role": role, "content": text}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        if call.id.startswith(UNNAMED):
            return {"role": "function", "name": call.name, "content": text}
        return {"role": "tool", "tool_call_id": call.id, "content": text}


_BESIDE = frozenset({"refusal", "reasoning_content", "reasoning", "reasoning_details", "parts"})
"""Keys other than the content that are sent and charged."""
_PLAIN = 2
"""Keys of a message that has a role and a content and nothing else."""
_ARGUMENTS = ("arguments", "args", "input")


def _is_bare(message: Mapping[str, Any], content: Any) -> bool:
    """Return whether there is only text to read: no blocks, no refusal, no reasoning, no parts."""
    if not (content is None or type(content) is str):
        return False
    return all(message[key] is None for key in _BESIDE & message.keys())


def _read_reasoning(read: BlockReader, message: Mapping[str, Any]) -> None:
    """Read reasoning that is sent again, once: servers write it under up to two keys."""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            read.block({"type": "reasoning", "text": message[key]})
            return
    details = message.get("reasoning_details")
    if isinstance(details, list):
        for detail in cast("list[Any]", details):
            block = as_block(detail)
            if block is not None:
                read.block({**block, "type": "reasoning"})


def _answered(message: Mapping[str, Any]) -> str:
    """Name the call that a message answers.

    A `function` message names the function where a `tool` message names the call.
    """
    return _written(message.get("tool_call_id")) or _legacy_id(message)


def _written(identifier: Any) -> str:
    """Write an id as text: some frameworks number their calls."""
    return "" if identifier is None else str(identifier)


def _legacy_id(message: Mapping[str, Any]) -> str:
    """Name the call that a `function` message answers; the protocol has no id for it."""
    if message.get("role") == "function" and message.get("name"):
        return f"{UNNAMED}{message['name']}"
    return ""


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    given = message.get("tool_calls")
    if isinstance(given, Sequence) and not isinstance(given, str):
        calls += [_call(call) for call in cast("Sequence[Any]", given)]
    legacy = as_block(message.get("function_call"))
    if legacy is not None:
        calls.append(_named(legacy, f"{UNNAMED}{legacy.get('name')}"))
    return tuple(calls)


def _call(call: Any) -> ToolCall:
    """Read one entry of `tool_calls`: a dict, or the object of a client library."""
    entry = as_block(call)
    if entry is None:
        dump = getattr(call, "model_dump", None)
        if not callable(dump) and not hasattr(call, "__dict__"):
            # A call of unknown form is still sent, so it is still charged.
            return ToolCall("", "", canonical_json(call))
        entry = cast("Block", dump() if callable(dump) else vars(call))
    inner = as_block(entry.get("function")) or as_block(entry.get("custom")) or entry
    return _named(inner, _written(entry.get("id")))


def _named(inner: Mapping[str, Any], identifier: str) -> ToolCall:
    given: Any = ""
    for key in _ARGUMENTS:
        if inner.get(key) is not None:
            given = inner[key]
            break
    arguments = given if isinstance(given, str) else canonical_json(given)
    return ToolCall(identifier, str(inner.get("name") or ""), arguments)


OPENAI_CHAT = OpenAIChatShape()
