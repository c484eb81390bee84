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
    from muntin.passages.placing.table import Table

__all__ = ("fill_up", "shorten_best")

_TRIES = 8
"""Waiting passages that are tried, the best first."""

_LEAST_SHORTENED = 24
"""Idle tokens from which a shortened passage is worth its place next to others."""

_LEAST_REGION = 2
"""Tokens for passages below which a whole one is left out, though it fits when it is joined."""


def fill_up(table: Table) -> frozenset[int]:
    """Place the beginnings of waiting passages in the idle tokens; return their numbers."""
    cut: set[int] = set()
    for number in table.ranking.waiting(table.placed)[:_TRIES]:
        if number not in table.ranking.waiting(table.placed):
            continue  # a copy of it has just been placed
        room = _room_for(table, number)
        if room < _LEAST_SHORTENED:
            continue
        short = _whole_sentences(table, number, room)
        if short is not None and table.offer(number, short):
            cut.add(number)
    return frozenset(cut)


def shorten_best(table: Table) -> frozenset[int]:
    """Place the beginning of the best passage on an empty page; return its number, if any fits.

    Whole sentences are preferred; if the first one is too long, it is cut inside.
    """
    for number in table.ranking.waiting(table.placed)[:_TRIES]:
        short = _whole_sentences(table, number, _room_for(table, number))
        if short is not None and table.offer(number, short):
            return frozenset((number,))
        if _cut(table, number):
            if table.placed[number].candidate != table.items[number].candidate:
                return frozenset((number,))
            if table.frame.region < _LEAST_REGION:
                table.remove([number])
            return frozenset()
    return frozenset()


def _room_for(table: Table, number: int) -> int:
    """Return the tokens an item may take, besides the heading it may need."""
    return table.room - (table.cost(number, table.opened()) - table.items[number].tokens)


def _cut(table: Table, number: int) -> bool:
    """Place as much of an item as fits, and return whether anything of it does."""
    content = cut_to_tokens(
        table.items[number].candidate.content,
        table.frame.limit,
        lambda text: table.counted(number, table.with_content(number, text)),
    )
    return content not in ("", "…") and table.offer(number, table.with_content(number, content))


def _whole_sentences(table: Table, number: int, room: int) -> Item | None:
    """Return an item with as many whole sentences as fit, `None` if the first does not."""
    pieces = sentences(table.items[number].candidate.content)

    def shortened(kept: int) -> Item:
        return table.with_content(number, "".join(pieces[:kept]).rstrip())

    kept = largest_within(room, lambda n: shortened(n).tokens, low=0, high=len(pieces) - 1)
    short = shortened(kept) if kept else None
    return short if short is not None and short.candidate.content else None
