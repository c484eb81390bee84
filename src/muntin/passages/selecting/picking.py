"""The greedy loop of selection: pick, refuse what repeats the pick, lower what resembles it.

Each step reads one row of similarities. The largest similarity to the picked candidates is kept as
a running maximum, so no pair is compared twice.

If the best candidate is contained in a longer remaining one, pick the longer first, with the same
score. The shorter one is picked too and recorded as held, in case the longer one does not fit.

This module works on positions and numbers; `selection` turns them into candidates and reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from muntin.passages.selecting.links import Link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from muntin.passages.selecting.links import Links
    from muntin.passages.selecting.similarity import Mask, Measure, Row

__all__ = ("Course", "Picking")

_OUT = -math.inf
"""Worth of a candidate that is picked or refused."""


@dataclass(slots=True)
class Course:
    """Hold the picks and refusals, as positions in the pool."""

    picked: list[int]
    """The picks in order, those contained in another pick included."""
    marginal: list[float]
    """Marginal relevance of each of them."""
    repeats: dict[int, list[int]]
    """Of each near-duplicate, the picks it repeats; the first is the one that refused it."""
    held: dict[int, int]
    """The longer pick that contains a pick, by the position of the contained one."""
    similarity: dict[int, float]
    """How much each of these resembles the pick that refused or holds it."""
    links: dict[int, Link]
    """Why a pick was raised by links or coverage; picks that were not are absent."""

    def kept(self) -> Iterator[tuple[int, float]]:
        """Yield the picks that no other holds, with their marginal relevance."""
        for position, value in zip(self.picked, self.marginal, strict=True):
            if position not in self.held:
                yield position, value

    def kept_for(self, position: int) -> int:
        """Return the pick that a candidate duplicates, or the candidate itself."""
        while position in self.repeats or position in self.held:
            refusers = self.repeats.get(position)
            position = refusers[0] if refusers else self.held[position]
        return position

    def line(self) -> Iterator[int]:
        """Yield every pick, and behind each what it refused, in the order of the input."""
        refused: dict[int, list[int]] = {}
        for position in sorted(self.repeats):
            refused.setdefault(self.repeats[position][0], []).append(position)
        for position in self.picked:
            yield position
            yield from refused.get(position, ())


class Picking:
    """The greedy loop: the current worth of each candidate, and which are refused."""

    def __init__(
        self,
        pinned: Sequence[bool],
        worth: NDArray[np.float64],
        measure: Measure,
        mmr: tuple[float, float],
        links: Links | None = None,
    ) -> None:
        self._measure, self._links = measure, links
        self._lambda, self._threshold = mmr
        self._compares = self._lambda < 1 or self._threshold <= 1
        self._worth = worth
        self._base = self._lambda * (worth if links is None else worth + links.bonus)
        self._value = self._base.copy()
        self._peak = np.full(len(worth), _OUT)
        self._pinned = np.array(pinned, dtype=bool)
        self.course = Course([], [], {}, {}, {}, {})

    def run(self, limit: int) -> Course:
        """Pick the pinned ones, then the best, until `limit` are kept that no other pick holds."""
        course, value = self.course, self._value
        pinned = np.flatnonzero(self._pinned).tolist()
        for pick in sorted(pinned, key=lambda index: -self._base[index]):
            self._take(pick, float(value[pick]))
        while (kept := len(course.picked) - len(course.held)) < limit:
            pick = int(value.argmax())
            worth = value.item(pick)
            if worth == _OUT:
                break
            self._take(pick, worth, last=kept == limit - 1)
        return course

    def _take(self, pick: int, worth: float, *, last: bool = False) -> None:
        """Pick a candidate, or the longer one that contains it, with the same score."""
        if self._compares and (not last or self._measure.sees_parts):
            row = self._measure.row(pick)
            if self._threshold <= 1:
                pick, row = self._parted(pick, row)
            if self._lambda < 1:
                np.maximum(self._peak, row, out=self._peak)
                np.multiply(self._peak, self._lambda - 1, out=self._value)
                np.add(self._value, self._base, out=self._value)
        if self._links is not None:
            self._follow(self._links, pick)
        self._base[pick] = self._value[pick] = _OUT
        self.course.picked.append(pick)
        self.course.marginal.append(worth)

    def _follow(self, links: Links, pick: int) -> None:
        """Explain why a pick was raised, and raise what it links to."""
        link = links.found.get(pick)
        if link is None and links.covers(pick):
            waiting = self._worth[self._base > _OUT]
            if waiting.max(initial=_OUT) > self._worth[pick]:  # coverage decided
                link = Link(kind="covers_question")
        if link is not None:
            self.course.links[pick] = link
        change = links.picked(pick)
        if change is not None:
            self._base += self._lambda * change
            self._value += self._lambda * change

    def _parted(self, pick: int, row: Row) -> tuple[int, Row]:
        """Refuse duplicates of a pick or of a longer one containing it; return it and its row."""
        near, wider = self._measure.repeats(pick, row, self._threshold)
        while wider is not None and (holder := self._holder(pick, row, wider)) is not None:
            pick, row = holder, self._measure.row(holder)
            near, wider = self._measure.repeats(pick, row, self._threshold)
        if near is not None and np.count_nonzero(near) > 1:  # the pick itself is always one
            self._refuse(pick, row, near)
        return pick, row

    def _holder(self, pick: int, row: Row, wider: Mask) -> int | None:
        """Return the best remaining candidate that contains a pick, `None` if a picked one does."""
        if self._pinned[pick]:
            return None
        for holder in np.flatnonzero(wider & (self._base == _OUT)).tolist():
            if holder not in self.course.repeats:
                self.course.held[pick] = holder
                self.course.similarity[pick] = min(float(row[holder]), 1.0)
                return None
        waiting = np.flatnonzero(wider & (self._base > _OUT))
        return int(waiting[self._base[waiting].argmax()]) if len(waiting) else None

    def _refuse(self, pick: int, row: Row, near: Mask) -> None:
        course = self.course
        for index in np.flatnonzero(near & ~self._pinned).tolist():
            if index in course.repeats:
                course.repeats[index].append(pick)
            elif index != pick and self._base[index] != _OUT:
                course.repeats[index] = [pick]
                course.similarity[index] = min(float(row[index]), 1.0)
                self._base[index] = self._value[index] = _OUT
