"""Keep bound reasoning valid from request to request, and leave out what is not.

A message is written behind what was sent before it. Messages that followed a decision are therefore
bound to that decision: when another one takes its place, or the whole conversation is sent again,
their reasoning is invalid. Reasoning of a model that the next one cannot read is left out as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from muntin.messages import (
    bound_places,
    from_compaction,
    newest_compaction,
    unreadable_places,
    without_signed_thinking,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.adapting.requests.decisions import Held
    from muntin.counting import MessageCounts

__all__ = (
    "BOUND_TARGET",
    "Replaced",
    "Written",
    "appended",
    "as_written",
    "from_summary",
    "has_bound",
    "is_outdated",
    "readable",
)

BOUND_TARGET: Final = 0.35
"""Share of the budget that a decision brings a request with bound reasoning down to, at most: every
decision costs all reasoning before it, so decisions are rare and large."""


class Replaced(NamedTuple):
    """A conversation from the newest summary of its provider on."""

    messages: Sequence[Any]
    """The messages; the given ones if there is no summary, or nothing before it."""
    tokens: int = 0
    """Tokens of the messages that the summary replaces."""
    notes: tuple[str, ...] = ()
    """What was left out, for the report."""


class Written(NamedTuple):
    """Messages whose reasoning can be sent."""

    messages: Sequence[Any]
    """The messages; the given ones if nothing was left out."""
    notes: tuple[str, ...] = ()
    """What was left out, for the report."""


def from_summary(messages: Sequence[Any], counts: MessageCounts) -> Replaced:
    """Leave out the messages that a summary of the provider replaces."""
    measured = counts.measure_all(messages)
    replaced = from_compaction(messages, [one.view for one in measured])
    if replaced is None:
        return Replaced(messages)
    tokens = sum(measured[at].tokens for at in replaced.dropped)
    note = (
        f"{len(replaced.dropped)} messages ({tokens} tokens) left out: the provider's own summary "
        f"replaces them"
    )
    return Replaced(replaced.messages, tokens, (note,))


def is_outdated(decision: Held, messages: Sequence[Any], counts: MessageCounts) -> bool:
    """Return whether the provider wrote a summary after a decision was made."""
    at = newest_compaction([one.view for one in counts.measure_all(messages)])
    return at is not None and at >= decision.covered


def has_bound(messages: Sequence[Any], model: str) -> bool:
    """Return whether a conversation holds reasoning that is bound to what precedes it."""
    return bool(bound_places(messages, model or None))


def as_written(messages: Sequence[Any], decision: Held | None, model: str) -> Written:
    """Return a conversation without the reasoning that was written behind a decision.

    Args:
        messages: The conversation.
        decision: The decision that held until now; `None` if there was none.
        model: Name of the model that is asked; `""` if unknown.
    """
    if decision is None or decision.bound >= len(messages):
        return Written(messages)
    places = [at for at in bound_places(messages, model or None) if at >= decision.bound]
    return _without(messages, places, model, "they were written behind an earlier decision")


def readable(messages: Sequence[Any], model: str) -> Written:
    """Return a conversation without the reasoning of other models that a model cannot read."""
    places = unreadable_places(messages, model or None)
    return _without(messages, places, model, f"{model} does not read what other models thought")


def appended(messages: Sequence[Any], restated: Sequence[Any]) -> Sequence[Any]:
    """Return messages with a new state at their end instead of in place of the one before.

    Args:
        messages: What is sent until now.
        restated: The same with the new state in its usual place.
    """
    known = {id(message) for message in messages}
    return [*messages, *(message for message in restated if id(message) not in known)]


def _without(messages: Sequence[Any], places: Sequence[int], model: str, why: str) -> Written:
    if not places:
        return Written(messages)
    taken = without_signed_thinking(messages, places=frozenset(places), model=model or None)
    noun = "block" if taken.removed == 1 else "blocks"
    return Written(taken.messages, (f"{taken.removed} {noun} of reasoning left out: {why}",))
