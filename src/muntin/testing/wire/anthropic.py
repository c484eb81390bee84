"""What Anthropic's messages refuse: pairs, empty texts, thinking, the place of system messages.

Consecutive messages of one role are joined before pairs are checked, as the provider joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.testing.wire.refused import block_of, blocks_of, listed, matches, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("check_anthropic", "joined_turns")

_THINKING = ("thinking", "redacted_thinking")
_SERVER = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "compaction",
)
_BLOCKS = {
    "user": ("text", "image", "document", "search_result", "tool_result", "container_upload"),
    "assistant": ("text", "tool_use", *_THINKING, *_SERVER),
    "system": ("text", "tool_addition", "tool_removal"),
}
_IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference")
_TOOL = r"[a-zA-Z0-9_-]{1,128}"
_MOST_MARKS = 4


def check_anthropic(body: Mapping[str, Any], *, mid_system: bool = False) -> None:
    """Check a messages request body as Anthropic does.

    Args:
        body: The request.
        mid_system: Whether the model accepts system messages inside `messages`.

    Raises:
        RequestRefused: With the provider's text in `.problem`.
    """
    if not isinstance(body.get("max_tokens"), int):
        raise refuse("field", None, "max_tokens: Field required")
    messages = blocks_of(body.get("messages"))
    if not messages:
        raise refuse("no_messages", None, "messages: at least one message is required")
    _check_system(body)
    _check_tools(body)
    _check_marks(body)
    for index, message in enumerate(messages):
        _check_message(message, index, is_last=index == len(messages) - 1)
    _check_roles(messages, mid_system=mid_system)
    _check_pairs(messages)
    if block_of(body.get("thinking")).get("type") == "enabled":
        _check_thinking(messages)


def _check_system(body: Mapping[str, Any]) -> None:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    for block in blocks_of(system):
        if block.get("type") != "text":
            raise refuse(
                "part_type",
                None,
                f"system.0.type: Input should be 'text', got {block.get('type')!r}",
            )
        if not block.get("text"):
            raise refuse("empty_content", None, "system: text content blocks must be non-empty")


def _check_tools(body: Mapping[str, Any]) -> None:
    for at, tool in enumerate(blocks_of(body.get("tools"))):
        if tool.get("type", "custom") != "custom":
            continue
        if not matches(_TOOL, tool.get("name")):
            raise refuse(
                "name",
                None,
                f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
            )
        if block_of(tool.get("input_schema")).get("type") != "object":
            raise refuse("field", None, f"tools.{at}.custom.input_schema.type: Field required")


def _check_marks(body: Mapping[str, Any]) -> None:
    marks = _marks([body.get("system"), body.get("tools"), body.get("messages")])
    if marks > _MOST_MARKS:
        raise refuse(
            "cache_marks",
            None,
            f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {marks}.",
        )


def _marks(value: Any) -> int:
    children = listed(value)
    if children is not None:
        return sum(_marks(one) for one in children)
    block = block_of(value)
    if not block:
        return 0
    return bool(block.get("cache_control")) + _marks(block.get("content"))


def _check_message(message: Mapping[str, Any], index: int, *, is_last: bool) -> None:
    role = message.get("role")
    if role not in _BLOCKS:
        raise refuse("role", index, f"messages.{index}.role: Input should be 'user' or 'assistant'")
    content = message.get("content")
    if isinstance(content, str):
        if not content and not (is_last and role == "assistant"):
            raise _empty(index)
        if content and not content.strip():
            raise refuse(
                "empty_content",
                index,
                "messages: text content blocks must contain non-whitespace text",
            )
        if is_last and role == "assistant" and content != content.rstrip():
            raise _trailing(index)
        return
    blocks = listed(content)
    if blocks is None:
        raise refuse("field", index, f"messages.{index}.content: Input should be a valid list")
    if not blocks and not (is_last and role == "assistant"):
        raise _empty(index)
    for at, block in enumerate(blocks_of(blocks)):
        _check_block(block, str(role), index, at)
    last = block_of(blocks[-1] if blocks else None)
    text = last.get("text")
    if is_last and role == "assistant" and isinstance(text, str) and text != text.rstrip():
        raise _trailing(index)


def _empty(index: int) -> Exception:
    return refuse(
        "empty_content",
        index,
        f"messages.{index}: all messages must have non-empty "
        f"content except for the optional final assistant message",
    )


def _trailing(index: int) -> Exception:
    return refuse(
        "last_message",
        index,
        "messages: final assistant content cannot end with trailing whitespace",
    )


def _check_block(block: Mapping[str, Any], role: str, index: int, at: int) -> None:
    kind, where = block.get("type"), f"messages.{index}.content.{at}"
    if kind not in _BLOCKS[role]:
        raise refuse(
            "part_type",
            index,
            f"{where}: Input tag {kind!r} found using 'type' does not "
            f"match any of the expected tags: "
            f"{', '.join(map(repr, _BLOCKS[role]))}",
        )
    if kind == "text":
        _check_text(block, index)
    elif kind == "tool_use":
        if not matches(r"[a-zA-Z0-9_-]+", block.get("id")):
            raise refuse(
                "call_id",
                index,
                f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            )
        if not matches(_TOOL, block.get("name")):
            raise refuse(
                "name",
                index,
                f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
            )
        if not isinstance(block.get("input"), dict):
            raise refuse(
                "arguments", index, f"{where}.tool_use.input: Input should be a valid dictionary"
            )
    elif kind == "tool_result":
        _check_result(block, index, where)
    elif kind == "compaction" and block.get("content") == "":
        raise refuse("empty_content", index, f"{where}.compaction.content: must be non-empty")
    elif kind == "thinking" and not block.get("signature"):
        raise refuse("missing_signature", index, f"{where}.thinking.signature: Field required")


def _check_text(block: Mapping[str, Any], index: int) -> None:
    text = block.get("text")
    if not isinstance(text, str) or not text:
        raise refuse("empty_content", index, "messages: text content blocks must be non-empty")
    if not text.strip():
        raise refuse(
            "empty_content", index, "messages: text content blocks must contain non-whitespace text"
        )


def _check_result(block: Mapping[str, Any], index: int, where: str) -> None:
    content = block.get("content")
    if block.get("is_error") and not content:
        raise refuse(
            "empty_content",
            index,
            f"{where}.tool_result: content cannot be empty if `is_error` is true",
        )
    for part in blocks_of(content):
        if part.get("type") not in _IN_RESULTS:
            raise refuse(
                "part_type",
                index,
                f"{where}.tool_result.content: Input tag "
                f"{part.get('type')!r} does not match any of the expected tags",
            )
        if part.get("type") == "text":
            _check_text(part, index)


def _check_roles(messages: Sequence[Mapping[str, Any]], *, mid_system: bool) -> None:
    opened = [block.get("type") for block in blocks_of(messages[0].get("content"))[:1]]
    if messages[0].get("role") == "assistant" and opened != ["compaction"]:
        raise refuse("first_message", 0, 'messages: first message must use the "user" role')
    for index, message in enumerate(messages):
        if message.get("role") != "system":
            continue
        if not mid_system:
            raise refuse(
                "system_position",
                index,
                f'messages.{index}: Unexpected role "system". '
                f'The Messages API accepts a top-level `system` parameter, not "system" '
                f"as an input message role.",
            )
        before = messages[index - 1].get("role") if index else None
        after = messages[index + 1].get("role") if index + 1 < len(messages) else "assistant"
        if before != "user" or after != "assistant":
            raise refuse(
                "system_position",
                index,
                f"messages.{index}: a system message must "
                f"follow a user turn and precede an assistant turn or the end",
            )


def joined_turns(
    messages: Sequence[Mapping[str, Any]],
) -> list[tuple[int, str, list[Mapping[str, Any]]]]:
    """Join consecutive messages of one role: position of the first, role, blocks."""
    joined: list[tuple[int, str, list[Mapping[str, Any]]]] = []
    for index, message in enumerate(messages):
        role, content = str(message.get("role")), message.get("content")
        if role == "system":
            continue
        blocks: list[Mapping[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else blocks_of(content)
        )
        if joined and joined[-1][1] == role:
            joined[-1][2].extend(blocks)
        else:
            joined.append((index, role, list(blocks)))
    return joined


def _check_pairs(messages: Sequence[Mapping[str, Any]]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    caller = 0
    for index, _, blocks in joined_turns(messages):
        results = [block for block in blocks if block.get("type") == "tool_result"]
        answered = [str(block.get("tool_use_id")) for block in results]
        for identifier in answered:
            if identifier not in waiting:
                raise refuse(
                    "orphan_result",
                    index,
                    f"messages.{index}.content: unexpected "
                    f"`tool_use_id` found in `tool_result` blocks: {identifier}. Each "
                    f"`tool_result` block must have a corresponding `tool_use` block in "
                    f"the previous message.",
                )
            if answered.count(identifier) > 1:
                raise refuse(
                    "repeated_call",
                    index,
                    f"messages.{index}.content: each tool_use "
                    f"must have a single result. Found multiple `tool_result` blocks with "
                    f"id: {identifier}",
                )
        missing = [identifier for identifier in waiting if identifier not in answered]
        if missing or blocks[: len(results)] != results:
            code = "unanswered_call" if missing else "result_order"
            raise _unanswered(code, caller, missing or answered)
        waiting, caller = [], index
        for block in blocks:
            if block.get("type") == "tool_use":
                identifier = str(block.get("id"))
                if identifier in seen:
                    raise refuse(
                        "repeated_call",
                        index,
                        f"messages.{index}.content: `tool_use` ids must be unique",
                    )
                seen.add(identifier)
                waiting.append(identifier)
    if waiting:
        raise _unanswered("unanswered_call", caller, waiting)


def _unanswered(code: Any, index: int, ids: Sequence[str]) -> Exception:
    return refuse(
        code,
        index,
        f"messages.{index}: `tool_use` ids were found without `tool_result` "
        f"blocks immediately after: {', '.join(ids)}. Each `tool_use` block must have a "
        f"corresponding `tool_result` block in the next message.",
    )


def _check_thinking(messages: Sequence[Mapping[str, Any]]) -> None:
    """Check that the open tool round begins with its thinking."""
    turns = joined_turns(messages)
    for at in range(len(turns) - 1, -1, -1):
        index, role, blocks = turns[at]
        if role == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            return
        if role == "assistant":
            kind = blocks[0].get("type") if blocks else None
            if any(b.get("type") == "tool_use" for b in blocks) and kind not in _THINKING:
                raise refuse(
                    "missing_thinking",
                    index,
                    f"messages.{index}.content.0.type: Expected "
                    f"`thinking` or `redacted_thinking`, but found `{kind}`. When "
                    f"`thinking` is enabled, a final `assistant` message must start with "
                    f"a thinking block.",
                )
            return
