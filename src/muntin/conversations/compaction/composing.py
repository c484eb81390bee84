"""Put a recap into a history: its message, its size, and the list that is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.conversations.compaction.fold import covered_end, held_places
from muntin.conversations.reasoning import BoundReasoning, Lighter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.compaction.plan import Found, RecapRole
    from muntin.conversations.compaction.recap import Recap
    from muntin.conversations.compaction.recap_text import RecapText
    from muntin.conversations.compaction.trail import Trail
    from muntin.counting import MessageCounts

__all__ = ("Composer",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composer:
    """Write recaps as messages of a conversation, and count them."""

    form: RecapText
    """The text of a recap message."""
    counts: MessageCounts
    """Counts messages."""
    role: RecapRole
    """The role of a recap message."""
    model: str | None = None
    """Name of the model that is asked, which decides what reasoning is bound; `None` if unknown."""

    def note(self, trail: Trail, recap: Recap) -> Any:
        """Write a recap as a message of the conversation's own shape."""
        text = self.form.write(recap.text, recap.rules, framed=recap.framed)
        role = self.role
        if role == "system" and trail.strict:
            role = "user"
        return trail.entries[0].shape.note(text, role)

    def note_tokens(self, trail: Trail, recap: Recap | None) -> int:
        """Count the recap message without framing; 0 without a recap."""
        if recap is None:
            return 0
        if not trail.recap_tokens:
            measured = self.counts.measure(self.note(trail, recap))
            trail.recap_tokens = measured.tokens - self.counts.framing
        return trail.recap_tokens

    def saved(self, trail: Trail, recap: Recap | None) -> int:
        """Count what a recap saves: the messages it covers, less its own message."""
        if recap is None:
            return 0
        held = sum(trail.entries[at].tokens for at in held_places(trail, recap))
        covered = trail.totals[covered_end(trail, recap)]
        return covered - held - self.note_tokens(trail, recap)

    def composed(self, found: Found, recap: Recap) -> list[Any]:
        """Return leading system messages, the recap, held messages and the rest."""
        trail, lead = found.trail, found.lead
        return [
            *found.messages[:lead],
            self.note(trail, recap),
            *(trail.messages[at] for at in held_places(trail, recap)),
            *found.messages[lead + covered_end(trail, recap) :],
        ]

    def without_stale(
        self, found: Found, recap: Recap, messages: Sequence[Any], *, is_same: bool
    ) -> Lighter | None:
        """Take out the reasoning behind a recap that was written before it.

        Args:
            found: The conversation.
            recap: The recap.
            messages: What `composed` returned.
            is_same: Whether later messages were written behind this very recap.

        Returns:
            `None` if all reasoning is valid.
        """
        reasoning = BoundReasoning(messages, self.counts, self.model)
        places = [at for at in reasoning.places if at > found.lead]
        if places and is_same:
            trail = found.trail
            later = trail.spoken[recap.written :]
            first = later[0] if later else len(trail.messages)
            end = covered_end(trail, recap)
            tail = len(messages) - (len(trail.messages) - end)
            places = [at for at in places if at < tail or end + at - tail < first]
        return reasoning.without(places) if places else None
