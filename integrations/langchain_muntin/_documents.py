"""The documents that fit a budget: relevant ones, each thing said once, in a chosen order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muntin.errors import ConfigurationError
from muntin.passages import select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.counting import TokenCounter
    from muntin.passages import Candidate, Embedding

__all__ = ("Ordering", "Picking", "arranged", "within")

Ordering = Literal["selection", "lost-in-the-middle", "document"]
"""As selected, the best first; the strongest at both ends, where models read best; or in the order
in which they came."""

BETWEEN = "\n\n"
"""What chains put between documents when they make one text of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """How documents are picked."""

    max_tokens: int | None
    """Tokens all of them may take, joined by blank lines; `None` does not limit them."""
    top_k: int | None
    """Most documents; `None` takes all that fit."""
    mmr_lambda: float
    """Relevance against diversity, in [0, 1]."""
    dedup_threshold: float
    """Similarity from which one is a near-duplicate."""
    counter: TokenCounter
    """What counts tokens."""

    def pick(self, candidates: Sequence[Candidate], query_embedding: Embedding | None) -> list[int]:
        """Return the positions of those that are picked, the best first."""
        chosen = select(
            candidates,
            top_k=self.top_k if self.max_tokens is None else None,
            lambda_=self.mmr_lambda,
            dedup_threshold=self.dedup_threshold,
            query_embedding=query_embedding,
        )
        picked = list(chosen.indices)
        if self.max_tokens is not None:
            texts = [candidates[at].content for at in picked]
            fitting = within(texts, self.max_tokens, self.counter, most=self.top_k)
            picked = [picked[at] for at in fitting]
        return picked


def within(
    texts: Sequence[str], max_tokens: int, counter: TokenCounter, *, most: int | None = None
) -> list[int]:
    """Choose texts in order while they fit together, joined by blank lines.

    One that does not fit is passed over for the next that does. What is chosen is counted joined.
    """
    between = counter(BETWEEN)
    chosen: list[int] = []
    left = max_tokens
    for at, text in enumerate(texts):
        if most is not None and len(chosen) == most:
            break
        cost = counter(text) + (between if chosen else 0)
        if cost <= left:
            chosen.append(at)
            left -= cost
    # Tokens are not additive: the joined text has the last word.
    while chosen and counter(BETWEEN.join(texts[at] for at in chosen)) > max_tokens:
        chosen.pop()
    return chosen


def arranged(picked: Sequence[int], ordering: Ordering) -> list[int]:
    """Put positions, the best first, in the order in which they are to stand.

    Raises:
        ConfigurationError: The ordering is unknown.
    """
    if ordering == "selection":
        return list(picked)
    if ordering == "document":
        return sorted(picked)
    if ordering == "lost-in-the-middle":
        return [*picked[::2], *reversed(picked[1::2])]
    raise ConfigurationError(f"unknown ordering {ordering!r}")
