"""Put results right behind the calls they answer, which is the only place providers take them.

Interrupts, late results and rounds that overlap leave conversations whose pairs are complete but
stand apart: a user spoke in between, or two rounds are interleaved. Results move up to their call;
everything else keeps its order. Nothing is dropped and nothing is written: broken pairs are the
business of `mending`.
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
        A permutation of all positions, or `None` where nothing has to move.

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
            # A message that answers two rounds can stand behind one of them only: the later.
            answers.setdefault(anchors[max(callers)], []).append(index)
        for call in one.calls:
            waiting.setdefault(call.id, []).append(index)
    return answers


def _anchors(views: Sequence[MessageView]) -> list[int]:
    """Say behind which message each one's results belong: itself, or the last item of its turn."""
    anchors = list(range(len(views)))
    for index in range(len(views) - 2, -1, -1):
        one, after = views[index], views[index + 1]
        if one.leads or (one.item and after.item and after.role == "assistant"):
            anchors[index] = anchors[index + 1]
    return anchors
