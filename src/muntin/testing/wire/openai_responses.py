"""What OpenAI's Responses refuse: the types of items and parts, and pairs by id.

Outputs need not follow their calls directly. An item that was written together with reasoning needs
that reasoning before it, and reasoning needs the item that followed it; which items belong together
only the server that wrote them knows, so it passes `issued`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.testing.wire.refused import block_of, blocks_of, listed, matches, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("check_openai_responses",)

_ROLES = ("assistant", "system", "developer", "user")
_GIVEN = ("input_text", "input_image", "input_file", "input_audio")
_WRITTEN = ("output_text", "refusal")
_CALLS = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
)
_ITEMS = frozenset(
    (
        "message",
        "reasoning",
        "item_reference",
        "web_search_call",
        "file_search_call",
        "image_generation_call",
        "code_interpreter_call",
        "mcp_list_tools",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction",
        "compaction_trigger",
        "additional_tools",
        "configuration_update",
        "tool_search_call",
        "tool_search_output",
        "program",
        "program_output",
        *_CALLS,
        *(f"{kind}_output" for kind in _CALLS),
    )
)
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_LONGEST_ID = 64


def check_openai_responses(
    body: Mapping[str, Any], *, issued: Mapping[str, str] | None = None
) -> None:
    """Check a Responses request body as OpenAI does.

    Args:
        body: The request.
        issued: For each item id that the server wrote after reasoning the id of that reasoning.

    Raises:
        RequestRefused: With the provider's text in `.problem`.
    """
    given = body.get("input")
    if isinstance(given, str):
        return
    items = blocks_of(given)
    if not items and not body.get("previous_response_id"):
        raise refuse(
            "no_messages",
            None,
            "One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.",
        )
    for index, item in enumerate(items):
        _check_item(item, index)
    if not body.get("previous_response_id"):
        _check_pairs(items)
    _check_reasoning(items, issued or {})


def _check_item(item: Mapping[str, Any], index: int) -> None:
    kind = item.get("type", "message")
    if kind not in _ITEMS:
        raise refuse(
            "part_type",
            index,
            f"Invalid value: {kind!r}. Supported values are: "
            f"{', '.join(map(repr, sorted(_ITEMS)))}. ('input[{index}]')",
        )
    prefix = _PREFIXES.get(kind)
    identifier = item.get("id")
    if prefix and identifier is not None and not str(identifier).startswith(prefix):
        raise refuse(
            "call_id",
            index,
            f"Invalid 'input[{index}].id': {identifier!r}. Expected an "
            f"ID that begins with {prefix!r}.",
        )
    if kind == "message":
        _check_message(item, index)
    if kind in _CALLS or kind.removesuffix("_output") in _CALLS:
        _check_call_id(item, index)
    if kind == "function_call":
        if not isinstance(item.get("arguments"), str):
            raise refuse(
                "arguments",
                index,
                f"Invalid type for 'input[{index}].arguments': expected a string.",
            )
        if not matches(r"[a-zA-Z0-9_-]{1,128}", item.get("name")):
            raise refuse(
                "name",
                index,
                f"Invalid 'input[{index}].name': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
            )
    if kind == "function_call_output":
        _check_parts(item.get("output"), index, _GIVEN, f"input[{index}].output")
    if kind == "reasoning" and listed(item.get("summary")) is None:
        raise refuse("field", index, f"Missing required parameter: 'input[{index}].summary'.")


def _check_message(item: Mapping[str, Any], index: int) -> None:
    role = item.get("role")
    if role not in _ROLES:
        raise refuse(
            "role",
            index,
            f"Invalid value: {role!r}. Supported values are: "
            f"{', '.join(map(repr, _ROLES))}. ('input[{index}].role')",
        )
    allowed = _WRITTEN if role == "assistant" else _GIVEN
    _check_parts(item.get("content"), index, allowed, f"input[{index}].content")


def _check_parts(content: Any, index: int, allowed: Sequence[str], where: str) -> None:
    if isinstance(content, str):
        return
    parts = listed(content)
    if parts is None:
        raise refuse(
            "empty_content",
            index,
            f"Invalid type for '{where}': expected one of an "
            f"array of objects or string, but got null instead.",
        )
    for at, part in enumerate(blocks_of(parts)):
        if part.get("type") not in allowed:
            raise refuse(
                "part_type",
                index,
                f"Invalid value: {part.get('type')!r}. Supported "
                f"values are: {', '.join(map(repr, allowed))}. "
                f"('{where}[{at}]')",
            )


def _check_call_id(item: Mapping[str, Any], index: int) -> None:
    identifier = item.get("call_id")
    if not isinstance(identifier, str) or not identifier:
        raise refuse("call_id", index, f"Missing required parameter: 'input[{index}].call_id'.")
    if len(identifier) > _LONGEST_ID:
        raise refuse(
            "call_id",
            index,
            f"Invalid 'input[{index}].call_id': string too long. "
            f"Expected a string with maximum length {_LONGEST_ID}, but got a string with "
            f"length {len(identifier)} instead.",
        )


def _check_pairs(items: Sequence[Mapping[str, Any]]) -> None:
    waiting: dict[str, int] = {}
    for index, item in enumerate(items):
        kind, identifier = str(item.get("type", "message")), str(item.get("call_id"))
        if kind in _CALLS:
            if identifier in waiting:
                raise refuse(
                    "repeated_call", index, f"Duplicate item found with call_id {identifier}."
                )
            waiting[identifier] = index
        elif kind.removesuffix("_output") in _CALLS:
            if identifier not in waiting:
                raise refuse(
                    "orphan_result",
                    index,
                    f"No tool call found for function call output with call_id {identifier}.",
                )
            del waiting[identifier]
    if waiting:
        raise refuse(
            "unanswered_call",
            min(waiting.values()),
            f"No tool output found for function call {next(iter(waiting))}.",
        )


def _check_reasoning(items: Sequence[Mapping[str, Any]], issued: Mapping[str, str]) -> None:
    """Check that reasoning precedes what it was written for, and that something follows it."""
    present: set[str] = set()
    for index, item in enumerate(items):
        kind, identifier = str(item.get("type", "message")), str(item.get("id"))
        if kind == "reasoning":
            present.add(identifier)
            after = block_of(items[index + 1] if index + 1 < len(items) else None)
            kinds = (
                "reasoning",
                "message",
                *_CALLS,
                "web_search_call",
                "file_search_call",
                "code_interpreter_call",
                "image_generation_call",
                "mcp_call",
                "mcp_list_tools",
                "item_reference",
                "tool_search_call",
                "program",
            )
            written = after.get("type", "message") in kinds and after.get("role") in (
                None,
                "assistant",
            )
            if item.get("id") and not (after and written):
                raise refuse(
                    "reasoning_pair",
                    index,
                    f"Item {identifier!r} of type 'reasoning' "
                    f"was provided without its required following item.",
                )
        elif identifier in issued and issued[identifier] not in present:
            raise refuse(
                "reasoning_pair",
                index,
                f"Item {identifier!r} of type {kind!r} was "
                f"provided without its required 'reasoning' item: "
                f"{issued[identifier]!r}.",
            )
