"""Know a conversation as far as no budget matters: its units, what carries results, what repeats.

An outline is made once and goes on: what is closed (every call answered, and not among the newest
messages) does not change when messages are added, so a conversation that grows is read only where
it grew. It knows no budget and decides nothing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from muntin.messages import Division, divide
from muntin.text import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting import Measured, MessageCounts
    from muntin.messages import MessageView, Unit

__all__ = ("Outline", "Repeat", "outline_of")

Repeat = Literal["superseded", "duplicate"]
"""Why a result is redundant: a later identical call read the same again, or a later result has
the same text."""

_OPEN = 16
"""Newest messages that are read in every fit: callers put other things there from call to call."""
_LEAST_REPEATED = 160
"""Characters below which a repeated result is not worth a mark."""
_SAME = 2 / 3
"""Share of a result's words that a later identical call returned, if it read
the same thing again. The next page, or the next of a queue, has little but its frame in common."""
_COMPARED = 20_000
"""Characters of a result that are compared."""


_Call = tuple[str, str]
"""Name and arguments."""
_Read = tuple[tuple[int, str], str]
"""A result: position of its message and id of its call, and its text."""


@dataclass(slots=True)
class _Repeats:
    """Which results are redundant, as far as the conversation has been read."""

    marks: dict[tuple[int, str], Repeat] = field(default_factory=dict[tuple[int, str], Repeat])
    """By position of the message and id of the call."""
    by_call: dict[_Call, tuple[_Read, ...]] = field(default_factory=dict[_Call, tuple[_Read, ...]])
    """Results of the newest unit that made a call, by name and arguments."""
    by_text: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """The newest result of a text."""

    def copy(self) -> _Repeats:
        return _Repeats(dict(self.marks), dict(self.by_call), dict(self.by_text))

    def read(self, unit: Unit, views: Sequence[MessageView]) -> None:
        """Read the next unit: what its calls read again is superseded."""
        made = {
            call.id: (call.name, call.arguments)
            for index in unit.indices
            for call in views[index].calls
        }
        now: dict[_Call, list[_Read]] = {}
        for index in unit.indices:
            for result in views[index].results:
                # Two pictures under one caption are two results.
                if result.media or len(result.text) < _LEAST_REPEATED:
                    continue
                this = (index, result.call_id)
                before = self.by_text.get(result.text)
                if before is not None:
                    self.marks.setdefault(before, "duplicate")
                self.by_text[result.text] = this
                call = made.get(result.call_id)
                if call is not None:
                    now.setdefault(call, []).append((this, result.text))
        for call, results in now.items():
            self._read_again(self.by_call.get(call, ()), results)
            self.by_call[call] = tuple(results)

    def _read_again(self, before: Sequence[_Read], now: Sequence[_Read]) -> None:
        """Mark earlier results of a call that a later result mostly repeats."""
        if not before:
            return
        again = {word for _, text in now for word in words(text[:_COMPARED])}
        for place, text in before:
            said = set(words(text[:_COMPARED]))
            if len(said & again) >= _SAME * len(said):
                self.marks[place] = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a conversation consists of. Nothing in it is ever changed; it is continued in a copy."""

    views: list[MessageView]
    """View of every message."""
    units: list[Unit]
    """All units, in the order of their first message."""
    unit_at: array[int]
    """For every message the place of its unit in `units`."""
    carrying: array[int]
    """Messages that carry results of calls, by unit."""
    pinned: list[int]
    """Messages that must stay unchanged."""
    injected: list[int]
    """Messages that this library or a framework put there."""
    orphans: list[int]
    """Places of units that are results without a call."""
    unanswered: list[int]
    """Places of units with calls that have no result."""
    first_user: int | None
    """The first message in which a person speaks; `None` if there is none."""
    repeats: _Repeats

    @classmethod
    def empty(cls) -> Outline:
        """Make the outline of no messages."""
        return cls(
            views=[], units=[], unit_at=array("q"), carrying=array("q"), pinned=[], injected=[],
            orphans=[], unanswered=[], first_user=None, repeats=_Repeats(),
        )  # fmt: skip

    def continued(self, views: Sequence[MessageView], units: Sequence[Unit]) -> Outline:
        """Return the outline of a conversation that goes on with these messages and units."""
        start = len(self.views)
        longer = Outline(
            views=[*self.views, *views],
            units=[*self.units, *units],
            unit_at=self.unit_at + array("q", bytes(8 * len(views))),
            carrying=self.carrying[:],
            pinned=[*self.pinned, *[i for i, view in enumerate(views, start) if view.pinned]],
            injected=[*self.injected, *[i for i, view in enumerate(views, start) if view.injected]],
            orphans=self.orphans[:],
            unanswered=self.unanswered[:],
            first_user=self._first_user(views),
            repeats=self.repeats.copy(),
        )
        unit_at = longer.unit_at
        for place, unit in enumerate(units, len(self.units)):
            for index in unit.indices:
                unit_at[index] = place
            if unit.kind == "tools":
                longer.carrying.extend([i for i in unit.indices if longer.views[i].results])
                longer.repeats.read(unit, longer.views)
            elif unit.kind == "orphan":
                longer.orphans.append(place)
            if unit.unanswered:
                longer.unanswered.append(place)
        return longer

    def _first_user(self, views: Sequence[MessageView]) -> int | None:
        if self.first_user is not None:
            return self.first_user
        start = len(self.views)
        return next((i for i, view in enumerate(views, start) if view.is_user_turn), None)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a conversation for the fits that follow."""

    key: object
    outline: Outline
    """Outline of the closed messages alone."""
    division: Division


def outline_of(
    measured: list[Measured],
    counts: MessageCounts,
    *,
    read: Callable[[MessageView], MessageView],
    key: object,
) -> Outline:
    """Outline a conversation, going on from what `counts` keeps of it.

    Args:
        measured: The messages, as `counts` measured them.
        counts: Keeps the outline of what is closed for the next call.
        read: Reads a view again, to find out what an earlier fit wrote.
        key: What `read` depends on; an outline that was made with another one is not used.
    """
    same, kept = counts.kept_for(measured)
    known = kept if isinstance(kept, _Kept) and kept.key == key else None
    if known is None or len(known.outline.views) > same:
        known = _Kept(key, Outline.empty(), Division(units=(), closed=0, closed_units=0))
    start = known.outline
    new = [read(one.view) for one in measured[len(start.views) :]]
    views = [*start.views, *new]
    division = divide(views, known.division, until=len(views) - _OPEN)
    closed, units = division.closed, division.units
    base = start
    if closed > len(start.views):
        base = start.continued(
            views[len(start.views) : closed], units[len(start.units) : division.closed_units]
        )
    counts.keep_for(measured, _Kept(key, base, division))
    return base.continued(views[closed:], units[division.closed_units :])
