"""Make a conversation acceptable to a provider, and measure it on the way.

Every adapter does this before it sends anything, and the report lists what was mended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.conversations import clean_messages
from muntin.messages import needs_repair, repair

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
    measured = read.measured
    views = [one.view for one in measured]
    if not needs_repair(messages, views):
        return Mended(messages=messages, measured=measured, views=views)
    repaired = repair(messages, prompts=prompts)
    measured = counts.measure_all(repaired)
    return Mended(
        messages=list(repaired),
        measured=measured,
        views=[one.view for one in measured],
        notes=repaired.notes,
    )
