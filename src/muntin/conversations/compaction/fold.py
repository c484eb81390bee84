"""Which messages a pass folds into the recap, and which must stay as they are.

Kept are the newest messages, the open request, pinned messages, calls that may still be answered
and notes of the library; a tool round is kept whole if any part of it is. The rest is folded.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from muntin.conversations.protect import open_request
from muntin.messages import in_flight, units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muntin.conversations.compaction.recap import Recap
    from muntin.conversations.compaction.trail import Trail

__all__ = ("Fold", "choose_fold", "covered_end", "due_places", "held_places", "holding")

_MOST_OPEN = 6
"""User messages of an open request; a longer chain is a log, and only its newest stays."""
_NEWEST = 5
"""Times the limit of waiting calls that the newest of them may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Name what one pass puts into the recap. Positions are those of the trail."""

    places: tuple[int, ...]
    """Messages to fold, ascending. Empty: there is nothing to fold."""
    tokens: int
    """What they take now."""
    recaps: int = 0
    """How many of them are recaps that were handed back."""
    recap_tokens: int = 0
    """What those take of `tokens`."""
    covered: int
    """Spoken messages the recap will cover, the held ones included."""
    held: tuple[int, ...]
    """Which of the covered ones stay verbatim."""
    interrupted: tuple[str, ...] = ()
    """Ids of folded calls that were never answered."""


def covered_end(trail: Trail, recap: Recap | None) -> int:
    """Return the position after the last message a recap covers."""
    return trail.spoken[recap.covered - 1] + 1 if recap else 0


def held_places(trail: Trail, recap: Recap | None) -> list[int]:
    """List the positions before the end of a recap that are not folded into it, ascending."""
    if recap is None:
        return []
    notes = trail.notes[: bisect_left(trail.notes, covered_end(trail, recap))]
    return sorted([*(trail.spoken[ordinal] for ordinal in recap.held), *notes])


def due_places(
    trail: Trail,
    *,
    keep_recent: int,
    keep_tokens: int | None,
    open_tokens: int,
    pinned: Iterable[int],
) -> set[int]:
    """List which spoken messages must stay now, whatever a recap covers.

    Args:
        trail: The conversation.
        keep_recent: Newest messages that stay; recaps and notes are not counted among them.
        keep_tokens: Tokens of newest messages that stay, beyond `keep_recent`; `None` for no more.
        open_tokens: Tokens that the open request may take. Its newest message stays in any case.
        pinned: Positions that stay besides messages that are pinned themselves.
    """
    said = [at for at in reversed(trail.spoken) if trail.entries[at].kind == "said"]
    recent = said[:keep_recent]
    if keep_tokens is not None:
        spent = accumulate(trail.entries[at].tokens for at in said)
        recent += [at for at, tokens in zip(said, spent, strict=True) if tokens <= keep_tokens]
    return {*recent, *_open_places(trail, open_tokens), *trail.pinned, *pinned}


def _open_places(trail: Trail, most: int) -> list[int]:
    """List the user messages of the open request: the newest, the first, the others if all fit."""
    asked = trail.asked[-_MOST_OPEN - 1 :]
    if len(asked) < 2:
        return asked
    live = [at for at in range(asked[0], len(trail.entries)) if trail.entries[at].kind == "said"]
    views = [trail.entries[at].view for at in live]
    opened = [live[at] for at in open_request(views, units(views))]
    if not 1 < len(opened) <= _MOST_OPEN:  # a longer chain is a log
        return asked[-1:]
    kept = [opened[-1]]
    for group in (opened[:1], opened[1:-1]):
        tokens = sum(trail.entries[at].tokens for at in (*kept, *group))
        if tokens <= most:
            kept += group
    return kept


def holding(trail: Trail, recap: Recap, due: set[int]) -> Recap:
    """Return a recap that excludes covered messages which must stay; unchanged if there are none.

    Messages that were taken back leave others the newest, and one may be pinned after it was
    folded: what was right to fold then must be kept next to the recap now.
    """
    end = covered_end(trail, recap)
    missing = {bisect_left(trail.spoken, place) for place in due if place < end} - {*recap.held}
    if not missing:
        return recap
    held = {*recap.held}
    covered = [trail.entries[place].view for place in trail.spoken[: recap.covered]]
    for unit in units(covered):
        if not missing.isdisjoint(unit.indices):
            held.update(unit.indices)
    return replace(recap, held=tuple(sorted(held)))


def choose_fold(trail: Trail, recap: Recap | None, due: set[int], *, waiting: int) -> Fold:
    """Choose what a pass folds.

    A call without a result may still be waiting for it. The newest such calls stay while they are
    small; older ones are folded, because a history of dead calls could not be compacted any more.

    Args:
        trail: The conversation.
        recap: The recap of its beginning. `None` means there is none.
        due: Positions that stay.
        waiting: Tokens that unanswered calls before the last round may take.
    """
    end = covered_end(trail, recap)
    live = [*held_places(trail, recap), *range(end, len(trail.entries))]
    views = [trail.entries[place].view for place in live]
    kinds = [trail.entries[place].kind for place in live]
    keep = {at for at, place in enumerate(live) if kinds[at] == "note" or place in due}
    found = units(views)
    tail = in_flight(views, found)
    dead: list[str] = []
    waited = 0
    for unit in reversed(found):
        if not keep.isdisjoint(unit.indices) or unit is tail:
            keep.update(unit.indices)
        elif unit.unanswered:
            tokens = sum(trail.entries[live[at]].tokens for at in unit.indices)
            is_newest = not dead and not waited
            waited += tokens
            if waited <= waiting or (is_newest and tokens <= _NEWEST * waiting):
                keep.update(unit.indices)
            else:
                dead += unit.unanswered
    fold = [at for at in range(len(live)) if at not in keep]
    recaps = sum(kinds[at] == "recap" for at in fold)
    if len(fold) == recaps and recaps < 2:  # a recap alone is not summarised again
        return Fold(places=(), tokens=0, covered=0, held=())
    places = tuple(live[at] for at in fold)
    # Held messages may be all there is to fold. The recap still covers what it covered before.
    covered = bisect_left(trail.spoken, max(places[-1] + 1, end))
    ordinals = [bisect_left(trail.spoken, live[at]) for at in sorted(keep) if kinds[at] != "note"]
    held = tuple(ordinal for ordinal in ordinals if ordinal < covered)
    return Fold(
        places=places,
        tokens=sum(trail.entries[place].tokens for place in places),
        recaps=recaps,
        recap_tokens=sum(trail.entries[live[at]].tokens for at in fold if kinds[at] == "recap"),
        covered=covered,
        held=held,
        interrupted=tuple(reversed(dead)),
    )
