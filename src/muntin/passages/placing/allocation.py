"""Divide the budget among sources: a quota by ratio first, then what others leave idle.

Round one gives every source its quota, its ratio's share of the region. Items take their turns in
one order over all sources, the best first. The last item that a source begins inside its quota may
exceed the quota, because tokens that end in the middle of a passage are of no use. Round two lends
idle tokens to sources that still want some, in proportion to what they want; and again, until a
round places nothing more. What is then left goes to single items that still fit, the best first.
Only an item that can still be placed counts as wanted, so one giant passage neither empties its own
source nor takes the surplus of the others.

Shares are whole tokens by the largest remainder, so they sum exactly; ties go by name, so the
order in which the sources were given changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.runtime import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("Allocation", "Share", "allocate", "split")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one source was granted and what it placed."""

    quota: int
    """Tokens its ratio grants."""
    used: int
    """Tokens of the items it places."""
    placed: tuple[int, ...]
    """Positions of these items in the source's own order."""

    @property
    def borrowed(self) -> int:
        """Tokens it uses beyond its quota."""
        return max(self.used - self.quota, 0)

    @property
    def idle(self) -> int:
        """Tokens of its quota it does not use itself."""
        return max(self.quota - self.used, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Hold every source's share of one region."""

    region: int
    """Tokens that were divided."""
    shares: Mapping[str, Share]
    """Share by source."""

    @property
    def idle(self) -> int:
        """Tokens that are not used."""
        return self.region - sum(share.used for share in self.shares.values())

    def lent(self, name: str) -> int:
        """Return how many of a source's idle tokens others use, as whole tokens."""
        borrowed = sum(share.borrowed for share in self.shares.values())
        idle = {other: float(share.idle) for other, share in self.shares.items()}
        return split(min(borrowed, int(sum(idle.values()))), idle)[name]


def allocate(
    costs: Mapping[str, Sequence[int]],
    *,
    region: int,
    ratios: Mapping[str, float],
    allow_borrow: bool = True,
    fill: bool = True,
    order: Sequence[tuple[str, int]] = (),
) -> Allocation:
    """Decide which items of each source are placed.

    Args:
        costs: Tokens of each item, by source, the best first.
        region: Tokens to divide.
        ratios: Weight of each source; only proportions among the sources in `costs` matter.
        allow_borrow: Whether idle quota is lent; otherwise no item runs over a quota either.
        fill: Whether an item that does not fit is passed over for the next; otherwise a source
            stops at its first item that does not fit, and lending happens once.
        order: All items as (source, position), the best first; without
            it sources take turns item by item, by name; an item larger than the region takes none.

    ```python
    from muntin.passages.placing import allocate

    costs = {"memory": [10], "rag": [30, 30, 30]}
    shares = allocate(costs, region=100, ratios={"memory": 1, "rag": 1}).shares
    print(shares["rag"].quota, shares["rag"].used, shares["rag"].borrowed)
    #> 50 90 40
    ```
    """
    names = sorted(costs)
    weights = {name: float(ratios.get(name, 0.0)) for name in names}
    region = max(region, 0)
    quotas = split(region, weights) if fill else _floors(region, weights)
    book = _Placing({name: costs[name] for name in names}, stops=not fill)
    if allow_borrow and fill:
        turns = order or _in_turns(costs, region)
        book.take_turns(turns, quotas, region)
        _lend_until_settled(book, region)
        book.place_singly(turns, region)
    else:
        for name in names:
            book.place(name, quotas[name])
        if allow_borrow:
            _lend_once(book, quotas)
    shares = {
        name: Share(
            quota=quotas[name], used=book.used[name], placed=tuple(sorted(book.placed[name]))
        )
        for name in costs
    }
    return Allocation(region=region, shares=shares)


class _Placing:
    """Which items are placed, which still wait."""

    def __init__(self, costs: Mapping[str, Sequence[int]], *, stops: bool) -> None:
        self.costs = costs
        self.waiting = {name: list(range(len(items))) for name, items in costs.items()}
        self.placed: dict[str, list[int]] = {name: [] for name in costs}
        self.used = dict.fromkeys(costs, 0)
        self._stops = stops

    def place(self, name: str, free: int) -> bool:
        """Place a source's waiting items in order into `free` tokens; return whether any was."""
        rest: list[int] = []
        before = len(self.placed[name])
        stopped = False
        for item in self.waiting[name]:
            cost = self.costs[name][item]
            if stopped or cost > free:
                rest.append(item)
                stopped = stopped or self._stops
                continue
            self._put(name, item)
            free -= cost
        self.waiting[name] = rest
        return len(self.placed[name]) > before

    def take_turns(
        self, order: Iterable[tuple[str, int]], quotas: Mapping[str, int], region: int
    ) -> None:
        """Place items in one order over all sources, each source until its quota is reached.

        An item more than twice as large as the whole quota waits for a loan.
        """
        free = region
        for name, item in order:
            cost = self.costs[name][item]
            if cost <= min(free, 2 * quotas[name]) and self.used[name] < quotas[name]:
                self._put(name, item)
                free -= cost
        self._forget_placed()

    def place_singly(self, order: Iterable[tuple[str, int]], region: int) -> None:
        """Place whatever single item still fits, in a given order over all sources."""
        free = region - sum(self.used.values())
        still = {name: set(items) for name, items in self.waiting.items()}
        for name, item in order:
            cost = self.costs[name][item]
            if cost <= free and item in still[name]:
                self._put(name, item)
                free -= cost
        self._forget_placed()

    def _put(self, name: str, item: int) -> None:
        self.placed[name].append(item)
        self.used[name] += self.costs[name][item]

    def _forget_placed(self) -> None:
        for name, placed in self.placed.items():
            gone = set(placed)
            self.waiting[name] = [item for item in self.waiting[name] if item not in gone]

    def wants(self, free: float) -> dict[str, float]:
        """Return the tokens of each source's waiting items, of those that fit the space alone."""
        return {
            name: float(sum(cost for item in items if (cost := self.costs[name][item]) <= free))
            for name, items in self.waiting.items()
        }


def _in_turns(costs: Mapping[str, Sequence[int]], region: int) -> list[tuple[str, int]]:
    turns: list[tuple[int, str, int]] = []
    for name, items in costs.items():
        placeable = [place for place, cost in enumerate(items) if cost <= region]
        turns += [(turn, name, place) for turn, place in enumerate(placeable)]
    return [(name, place) for _, name, place in sorted(turns)]


def _lend_until_settled(book: _Placing, region: int) -> None:
    while True:
        idle = region - sum(book.used.values())
        loans = split(idle, book.wants(idle))
        if not any([book.place(name, loan) for name, loan in loans.items()]):  # noqa: C419 - all are placed
            return


def _lend_once(book: _Placing, quotas: Mapping[str, int]) -> None:
    """Lend as agentmaker does: one pass, everything waiting counts as wanted."""
    idle = sum(quotas.values()) - sum(book.used.values())
    wants = book.wants(float("inf"))
    total = sum(wants.values())
    for name, want in wants.items():
        book.place(name, int(idle * want / total) if total else 0)


def _floors(region: int, weights: Mapping[str, float]) -> dict[str, int]:
    whole = sum(weights.values()) or 1.0
    return {name: int(region * weight / whole) for name, weight in weights.items()}
