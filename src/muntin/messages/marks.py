"""Marks of a prompt cache: where they are in messages, and where they go when theirs is cut.

A mark ends a prefix that the provider caches: `cache_control` on a block (Anthropic), a block
`cachePoint` (Bedrock) or `CachePoint` (LlamaIndex), `prompt_cache_breakpoint` (OpenAI). A mark that
is dropped with its message switches the cache off without an error, so it moves to the last kept
message before it. Marks are never added: a provider accepts a limited number (Anthropic four).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from muntin.messages.message import Message
from muntin.messages.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("cache_marks", "keep_cache_marks")

_KEYS: Final = ("cache_control", "prompt_cache_breakpoint")
_BLOCKS: Final = ("cachePoint",)
_UNMARKED: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "tool_use",
                              "tool_result", "function_call", "compaction"})  # fmt: skip
"""Types of blocks that do not take a mark that was elsewhere, or only some of them do."""


class _Mark(NamedTuple):
    """A mark, as it is written."""

    key: str
    """Key on a block; "" for a block of its own."""
    value: Any
    """Value of the key, or the block."""


def cache_marks(message: Any) -> int:
    """Count the marks of a prompt cache in a message.

    ```python
    from muntin.messages import cache_marks

    block = {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}
    print(cache_marks({"role": "user", "content": [block]}))
    #> 1
    ```
    """
    return len(_marks(message))


def keep_cache_marks(before: Sequence[Any], after: Sequence[Any]) -> Sequence[Any]:
    """Return messages after a cut with the marks that the cut took away.

    A mark goes to the last message before its old place that was kept as it is; without one, to the
    first kept message that takes it. If fewer messages are kept than there were marks, the last
    ones are lost.

    Args:
        before: The messages before the cut.
        after: The messages after it, kept ones as the same objects.

    Returns:
        The messages; the given object if no mark is missing.
    """
    given = [(at, mark) for at, message in enumerate(before) for mark in _marks(message)]
    if not given:
        return after
    left = sum(cache_marks(message) for message in after)
    missing = len(given) - left
    if missing <= 0:
        return after
    places = {id(message): at for at, message in enumerate(before)}
    out = list(after)
    kept = {id(message) for message in after}
    gone = [(at, mark) for at, mark in given if id(before[at]) not in kept]
    for at, mark in gone[-missing:]:
        target = _target(out, after, places, at, mark)
        if target is not None:
            out[target] = _marked(out[target], mark)
    return out


def _target(
    out: Sequence[Any], after: Sequence[Any], places: Mapping[int, int], at: int, mark: _Mark
) -> int | None:
    """Find the message that takes the mark of a message at a position before the cut."""
    free = [
        i for i, message in enumerate(out) if message is after[i] and _takes_mark(message, mark)
    ]
    stable = [i for i in free if places.get(id(after[i]), at + 1) <= at]
    if stable:
        return stable[-1]
    known = [i for i in free if id(after[i]) in places]
    return next(iter(known or free), None)


def _takes_mark(message: Any, mark: _Mark) -> bool:
    """Return whether a message takes a mark: it has a text or media, and no mark yet."""
    name, content = _content(message)
    if not name or cache_marks(message):
        return False
    if mark.key and not isinstance(content, str) and not any(map(_is_markable, content)):
        return False
    view = shape_of(message).view(message)
    return bool(view.text.strip() or view.media) and not view.results


def _marked(message: Any, mark: _Mark) -> Any:
    """Return a copy of a message with a mark on its last block."""
    name, content = _content(message)
    if isinstance(content, str):
        blocks: list[Any] = [{"type": "text", "text": content}]
    else:
        blocks = list(cast("Sequence[Any]", content))
    if not mark.key:
        blocks.append(mark.value)
    else:
        last = max(at for at, block in enumerate(blocks) if _is_markable(block))
        block = blocks[last]
        blocks[last] = {"type": "text", "text": block} if isinstance(block, str) else block
        blocks[last] = {**blocks[last], mark.key: mark.value}
    if isinstance(message, Mapping):
        return {**cast("Mapping[str, Any]", message), name: blocks}
    if isinstance(message, Message):
        return replace(message, content=tuple(blocks))
    return message.model_copy(update={name: blocks})


def _is_markable(block: Any) -> bool:
    if isinstance(block, str):
        return bool(block)
    if not isinstance(block, Mapping):
        return False
    known = cast("Mapping[str, Any]", block)
    return known.get("type") not in _UNMARKED and known.get("text", "-") != ""


def _content(message: Any) -> tuple[str, Any]:
    """Return the name and the value of what holds the blocks of a message."""
    for name in ("blocks", "parts", "content"):
        if isinstance(message, Mapping):
            held = cast("Mapping[str, Any]", message).get(name)
        else:
            held = getattr(message, name, None)
        if isinstance(held, (str, list, tuple)):
            return name, cast("Any", held)
    return "", ()


def _marks(message: Any) -> list[_Mark]:
    content = _content(message)[1]
    found = [] if isinstance(content, str) else list(_in_blocks(content))
    if isinstance(message, Mapping):
        found += _on(cast("Mapping[str, Any]", message))
    return found


def _in_blocks(blocks: Any) -> Iterator[_Mark]:
    if not isinstance(blocks, (list, tuple)):
        return
    for block in cast("Sequence[Any]", blocks):
        if isinstance(block, Mapping):
            known = cast("Mapping[str, Any]", block)
            if any(name in known for name in _BLOCKS):
                yield _Mark("", dict(known))
            yield from _on(known)
            yield from _in_blocks(known.get("content"))
        elif getattr(block, "block_type", None) == "cache":
            yield _Mark("", block)


def _on(block: Mapping[str, Any]) -> list[_Mark]:
    return [_Mark(key, block[key]) for key in _KEYS if block.get(key)]
