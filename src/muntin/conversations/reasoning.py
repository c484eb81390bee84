"""Choose which bound reasoning leaves a conversation that has to become smaller.

Old thinking goes first, because it is the only part that can be taken out without making anything
behind it invalid. If that is not enough, messages change, and all reasoning behind the first change
goes with them. Reasoning that comes before it stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muntin.messages import (
    bound_places,
    first_change,
    holds_bound,
    unreadable_places,
    without_signed_thinking,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from muntin.counting import MessageCounts

__all__ = ("BoundReasoning", "Lighter", "lighter_for", "unbound")

_TRIES = 3
"""Fits that look for the first change; then all bound reasoning is taken out."""
_OLDEST = "the oldest goes first, and what is behind it stays valid"
_CHANGED = "the provider accepts it only behind messages that did not change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lighter:
    """A conversation from which bound reasoning was taken out."""

    messages: list[Any]
    """The messages; those that lost nothing are the same objects."""
    origins: tuple[int, ...]
    """For each of them its position in the conversation."""
    places: frozenset[int]
    """Positions in the conversation of the messages that lost reasoning."""
    blocks: int
    """Blocks and items that were taken out."""
    tokens: int
    """Tokens they took."""
    is_front: bool = False
    """Whether only the beginning or the end of the chain was taken out, and no message changed."""

    @property
    def note(self) -> str:
        """A sentence for the report."""
        noun = "block of reasoning" if self.blocks == 1 else "blocks of reasoning"
        why = _OLDEST if self.is_front else _CHANGED
        return f"{self.blocks} {noun} left out ({self.tokens} tokens): {why}"


class BoundReasoning:
    """The bound reasoning of one conversation.

    Args:
        messages: The conversation. Not changed.
        counts: What messages cost.
        model: Name of the model that is asked; `None` if unknown.
    """

    def __init__(
        self, messages: Sequence[Any], counts: MessageCounts, model: str | None = None
    ) -> None:
        self.messages = messages
        self.model = model
        self.foreign = frozenset(unreadable_places(messages, model))
        self.places = tuple(sorted({*bound_places(messages, model), *self.foreign}))
        self._counts = counts

    def without(self, places: Collection[int]) -> Lighter:
        """Return the conversation without the reasoning of some messages."""
        taken = without_signed_thinking(self.messages, places=places, model=self.model)
        before = sum(self._tokens(self.messages[at]) for at in self.places)
        kept = set(self.places)
        after = sum(
            self._tokens(message)
            for message, at in zip(taken.messages, taken.origins, strict=True)
            if at in kept
        )
        return Lighter(
            messages=taken.messages,
            origins=taken.origins,
            places=frozenset(places),
            blocks=taken.removed,
            tokens=max(before - after, 0),
        )

    def behind(self, position: int) -> frozenset[int]:
        """Return the messages with bound reasoning from a position on."""
        return self.foreign.union(at for at in self.places if at >= position)

    def least(self, excess: int) -> Lighter | None:
        """Return the conversation without as little reasoning as frees some tokens.

        Signed blocks go from the front of their chain: what is behind them stays valid. Items of
        Responses go from the end, where nothing is behind them.

        Args:
            excess: Tokens to free.

        Returns:
            `None` if all of it would not be enough.
        """
        taken = set(self.foreign)
        freed = self._freed(taken)
        rest = [at for at in self.places if at not in taken]
        if rest and holds_bound(self.messages[rest[0]]) == "items":
            rest.reverse()
        for at in rest:
            if freed >= excess:
                break
            taken.add(at)
            freed += self._freed({at})
        return replace(self.without(taken), is_front=True) if freed >= excess else None

    def _freed(self, places: Collection[int]) -> int:
        """Count what messages lose without their bound reasoning."""
        freed = 0
        for at in places:
            message = self.messages[at]
            left = without_signed_thinking([message], model=self.model).messages
            freed += self._tokens(message) - sum(map(self._tokens, left))
        return freed

    def _tokens(self, message: Any) -> int:
        return self._counts.measure(message).tokens


def lighter_for(
    reasoning: BoundReasoning,
    excess: int,
    trial: Callable[[Sequence[Any]], Sequence[Any] | None],
) -> Lighter | None:
    """Take out the reasoning that will not be valid once a conversation fits.

    Args:
        reasoning: The conversation and its bound reasoning.
        excess: Tokens by which the conversation is over its budget.
        trial: Returns what is sent of a conversation; `None` if it cannot be made to fit.

    Returns:
        The conversation to fit; `None` if all of its reasoning stays valid.
    """
    lighter = reasoning.least(excess)
    if lighter is not None:
        return lighter
    taken: frozenset[int] = frozenset()
    messages: Sequence[Any] = reasoning.messages
    origins: Sequence[int] = range(len(messages))
    for _ in range(_TRIES):
        sent = trial(messages)
        change = 0 if sent is None else first_change(messages, sent)
        if change is None:
            return lighter
        place = origins[change] if change < len(origins) else len(reasoning.messages)
        behind = reasoning.behind(place)
        if behind <= taken:
            return lighter
        taken |= behind
        lighter = reasoning.without(taken)
        messages, origins = lighter.messages, lighter.origins
    return reasoning.without(reasoning.places)


def unbound(
    given: Sequence[Any],
    sent: Sequence[Any],
    counts: MessageCounts,
    *,
    model: str | None = None,
) -> Lighter | None:
    """Take out of a conversation the reasoning that stands behind its first change.

    Args:
        given: The conversation as its reasoning was written.
        sent: What is sent of it.
        counts: What messages cost.
        model: Name of the model that is asked; `None` if unknown.

    Returns:
        What to send; `None` if nothing has to be taken out.
    """
    change = first_change(given, sent)
    if change is None:
        return None
    reasoning = BoundReasoning(sent, counts, model)
    behind = reasoning.behind(change)
    return reasoning.without(behind) if behind else None
