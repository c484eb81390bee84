"""Find what a message holds that providers refuse because it is empty, and take it out.

Anthropic, Gemini and Bedrock refuse messages and text blocks without text, OpenAI refuses an empty
list of calls, and clients send the raw copy of calls that were taken out of a message. Thinking
with an empty text is complete: its signature holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.messages.shapes.blocks import as_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.messages.shapes.views import MessageView

__all__ = ("is_blank", "without_blanks")

_CALLS = ("tool_calls", "function_call")
"""Keys of calls; clients also look for a raw copy of calls under them in `additional_kwargs`."""


def is_blank(view: MessageView) -> bool:
    """Return whether a message of the user or the assistant holds nothing.

    Empty system messages are not blank: providers accept them, and frameworks send them.
    """
    if view.role not in ("user", "assistant") or view.text.strip():
        return False
    holds = (view.calls, view.results, view.server, view.reasoning, view.media, view.unknown)
    return not any(holds) and not view.signed


def without_blanks(message: Any) -> Any:
    """Return the message without blank text blocks, empty call lists and raw copies of calls.

    Raw copies stay if the message still makes calls of its own. A message that holds nothing of the
    kind comes back as it is.
    """
    if isinstance(message, dict):
        return _of_dict(cast("dict[str, Any]", message))
    if not hasattr(message, "model_copy"):
        return message
    changed: dict[str, Any] = {}
    for key in ("content", "blocks"):
        kept = _texts_left(getattr(message, key, None))
        if kept is not None:
            changed[key] = kept
    beside: Any = getattr(message, "additional_kwargs", None)
    if isinstance(beside, dict) and getattr(message, "tool_calls", None) == []:
        has_invalid = bool(getattr(message, "invalid_tool_calls", None))
        kwargs = cast("dict[str, Any]", beside)
        if kwargs.get("tool_calls") and not has_invalid:
            changed["additional_kwargs"] = {
                key: one for key, one in kwargs.items() if key != "tool_calls"
            }
    return message.model_copy(update=changed) if changed else message


def _of_dict(message: dict[str, Any]) -> dict[str, Any]:
    changed = {key: one for key, one in message.items() if not (key in _CALLS and not one)}
    kept = _texts_left(message.get("content"))
    if kept is not None:
        changed["content"] = kept
    elif len(changed) < len(message) and message.get("content") is None:
        changed["content"] = ""
    same = len(changed) == len(message) and kept is None
    return message if same else changed


def _texts_left(content: Any) -> list[Any] | None:
    """Return content without blank text blocks; `None` if there are none, or nothing else."""
    if not isinstance(content, list):
        return None
    blocks = cast("list[Any]", content)
    kept = [block for block in blocks if not _is_blank_text(block)]
    return kept if kept and len(kept) < len(blocks) else None


def _is_blank_text(block: Any) -> bool:
    if isinstance(block, str):
        return not block.strip()
    given: Mapping[str, Any] | None = as_block(block)
    if given is None:
        kind, text = getattr(block, "block_type", None), getattr(block, "text", None)
    else:
        kind, text = given.get("type"), given.get("text")
    return kind == "text" and isinstance(text, str) and not text.strip()
