"""Shorten passages that do not fit: at the end of a sentence, else anywhere.

A context that is empty although passages were found misleads the model that reads it, so the best
passage is shortened to the budget if nothing fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.counting import cut_to_tokens
from muntin.runtime import largest_within
from muntin.text import sentences

if TYPE_CHECKING:
    from muntin.passages.layout import Item
    from muntin.passages.placing.draft import Draft

__all__ = ("fill_up", "shorten_best")

_TRIES = 8
"""Waiting passages that are tried, the best first."""

_LEAST_SHORTENED = 24
"""Idle tokens from which a shortened passage is worth its place next to others."""

_LEAST_REGION = 2
"""Tokens for passages below which a whole one is left out, though it fits when it is joined."""


def fill_up(draft: Draft) -> frozenset[int]:
    """Place the beginnings of waiting passages in the idle tokens; return their numbers."""
    cut: set[int] = set()
    for number in draft.ranking.waiting(draft.placed)[:_TRIES]:
        if number not in draft.ranking.waiting(draft.placed):
            continue  # a copy of it has just been placed
        free = _tokens_for(draft, number)
        if free < _LEAST_SHORTENED:
            continue
        short = _whole_sentences(draft, number, free)
        if short is not None and draft.offer(number, short):
            cut.add(number)
    return frozenset(cut)


def shorten_best(draft: Draft) -> frozenset[int]:
    """Place the beginning of the best passage in an empty context; return its number if any fits.

    Whole sentences are preferred; if the first one is too long, it is cut inside.
    """
    for number in draft.ranking.waiting(draft.placed)[:_TRIES]:
        short = _whole_sentences(draft, number, _tokens_for(draft, number))
        if short is not None and draft.offer(number, short):
            return frozenset((number,))
        if _cut(draft, number):
            if draft.placed[number].candidate != draft.items[number].candidate:
                return frozenset((number,))
            if draft.frame.region < _LEAST_REGION:
                draft.remove([number])
            return frozenset()
    return frozenset()


def _tokens_for(draft: Draft, number: int) -> int:
    """Return the tokens an item may take, besides the heading it may need."""
    return draft.idle - (draft.cost(number, draft.opened()) - draft.items[number].tokens)


def _cut(draft: Draft, number: int) -> bool:
    """Place as much of an item as fits, and return whether anything of it does."""
    content = cut_to_tokens(
        draft.items[number].candidate.content,
        draft.frame.limit,
        lambda text: draft.counted(number, draft.with_content(number, text)),
    )
    return content not in ("", "…") and draft.offer(number, draft.with_content(number, content))


def _whole_sentences(draft: Draft, number: int, free: int) -> Item | None:
    """Return an item with as many whole sentences as fit, `None` if the first does not."""
    pieces = sentences(draft.items[number].candidate.content)

    def shortened(kept: int) -> Item:
        return draft.with_content(number, "".join(pieces[:kept]).rstrip())

    kept = largest_within(free, lambda n: shortened(n).tokens, low=0, high=len(pieces) - 1)
    short = shortened(kept) if kept else None
    return short if short is not None and short.candidate.content else None
