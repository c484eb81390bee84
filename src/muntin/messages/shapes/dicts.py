"""Find the shape of a message dict by the keys and block types that only one provider writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.shapes.frameworks.vercel import VERCEL
from muntin.messages.shapes.providers.anthropic import ANTHROPIC
from muntin.messages.shapes.providers.gemini import GEMINI
from muntin.messages.shapes.providers.openai_chat import OPENAI_CHAT
from muntin.messages.shapes.providers.openai_responses import OPENAI_RESPONSES

if TYPE_CHECKING:
    from muntin.messages.shapes.protocol import MessageShape

__all__ = ("dict_shape",)

_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "document",
        "compaction",
    }
)
_SAYING = frozenset({"content", "parts", "tool_calls", "function_call"})
"""Keys of which every message has one."""
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def dict_shape(message: dict[str, Any]) -> MessageShape | None:
    """Return the shape of a message dict; `None` for other dicts.

    A plain `{"role", "content"}` dict with text is the same for all providers and reads as
    chat-completions.
    """
    if VERCEL.reads(message):
        return VERCEL
    if "content" not in message and GEMINI.reads(message):
        return GEMINI
    if "role" not in message:
        return OPENAI_RESPONSES if isinstance(message.get("type"), str) else None
    kind = message.get("type")
    if isinstance(kind, str) and kind != "message" and not _SAYING & message.keys():
        return OPENAI_RESPONSES  # an item with a role, such as `additional_tools`
    is_item = message.get("type") == "message"
    if is_item and "stop_reason" in message:
        return ANTHROPIC  # an answer of Anthropic's, stored as it came
    other = OPENAI_RESPONSES if is_item else OPENAI_CHAT
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return other
    if isinstance(content, Sequence):
        for block in cast("Sequence[Any]", content):
            if not isinstance(block, Mapping):
                continue
            kind = cast("Mapping[str, Any]", block).get("type")
            if kind in _RESPONSES_BLOCKS:
                return OPENAI_RESPONSES
            if kind in _ANTHROPIC_BLOCKS or (kind == "image" and "source" in block):
                # A dict with both is chat-completions that kept its provider's blocks.
                return OPENAI_CHAT if "tool_calls" in message else ANTHROPIC
            if is_item and kind in ("text", "image"):
                return ANTHROPIC
    return other
