"""What chat templates with strict alternation refuse (Mistral, Gemma, Llama 2), and Mistral's API.

Tool messages and assistant messages with calls do not take part in the alternation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from muntin.testing.wire.refused import blocks_of, matches, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("SystemRole", "check_alternating", "check_mistral")

SystemRole = Literal["first", "refused"]
"""Where a template accepts a system message: as the first message, or nowhere."""


def check_alternating(body: Mapping[str, Any], *, system: SystemRole = "first") -> None:
    """Check that user and assistant alternate, beginning with the user.

    Args:
        body: A chat-completions request.
        system: Where a system message is accepted.

    Raises:
        RequestRefused: With the text of the template in `.problem`.
    """
    messages = blocks_of(body.get("messages"))
    if not messages:
        raise refuse("no_messages", None, "messages: at least one message is required")
    first = 0
    if messages[0].get("role") in ("system", "developer"):
        if system == "refused":
            raise refuse("system_position", 0, "System role not supported")
        first = 1
    expected = "user"
    for index, message in enumerate(messages[first:], first):
        role = message.get("role")
        if role in ("tool", "function") or message.get("tool_calls"):
            continue
        if role != expected:
            code = "system_position" if role in ("system", "developer") else "alternation"
            raise refuse(
                code,
                index,
                "After the optional system message, conversation roles must "
                "alternate user/assistant/user/assistant/...",
            )
        expected = "assistant" if expected == "user" else "user"


def check_mistral(body: Mapping[str, Any]) -> None:
    """Check a chat-completions request body as Mistral's API does.

    Raises:
        RequestRefused: With the provider's text in `.problem`.
    """
    messages = blocks_of(body.get("messages"))
    if not messages:
        raise refuse("no_messages", None, "Conversation must have at least one message")
    waiting: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "user", "assistant", "tool"):
            raise refuse(
                "role",
                index,
                f"Input should be 'system', 'user', 'assistant' or 'tool', got {role!r}",
            )
        if role == "tool":
            identifier = str(message.get("tool_call_id"))
            if identifier not in waiting:
                raise refuse(
                    "orphan_result", index, f"Unexpected tool call id {identifier} in tool results"
                )
            waiting.remove(identifier)
            continue
        if waiting:
            raise refuse(
                "result_count", index, "Not the same number of function calls and responses"
            )
        calls = blocks_of(message.get("tool_calls"))
        if role == "assistant" and not message.get("content") and not calls:
            raise refuse(
                "empty_content",
                index,
                "Assistant message must have either content or tool_calls, but not none.",
            )
        for call in calls:
            if not matches(r"[a-zA-Z0-9]{9}", call.get("id")):
                raise refuse(
                    "call_id",
                    index,
                    f"Tool call id was {call.get('id')} but must be "
                    f"a-z, A-Z, 0-9, with a length of 9.",
                )
            waiting.append(str(call["id"]))
    if waiting:
        raise refuse(
            "result_count", len(messages) - 1, "Not the same number of function calls and responses"
        )
    last = messages[-1]
    if last.get("role") not in ("user", "tool") and not last.get("prefix"):
        raise refuse(
            "last_message",
            len(messages) - 1,
            "Expected last role User or Tool (or "
            "Assistant with prefix True) for serving but got "
            f"{last.get('role')}",
        )
