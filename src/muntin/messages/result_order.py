"""Move results directly behind the calls they answer: providers accept them nowhere else.

Interrupts, late results and overlapping rounds leave conversations with complete pairs that are
separated by other messages. Results move up to their call; everything else keeps its order.
Nothing is dropped or added: `repair` handles broken pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.shapes.views import MessageView

__all__ = ("straight_order",)


def straight_order(views: Sequence[MessageView]) -> tuple[int, ...] | None:
    """Return the positions in the order in which results follow their calls.

    Args:
        views: The messages, read.

    Returns:
        A permutation of all positions, or `None` if nothing has to move.

    ```python
    from muntin.messages.result_order import straight_order
    from muntin.messages.shapes import view

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Are you there?"},
        {"role": "tool", "tool_call_id": "c1", "content": "A door."},
    ]
    print(straight_order([view(message) for message in history]))
    #> (0, 2, 1)
    ```
    """
    answers = _answers(views)
    if not answers:
        return None
    order: list[int] = []
    moved: set[int] = set()
    for index in range(len(views)):
        if index in moved:
            continue
        order.append(index)
        for answer in answers.get(index, ()):
            order.append(answer)
            moved.add(answer)
    return None if order == sorted(order) else tuple(order)


def _answers(views: Sequence[MessageView]) -> dict[int, list[int]]:
    """List, by the message behind which they belong, the messages that carry its results."""
    anchors = _anchors(views)
    waiting: dict[str, list[int]] = {}
    answers: dict[int, list[int]] = {}
    for index, one in enumerate(views):
        callers = [waiting[r.call_id].pop() for r in one.results if waiting.get(r.call_id)]
        if callers and not one.calls:
            # A message that answers two rounds can follow only one of them: the later.
            answers.setdefault(anchors[max(callers)], []).append(index)
        for call in one.calls:
            waiting.setdefault(call.id, []).append(index)
    return answers


def _anchors(views: Sequence[MessageView]) -> list[int]:
    """Return the message behind which results of each belong: itself or the end of its turn."""
    anchors = list(range(len(views)))
    for index in range(len(views) - 2, -1, -1):
        one, after = views[index], views[index + 1]
        if one.leads or (one.item and after.item and after.role == "assistant"):
            anchors[index] = anchors[index + 1]
    return anchors
