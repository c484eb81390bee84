"""Items of the Responses interface: one model turn is several items in a row.

A reasoning item must be followed by the item it led to, so its view has `leads`; the other pieces
of a model turn have `item`, so that parallel calls, which are items of their own, stay together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.messages.message import ToolCall
from muntin.messages.shapes.blocks import BlockReader, canonical_json, replace_result, replace_text
from muntin.messages.shapes.providers.openai_chat import role_of
from muntin.messages.shapes.views import MessageView, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from muntin.messages.message import Role

__all__ = ("OPENAI_RESPONSES", "OpenAIResponsesShape")

_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"}
)
_OUTPUT = "_output"


class OpenAIResponsesShape:
    """Read and change Responses items."""

    name = "openai-responses"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, dict) and "type" in message

    def parts(self, message: dict[str, Any]) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        return message

    def view(self, message: dict[str, Any]) -> MessageView:
        """Read the message."""
        kind = str(message.get("type") or "message")
        given = message.get("id")
        identifier = given if isinstance(given, str) else None
        if kind in _CALLS:
            return MessageView(role="assistant", calls=(_call(message),), item=True, id=identifier)
        if kind.endswith(_OUTPUT) and kind[: -len(_OUTPUT)] in _CALLS:
            return _result(message, identifier)
        read = BlockReader()
        if kind == "message" or "role" in message:
            role = role_of(message.get("role"))
            read.content(message.get("content"))
            if kind != "message" and "tools" in message:
                added = (canonical_json(message["tools"]),)
                # Calls of these tools are only valid while the model sees them.
                pinned = kind == "additional_tools"
                return MessageView(role, server=added, id=identifier, pinned=pinned)
        else:
            role = "assistant"
            read.block(message)
        return MessageView(
            role=role,
            text=read.text,
            calls=read.calls,
            results=read.results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            leads=kind == "reasoning",
            item=role == "assistant" and not read.compacts,
            media=read.media,
            unknown=read.unknown,
            pinned=read.compacts,
            compacts=read.compacts,
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
        answered = str(message.get("call_id") or "")
        text = texts.get(answered)
        if text is None or not str(message.get("type")).endswith(_OUTPUT):
            return message
        output = replace_result(
            message.get("output"), text, bare=answered in bare, kind="input_text"
        )
        return {**message, "output": output}

    def note(self, text: str, role: Role) -> dict[str, Any]:
        """Make a message that holds a text."""
        return {"role": role, "content": text}

    def answer(self, call: ToolCall, text: str) -> dict[str, Any]:
        """Make a message that answers a call."""
        return {"type": "function_call_output", "call_id": call.id, "output": text}


def _call(item: Mapping[str, Any]) -> ToolCall:
    for key in ("arguments", "input", "action"):
        if key in item:
            given = item[key]
            arguments = given if isinstance(given, str) else canonical_json(given)
            break
    else:
        arguments = "{}"
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return ToolCall(str(item.get("call_id") or item.get("id") or ""), str(name), arguments)


def _result(item: Mapping[str, Any], identifier: str | None) -> MessageView:
    read = BlockReader()
    read.content(item.get("output"))
    failed = item.get("status") in ("failed", "incomplete")
    result = ToolResult(str(item.get("call_id") or ""), read.text, failed, read.media)
    return MessageView(
        role="tool", results=(result,), media=read.media, unknown=read.unknown, id=identifier
    )


OPENAI_RESPONSES = OpenAIResponsesShape()
