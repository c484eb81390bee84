"""What Gemini's `generateContent` refuses: roles, empty parts, counts of responses, signatures.

From the third generation on, the first call of every step of the current turn must carry the
thought signature it was written with. The current turn begins at the last user message with text or
media; a function response does not begin one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from muntin.testing.wire.refused import block_of, blocks_of, refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ("check_gemini",)

_BYPASS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_DATA = (
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")


def check_gemini(
    body: Mapping[str, Any], *, model: str = "", issued: Collection[str] | None = None
) -> None:
    """Check a generateContent request body as Gemini does.

    Args:
        body: The request, in either spelling (`functionCall` or `function_call`).
        model: Name of the model; signatures are demanded from the third generation on.
        issued: Signatures the server wrote; `None` accepts every signature.

    Raises:
        RequestRefused: With the provider's text in `.problem`.
    """
    contents = blocks_of(body.get("contents"))
    if not contents:
        raise refuse(
            "no_messages", None, "* GenerateContentRequest.contents: contents is not specified"
        )
    turns = [[_snake(part) for part in blocks_of(content.get("parts"))] for content in contents]
    for index, (content, parts) in enumerate(zip(contents, turns, strict=True)):
        role = content.get("role", "user")
        if role not in ("user", "model", "function"):
            raise refuse("role", index, "Please use a valid role: user, model.")
        _check_parts(parts, index)
    _check_order(contents, turns)
    if _SIGNING.search(model):
        _check_signatures(contents, turns, issued)


def _snake(part: Mapping[str, Any]) -> dict[str, Any]:
    return {re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower(): part[key] for key in part}


def _check_parts(parts: Sequence[Mapping[str, Any]], index: int) -> None:
    if not parts:
        raise refuse(
            "empty_content",
            index,
            f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.",
        )
    for at, part in enumerate(parts):
        held = [key for key in _DATA if part.get(key) is not None]
        empty = held == ["text"] and not part["text"] and not part.get("thought_signature")
        if len(held) != 1 or empty:
            raise refuse(
                "empty_content",
                index,
                f"* GenerateContentRequest.contents[{index}]."
                f"parts[{at}].data: required oneof field 'data' must have one initialized "
                f"field",
            )
        for key, field in (("function_call", "args"), ("function_response", "response")):
            if key not in held:
                continue
            value = block_of(part[key])
            if not value.get("name"):
                raise refuse(
                    "name",
                    index,
                    f"* GenerateContentRequest.contents[{index}].parts"
                    f"[{at}].{key}.name: Name cannot be empty.",
                )
            if value.get(field) is not None and not isinstance(value[field], dict):
                raise refuse(
                    "arguments",
                    index,
                    f"Invalid value at 'contents[{index}].parts[{at}].{key}.{field}' (Struct)",
                )


def _check_order(
    contents: Sequence[Mapping[str, Any]], turns: Sequence[Sequence[Mapping[str, Any]]]
) -> None:
    """Check that responses follow their calls, as many as there are calls."""
    open_calls = 0
    at_call = 0
    before = ""
    for index, (content, parts) in enumerate(_joined(contents, turns)):
        calls = sum("function_call" in part for part in parts)
        responses = sum("function_response" in part for part in parts)
        if responses and not open_calls:
            raise refuse(
                "orphan_result",
                index,
                "Please ensure that function response turn comes "
                "immediately after a function call turn.",
            )
        if open_calls and not responses:
            raise refuse(
                "unanswered_call",
                at_call,
                "Please ensure that function call turn is "
                "immediately followed by a function response turn.",
            )
        if responses != open_calls:
            raise refuse(
                "result_count",
                index,
                "Please ensure that the number of function "
                "response parts is equal to the number of function call parts of the "
                "function call turn.",
            )
        if calls and before != "user":
            raise refuse(
                "first_message",
                index,
                "Please ensure that function call turn comes "
                "immediately after a user turn or after a function response turn.",
            )
        open_calls, at_call, before = calls, index, content
    if open_calls:
        raise refuse(
            "unanswered_call",
            at_call,
            "Please ensure that the number of function "
            "response parts is equal to the number of function call parts of the function "
            "call turn.",
        )


def _joined(
    contents: Sequence[Mapping[str, Any]], turns: Sequence[Sequence[Mapping[str, Any]]]
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Join consecutive contents of one role: a call turn may be several contents."""
    joined: list[tuple[str, list[Mapping[str, Any]]]] = []
    for content, parts in zip(contents, turns, strict=True):
        role = "model" if content.get("role") == "model" else "user"
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(parts)
        else:
            joined.append((role, list(parts)))
    return joined


def _check_signatures(
    contents: Sequence[Mapping[str, Any]],
    turns: Sequence[Sequence[Mapping[str, Any]]],
    issued: Collection[str] | None,
) -> None:
    start = 0
    for index, (content, parts) in enumerate(zip(contents, turns, strict=True)):
        asks = any("function_response" not in part for part in parts)
        if content.get("role", "user") == "user" and asks:
            start = index
    for index in range(start, len(turns)):
        calls = [part for part in turns[index] if "function_call" in part]
        if not calls:
            continue
        signature = calls[0].get("thought_signature")
        name = block_of(calls[0]["function_call"]).get("name")
        if not signature:
            raise refuse(
                "missing_signature",
                index,
                f"Function call is missing a "
                f"thought_signature in functionCall parts. This is required for tools to "
                f"work correctly, and missing thought_signature may lead to degraded "
                f"model performance. Function call `default_api:{name}`, position "
                f"{index}.",
            )
        if issued is not None and signature not in issued and signature not in _BYPASS:
            raise refuse("thinking_bound", index, "Corrupted thought signature.")
