"""Which older turns of a conversation stay verbatim.

A tail of the newest turns keeps the thread; older turns come back when the question asks for them.
How much either gets is not a setting: it follows from the conversation and the question.

Nothing is summarised here and nothing is rendered: indices come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from muntin.lexical import bm25_scores
from muntin.tokens import TokenCounter, count_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("RecallPlan", "plan", "recall")

_NEIGHBOUR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPlan:
    """Which turns stay verbatim, as indices into the turns given."""

    recalled: tuple[int, ...]
    """Older turns chosen by the question, ascending; all are below `tail_start`."""
    tail_start: int
    """First turn of the unbroken tail; the number of turns when there is no tail."""
    tokens: int
    """Tokens of all that is kept, by the costs or the counter given."""
    turns: int
    """How many turns there were."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Every index kept, ascending."""
        return (*self.recalled, *range(self.tail_start, self.turns))


def recall(
    texts: Sequence[str],
    question: str,
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    costs: Sequence[int] | None = None,
) -> list[int]:
    """Choose turns to keep verbatim by the question, ascending.

    Args:
        texts: The turns, oldest first.
        question: What is asked now.
        max_tokens: Tokens all chosen turns may take together.
        counter: Counts a turn where `costs` does not say it.
        costs: Tokens of each turn, framing included. None counts every text with `counter`.
    """
    sizes = [counter(text) for text in texts] if costs is None else list(costs)
    scores = bm25_scores(question, texts)
    if not len(scores):
        return []
    near = np.zeros_like(scores)
    near[1:] = scores[:-1]
    near[:-1] = np.maximum(near[:-1], scores[1:])
    scores = scores + _NEIGHBOUR * near
    left = max_tokens
    chosen: list[int] = []
    for at in np.argsort(-scores, kind="stable").tolist():
        if scores[at] <= 0:
            break
        if sizes[at] <= left:
            chosen.append(at)
            left -= sizes[at]
    return sorted(chosen)


def plan(
    texts: Sequence[str],
    question: str | None,
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    costs: Sequence[int] | None = None,
) -> RecallPlan:
    """Choose the tail and the recalled turns that stay verbatim within a budget.

    Args:
        texts: The turns, oldest first, each as the model will read it (speaker included).
        question: What is asked now. None keeps the longest tail that fits.
        max_tokens: Tokens all kept turns may take together, by `costs` or `counter`.
        counter: Counts a turn where `costs` does not say it.
        costs: Tokens of each turn, framing included. None counts every text with `counter`.
    """
    sizes = [counter(text) for text in texts] if costs is None else list(costs)
    room = max_tokens if question is None else max_tokens // 4
    start = _tail_start(sizes, room)
    spent = sum(sizes[start:])
    recalled: list[int] = []
    if question is not None:
        recalled = recall(
            texts[:start], question, max_tokens=max_tokens - spent, costs=sizes[:start]
        )
    return RecallPlan(
        recalled=tuple(recalled),
        tail_start=start,
        tokens=spent + sum(sizes[at] for at in recalled),
        turns=len(sizes),
    )


def _tail_start(sizes: Sequence[int], room: int) -> int:
    start = len(sizes)
    while start and sizes[start - 1] <= room:
        start -= 1
        room -= sizes[start]
    return start
