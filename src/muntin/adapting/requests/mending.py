"""Make a conversation acceptable to a provider: encodable, results behind calls, pairs complete.

Every adapter does this before it sends anything, and the report says what was mended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.conversations import clean_messages
from muntin.messages import pairing_problems, repair, straight_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.counting import Measured, MessageCounts
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry

__all__ = ("Mended", "mended")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """Messages that a provider accepts, and what was done for that."""

    messages: Sequence[Any]
    """The messages; the object that was given if nothing had to change."""
    measured: Sequence[Measured]
    """The view and the cost of each message."""
    views: Sequence[MessageView]
    """The view of each message."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""

    @property
    def characters(self) -> int:
        """Characters of the messages."""
        return sum(one.characters for one in self.measured)


def mended(
    messages: Sequence[Any], counts: MessageCounts, prompts: PromptRegistry | None = None
) -> Mended:
    """Return the messages with everything mended that a provider would refuse.

    Args:
        messages: The conversation. Not changed.
        counts: What messages cost.
        prompts: Texts of answers to interrupted calls; `None` takes the built-in ones.
    """
    messages, read = clean_messages(messages, counts)
    given, notes = messages, list[str]()
    measured = read.measured
    views = [one.view for one in measured]
    empty = [at for at, view in enumerate(views) if _is_empty(view)]
    if empty and len(empty) < len(views):
        left_out = frozenset(empty)
        messages = [message for at, message in enumerate(messages) if at not in left_out]
        views = [view for at, view in enumerate(views) if at not in left_out]
        notes.append(f"{len(empty)} messages without content were left out")
    order = straight_order(views)
    if order is not None:
        messages = [messages[index] for index in order]
        views = [views[index] for index in order]
        notes.append("tool results were moved up to the calls they answer")
    if pairing_problems(views):
        repaired = repair(messages, prompts=prompts)
        messages = list(repaired)
        notes.append(
            f"broken pairs were mended: {len(repaired.dropped)} messages left out, "
            f"{len(repaired.answered)} calls answered by a note"
        )
    if messages is not given:
        measured = counts.measure_all(messages)
        views = [one.view for one in measured]
    return Mended(messages=messages, measured=measured, views=views, notes=tuple(notes))


def _is_empty(view: MessageView) -> bool:
    """Whether a message of the user or the assistant holds nothing: providers refuse it.

    An empty system message is accepted by all of them, and frameworks send it.
    """
    if view.role not in ("user", "assistant") or view.text.strip():
        return False
    held = (view.calls, view.results, view.server, view.reasoning, view.media, view.unknown)
    return not any(held) and not view.signed
