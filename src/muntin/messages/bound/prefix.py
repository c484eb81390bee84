"""Take signed thinking out of messages behind a changed prefix.

Newer models accept a signed block of thinking, or a reasoning item, only behind the very messages
it was written behind: after a cut they refuse it or drop it without a word. Texts, calls and
results stay. Ids of items that were written together with removed reasoning go with it, because a
provider would look for the reasoning they name. Gemini's signatures on calls stay: they must be
sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muntin.messages.blanks import is_blank
from muntin.messages.shapes import shape_of
from muntin.messages.shapes.blocks import as_block

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Unsigned", "first_change", "without_signed_thinking")

_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_FOLLOWERS = frozenset({"message", "function_call", "custom_tool_call"})
_SEALS = ("signature", "encrypted_content", "data")


class Unsigned(NamedTuple):
    """Messages without signed thinking, and how much was taken out."""

    messages: list[Any]
    """The messages; those without signed thinking are the same objects."""
    removed: int
    """Blocks and items that were taken out."""


def first_change(given: Sequence[Any], sent: Sequence[Any]) -> int | None:
    """Return the position from which a sent conversation differs from the given one.

    ```python
    from muntin.messages import first_change

    print(first_change(["a", "b", "c"], ["a", "note", "c"]), first_change(["a"], ["a", "b"]))
    #> 1 None
    ```
    """
    for index, message in enumerate(sent):
        if index >= len(given):
            return None
        if message is not given[index] and message != given[index]:
            return index
    return None


def without_signed_thinking(messages: Sequence[Any], start: int = 0) -> Unsigned:
    """Take signed thinking out of every message from a position on.

    Args:
        messages: The conversation. Not changed.
        start: Position of the first message that changed.

    ```python
    from muntin.messages import without_signed_thinking

    block = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    answer = {"role": "assistant", "content": [block, {"type": "text", "text": "Here."}]}
    unsigned = without_signed_thinking([{"role": "user", "content": "Where?"}, answer])
    print(unsigned.messages[1]["content"], unsigned.removed)
    #> [{'type': 'text', 'text': 'Here.'}] 1
    ```
    """
    out: list[Any] = list(messages[:start])
    removed = 0
    drops_ids = False
    for message in messages[start:]:
        item = as_block(message)
        kind = None if item is None else item.get("type")
        if item is not None and kind == "reasoning" and "role" not in item:
            removed += 1
            drops_ids = True
            continue
        if item is not None and drops_ids and kind in _FOLLOWERS and "id" in item:
            out.append({key: one for key, one in item.items() if key != "id"})
            continue
        changed, gone = _unsigned(message)
        removed += gone
        if gone and is_blank(shape_of(changed).view(changed)):
            continue
        out.append(changed)
    return Unsigned(out, removed)


def _unsigned(message: Any) -> tuple[Any, int]:
    """Return the message without signed blocks, and how many there were."""
    item = as_block(message)
    key = "content" if item is not None or not hasattr(message, "blocks") else "blocks"
    content: Any = item.get(key) if item is not None else getattr(message, key, None)
    if not isinstance(content, (list, tuple)):
        return message, 0
    blocks = list(cast("Sequence[Any]", content))
    kept = [block for block in blocks if not _is_signed(block)]
    gone = len(blocks) - len(kept)
    if not gone:
        return message, 0
    if any((as_block(block) or {}).get("type") == "reasoning" for block in blocks):
        kept = [_without_id(block) for block in kept]
    if item is not None:
        return {**item, key: kept}, gone
    if hasattr(message, "model_copy"):
        return message.model_copy(update={key: kept}), gone
    return message, 0


def _is_signed(block: Any) -> bool:
    given = as_block(block)
    if given is None:
        kind = getattr(block, "block_type", None)
        return kind == "thinking" and bool(getattr(block, "additional_information", None))
    if given.get("type") not in _THINKING:
        return False
    beside = as_block(given.get("extras")) or {}
    sealed = any(given.get(key) or beside.get(key) for key in _SEALS)
    return sealed or (given.get("type") == "reasoning" and bool(given.get("id")))


def _without_id(block: Any) -> Any:
    """Return a block without the id of an item that the server wrote with its reasoning."""
    given = as_block(block)
    if given is None or not str(given.get("id") or "").startswith(("msg_", "fc_")):
        return block
    return {key: one for key, one in given.items() if key != "id"}
