"""What OpenAI's chat completions refuse.

Empty texts are accepted in every role, and so are conversations without a user message. Arguments
of calls have to be a text; whether the text is JSON is not checked there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.testing.wire.refused import block_of, blocks_of, listed, matches, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("check_openai_chat",)

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
    "function": (),
}
_NAME = r"[^\s<|\\/>]{1,64}"
_TOOL = r"[a-zA-Z0-9_-]{1,64}"
_LONGEST_ID = 40


def check_openai_chat(body: Mapping[str, Any]) -> None:
    """Check a chat-completions request body as OpenAI does.

    Raises:
        RequestRefused: With the provider's text in `.problem`.
    """
    messages = listed(body.get("messages"))
    if not messages:
        raise refuse(
            "no_messages",
            None,
            "Invalid 'messages': empty array. Expected an array with "
            "minimum length 1, but got an empty array instead.",
        )
    _check_tools(body)
    for index, given in enumerate(messages):
        message = block_of(given)
        role = message.get("role")
        if role not in _ROLES:
            raise refuse(
                "role",
                index,
                f"Invalid value: {role!r}. Supported values are: {', '.join(map(repr, _ROLES))}.",
            )
        _check_name(message, index)
        _check_calls(message, index)
        _check_content(message, str(role), index)
    _check_pairs([block_of(message) for message in messages])


def _check_tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools")
    if tools is None:
        if body.get("tool_choice") not in (None, "none"):
            raise refuse(
                "field",
                None,
                "Invalid value for 'tool_choice': 'tool_choice' is only "
                "allowed when 'tools' are specified.",
            )
        return
    if not listed(tools):
        raise refuse(
            "field",
            None,
            "Invalid 'tools': empty array. Expected an array with minimum "
            "length 1, but got an empty array instead.",
        )
    for at, tool in enumerate(blocks_of(tools)):
        name = block_of(tool.get("function") or tool.get("custom")).get("name")
        if tool.get("type") in ("function", "custom") and not matches(_TOOL, name):
            raise refuse(
                "name",
                None,
                f"Invalid 'tools[{at}].function.name': string does not "
                f"match pattern. Expected a string that matches the pattern "
                f"'^[a-zA-Z0-9_-]+$'.",
            )


def _check_name(message: Mapping[str, Any], index: int) -> None:
    name = message.get("name")
    if name is None and message.get("role") != "function":
        return
    if not matches(_NAME, name):
        raise refuse(
            "name",
            index,
            f"Invalid 'messages[{index}].name': string does not match "
            f"pattern. Expected a string that matches the pattern "
            f"'^[^\\s<|\\\\/>]+$'.",
        )


def _check_calls(message: Mapping[str, Any], index: int) -> None:
    if message.get("tool_calls") is None:
        return
    where = f"messages[{index}].tool_calls"
    if message.get("role") != "assistant":
        raise refuse("field", index, f"Unrecognized request argument: {where}")
    calls = listed(message["tool_calls"])
    if not calls:
        raise refuse(
            "field",
            index,
            f"Invalid '{where}': empty array. Expected an array with "
            f"minimum length 1, but got an empty array instead.",
        )
    seen: set[str] = set()
    for at, call in enumerate(blocks_of(calls)):
        identifier = call.get("id")
        if not isinstance(identifier, str) or not identifier:
            raise refuse("call_id", index, f"Missing required parameter: '{where}[{at}].id'.")
        if len(identifier) > _LONGEST_ID:
            raise refuse(
                "call_id",
                index,
                f"Invalid '{where}[{at}].id': string too long. Expected "
                f"a string with maximum length {_LONGEST_ID}, but got a string with "
                f"length {len(identifier)} instead.",
            )
        if identifier in seen:
            raise refuse(
                "repeated_call",
                index,
                f"Duplicate value for 'tool_call_id' of {identifier!r} in {where}.",
            )
        seen.add(identifier)
        kind = call.get("type")
        if kind not in ("function", "custom"):
            raise refuse("field", index, f"Invalid value for '{where}[{at}].type': {kind!r}.")
        inner = block_of(call.get(kind))
        if not matches(_TOOL, inner.get("name")):
            raise refuse(
                "name",
                index,
                f"Invalid '{where}[{at}].function.name': string does not "
                f"match pattern '^[a-zA-Z0-9_-]+$'.",
            )
        if not isinstance(inner.get("arguments" if kind == "function" else "input"), str):
            raise refuse(
                "arguments",
                index,
                f"Invalid type for '{where}[{at}].function.arguments': expected a string.",
            )


def _check_content(message: Mapping[str, Any], role: str, index: int) -> None:
    where = f"messages[{index}].content"
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        instead = ("tool_calls", "function_call", "refusal", "audio")
        if role == "assistant" and any(message.get(key) for key in instead):
            return
        raise refuse(
            "empty_content",
            index,
            f"Invalid value for 'content': expected a string, got null. ('{where}')",
        )
    parts = listed(content)
    if parts is None:
        raise refuse(
            "field",
            index,
            f"Invalid type for '{where}': expected one of a string or array of objects.",
        )
    if not parts:
        raise refuse(
            "empty_content",
            index,
            f"Invalid '{where}': empty array. Expected an array "
            f"with minimum length 1, but got an empty array instead.",
        )
    for at, part in enumerate(blocks_of(parts)):
        _check_part(part, role, index, f"{where}[{at}]")


def _check_part(part: Mapping[str, Any], role: str, index: int, where: str) -> None:
    kind = part.get("type")
    if kind not in _PARTS[role]:
        raise refuse(
            "part_type",
            index,
            f"Invalid value: {kind!r}. Supported values are: "
            f"{', '.join(map(repr, _PARTS[role]))}. ('{where}.type')",
        )
    if kind in ("text", "refusal") and not isinstance(part.get(str(kind)), str):
        raise refuse("field", index, f"Missing required parameter: '{where}.{kind}'.")
    if kind == "image_url":
        url = block_of(part.get("image_url")).get("url")
        if not isinstance(url, str) or not url.startswith(("http://", "https://", "data:image/")):
            raise refuse(
                "field",
                index,
                f"Invalid '{where}.image_url.url'. Expected a base64 "
                f"encoded data URL with an image MIME type, or a URL.",
            )


def _check_pairs(messages: list[Mapping[str, Any]]) -> None:
    """Check that tool messages directly follow the message with the calls they answer."""
    waiting: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            identifier = message.get("tool_call_id")
            if not isinstance(identifier, str):
                raise refuse(
                    "call_id",
                    index,
                    f"Missing parameter 'tool_call_id': messages with "
                    f"role 'tool' must have a 'tool_call_id'. (messages[{index}])",
                )
            if identifier not in waiting:
                raise refuse(
                    "orphan_result",
                    index,
                    f"Invalid parameter: messages with role "
                    f"'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{index}].role)",
                )
            del waiting[identifier]
            continue
        if waiting:
            raise _unanswered(waiting)
        waiting = {str(call["id"]): index for call in blocks_of(message.get("tool_calls"))}
    if waiting:
        raise _unanswered(waiting)


def _unanswered(waiting: Mapping[str, int]) -> Exception:
    return refuse(
        "unanswered_call",
        min(waiting.values()),
        f"An assistant message with 'tool_calls' must be followed by tool messages responding to "
        f"each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(waiting)}",
    )
