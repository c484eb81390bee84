"""Make the recap of one pass: ask for a summary, or extract it, and fit it under its cap.

A summary that is missing leaves the history as it is. One that is wrong (cut, too long, carried on,
invented, unrelated) is replaced by an extraction. Standing rules of the folded messages are written
next to the summary, word for word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muntin.conversations.asking import Asking, Summary, cut_to
from muntin.conversations.rules import rules_section, rules_tokens, without_rules
from muntin.conversations.summarize import ExtractiveSummarizer
from muntin.counting import truncate_to_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.compaction.recap_text import RecapText
    from muntin.counting import TokenCounter
    from muntin.runtime import Flow, SummaryFault

__all__ = ("Recapped", "Recapper")

_WRONG: frozenset[SummaryFault | None] = frozenset(
    {
        *("summary_cut", "summary_too_long", "summary_carried_on"),
        *("summary_invented", "summary_unrelated"),
    }
)
"""Faults of a summary that is there and must not be used: an extraction takes its place."""
_LEAST_EXTRACT = 16
"""Tokens below which an extraction is useless."""
_LEAST_FRAMED = 32
"""Tokens of text below which a recap gets no frame: the frame would take most of the space."""
_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Recapped:
    """The recap of one pass, or why there is none."""

    summary: Summary
    """Its text, as it is stored; empty when there is none."""
    rules: tuple[str, ...] = ()
    """Standing rules next to it."""
    framed: bool = False
    """Whether it is written with a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recapper:
    """Make recaps with one counter and one form."""

    counter: TokenCounter
    """Counts recaps."""
    form: RecapText
    """Writes them."""

    def flow(
        self,
        asking: Asking,
        entries: Sequence[str],
        *,
        previous: str,
        rules: Sequence[str],
        cap: int,
        slack: int,
        quotes: bool,
    ) -> Flow[Recapped]:
        """Make a recap.

        Args:
            asking: How the summary is asked for.
            entries: The record of the folded messages.
            previous: The recap so far; empty when there is none.
            rules: Standing rules, oldest first.
            cap: Tokens of the recap as it is written.
            slack: Tokens by which a summary may be longer than its source.
            quotes: Whether the summariser quotes messages instead of summarising them.
        """
        count, form = self.counter, self.form
        section = rules_section(
            rules, max_tokens=rules_tokens(cap), counter=count, prompts=form.prompts
        )
        kept = tuple(without_rules(section)[1])
        inside = cap - count(form.write("", kept, framed=True))
        most = inside if inside >= _LEAST_FRAMED else cap - count(form.prefix)
        if most < 1:
            return Recapped(summary=Summary())
        made = yield from asking.flow(entries, max_tokens=most, previous=previous, slack=slack)
        if made.fault in _WRONG and most >= _LEAST_EXTRACT:
            record = "\n".join([previous, *entries] if previous else entries)
            made = replace(made, text=ExtractiveSummarizer(counter=count)(record, max_tokens=most))
            quotes = True
        if not made.text:
            return Recapped(summary=made)
        if inside < _LEAST_FRAMED:
            return self._bare(made, cap)
        framed = quotes or bool(kept) or form.needs_frame(made.text)
        text = made.text
        for _ in range(_TRIES):  # joined and indented it may cost more than alone
            over = count(form.write(text, kept, framed=framed)) - cap
            if over <= 0:
                shortened = made.shortened or (text != made.text and not quotes)
                made = replace(made, text=text, shortened=shortened)
                return Recapped(summary=made, rules=kept, framed=framed)
            most -= over
            text = cut_to(text, max(most, 0), count)
        return self._bare(made, cap)

    def _bare(self, made: Summary, cap: int) -> Recapped:
        """Cut a recap to its cap without frame and rules, on one line."""
        text = " ".join(made.text.split()) if self.form.needs_frame(made.text) else made.text
        recap = self.form.prefix + text
        if self.counter(recap) > cap:
            text = truncate_to_tokens(recap, cap, self.counter).removeprefix(self.form.prefix)
            made = replace(made, shortened=True)
        return Recapped(summary=replace(made, text=text if text.strip("… \n") else ""))
