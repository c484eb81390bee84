"""Decide for a conversation which bound reasoning is still valid, and take out the rest.

The prefix of a block is the system prompt, the tools and all messages before it. When a message
changed, everything behind the first change is invalid. Reasoning may be taken out from the front or
from the end of its chain, never from the middle. Texts, calls and results stay; ids of items that
were written together with removed reasoning go with it, because the provider would look for the
reasoning they name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muntin.messages.bound.blocks import (
    FOLLOWERS,
    holds_bound,
    is_emptied,
    model_of,
    rule_of_item,
    without_bound,
    without_id,
)
from muntin.messages.bound.models import binds, reads
from muntin.messages.shapes.blocks import as_block

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from muntin.messages.bound.models import Rule

__all__ = (
    "Unsigned",
    "bound_places",
    "first_change",
    "unreadable_places",
    "without_signed_thinking",
)


class Unsigned(NamedTuple):
    """Messages without signed thinking, and how much was taken out."""

    messages: list[Any]
    """The messages; those without signed thinking are the same objects."""
    removed: int
    """Blocks and items that were taken out."""
    origins: tuple[int, ...] = ()
    """For each message its position in what was given."""


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


def bound_places(messages: Sequence[Any], model: str | None = None) -> tuple[int, ...]:
    """Return the positions of messages with reasoning that is bound to what precedes it.

    Args:
        messages: The conversation.
        model: Name of the model that is asked; `None` if unknown. Reasoning of a model that does
            not check its prefix is not bound.

    ```python
    from muntin.messages import bound_places

    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    items = [{"role": "user", "content": "Where?"}, item]
    print(bound_places(items, "gpt-6.2-sol"), bound_places(items, "gpt-5.5"))
    #> (1,) ()
    ```
    """
    return tuple(
        at
        for at, message in enumerate(messages)
        if (rule := holds_bound(message)) and _is_checked(rule, message, model)
    )


def unreadable_places(messages: Sequence[Any], model: str | None) -> tuple[int, ...]:
    """Return the positions of messages with reasoning of other models that a model cannot use."""
    if not model:
        return ()
    return tuple(
        at
        for at, message in enumerate(messages)
        if not reads(model, model_of(message)) and holds_bound(message)
    )


def without_signed_thinking(
    messages: Sequence[Any],
    start: int = 0,
    *,
    places: Collection[int] | None = None,
    model: str | None = None,
    anyhow: bool = False,
) -> Unsigned:
    """Take signed thinking and reasoning items out of messages from a position on.

    Args:
        messages: The conversation. Not changed.
        start: Position of the first message that changed.
        places: Positions of the messages to take it out of; `None` means all from `start` on.
        model: Name of the model that is asked; `None` if unknown. Reasoning that it does not check
            stays.
        anyhow: Whether all of it goes, because the provider refused it.

    ```python
    from muntin.messages import without_signed_thinking

    block = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    answer = {"role": "assistant", "content": [block, {"type": "text", "text": "Here."}]}
    unsigned = without_signed_thinking([{"role": "user", "content": "Where?"}, answer])
    print(unsigned.messages[1]["content"], unsigned.removed)
    #> [{'type': 'text', 'text': 'Here.'}] 1
    ```
    """
    out: list[Any] = []
    origins: list[int] = []
    removed = 0
    drops_ids = False

    def keep(message: Any, at: int) -> None:
        out.append(message)
        origins.append(at)

    for at, message in enumerate(messages):
        wanted = at >= start if places is None else at in places
        rule = rule_of_item(message)
        if rule is not None:
            drops_ids = wanted and (anyhow or _is_checked(rule, message, model))
            if drops_ids:
                removed += 1
            else:
                keep(message, at)
            continue
        item = as_block(message)
        kind = None if item is None else item.get("type")
        drops_ids = drops_ids and kind in FOLLOWERS and (item or {}).get("role") != "user"
        if drops_ids:
            keep(without_id(message), at)
            continue
        if not wanted:
            keep(message, at)
            continue
        changed, gone = without_bound(message, _all if anyhow else _taken_of(message, model))
        removed += gone
        if not gone or not is_emptied(changed):
            keep(changed, at)
    return Unsigned(out, removed, tuple(origins))


def _all(rule: Rule) -> bool:  # noqa: ARG001 - every kind
    return True


def _taken_of(message: Any, model: str | None) -> Callable[[Rule], bool]:
    return lambda rule: _is_checked(rule, message, model)


def _is_checked(rule: Rule, message: Any, model: str | None) -> bool:
    """Return whether reasoning is checked by the model that is asked, or dropped by it."""
    wrote = model_of(message)
    if not binds(rule, wrote or model):
        return False
    return binds(rule, model) or not reads(model, wrote)
