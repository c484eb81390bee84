"""Read summaries that a provider wrote itself: compaction blocks and items.

The provider ignores everything before the newest of them except system messages, so those messages
are neither sent nor counted, and nothing of ours is put in front of it. A failed one (Anthropic's
`content: null`) has no effect. Only the provider that wrote a summary can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muntin.messages.shapes import shape_of
from muntin.messages.shapes.blocks import BlockReader, as_block
from muntin.messages.turns import leading_system

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.shapes.views import MessageView

__all__ = ("Compacted", "compaction_alone", "from_compaction", "newest_compaction", "opening")


class Compacted(NamedTuple):
    """A conversation from the newest summary of its provider on."""

    messages: Sequence[Any]
    """System messages in front, the message with the summary, and what follows it."""
    origins: tuple[int, ...]
    """For each message its position in the conversation."""
    dropped: tuple[int, ...]
    """Positions of the messages that the summary replaces."""


def newest_compaction(views: Sequence[MessageView]) -> int | None:
    """Return the position of the newest summary that the provider wrote; `None` without one."""
    return next((at for at in range(len(views) - 1, -1, -1) if views[at].compacts), None)


def opening(views: Sequence[MessageView]) -> int:
    """Count the messages that nothing may be put in front of: system messages, a summary."""
    front = leading_system(views)
    return front + 1 if front < len(views) and views[front].compacts else front


def from_compaction(
    messages: Sequence[Any], views: Sequence[MessageView] | None = None
) -> Compacted | None:
    """Leave out what the provider ignores because its own summary replaces it.

    Args:
        messages: The conversation. Not changed.
        views: The same, read; `None` reads it.

    Returns:
        `None` if nothing is before the newest summary.

    ```python
    from muntin.messages import from_compaction

    summary = {"role": "assistant", "content": [{"type": "compaction", "content": "Sent P-1."}]}
    thread = [{"role": "user", "content": "Send P-1."}, summary, {"role": "user", "content": "Ok?"}]
    print(from_compaction(thread).dropped)
    #> (0,)
    ```
    """
    if views is None:
        views = [shape_of(message).view(message) for message in messages]
    at = newest_compaction(views)
    if at is None:
        return None
    front = leading_system(views)
    first = _from_block(messages[at])
    if at <= front and first is messages[at]:
        return None
    kept = [*range(min(front, at)), at, *range(at + 1, len(messages))]
    return Compacted(
        [first if place == at else messages[place] for place in kept],
        tuple(kept),
        tuple(range(min(front, at), at)),
    )


def compaction_alone(message: Any) -> Any:
    """Return a copy of a message that holds nothing but the summary of its provider."""
    return _with_content(message, [block for block in _blocks(message) if _is_summary(block)])


def _from_block(message: Any) -> Any:
    """Return a message from its newest summary on."""
    blocks = _blocks(message)
    at = next((at for at in range(len(blocks) - 1, 0, -1) if _is_summary(blocks[at])), 0)
    return _with_content(message, blocks[at:]) if at else message


def _blocks(message: Any) -> list[Any]:
    item = as_block(message)
    content: Any = getattr(message, "content", None) if item is None else item.get("content")
    return list(cast("Sequence[Any]", content)) if isinstance(content, (list, tuple)) else []


def _with_content(message: Any, blocks: list[Any]) -> Any:
    item = as_block(message)
    if item is not None:
        return {**item, "content": blocks} if "content" in item else message
    if hasattr(message, "model_copy"):
        changed: dict[str, Any] = {"content": blocks}
        if getattr(message, "tool_calls", None):
            ids = {str((as_block(block) or {}).get("id")) for block in blocks}
            changed["tool_calls"] = [one for one in message.tool_calls if one["id"] in ids]
        return message.model_copy(update=changed)
    return message


def _is_summary(block: Any) -> bool:
    given = as_block(block)
    if given is not None and given.get("type") == "non_standard":
        return _is_summary(given.get("value"))
    if given is None or given.get("type") != "compaction":
        return False
    reader = BlockReader()
    reader.block(given)
    return reader.compacts
