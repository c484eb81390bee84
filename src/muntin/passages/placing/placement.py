"""Which of the ranked candidates end up on the page, so that the joined text fits.

Allocation divides a region by the tokens of items counted alone. Tokens are not additive, though:
`"  "` is 1 token and `"123"` is 1, but `"  123"` is 3. So the page is joined and counted as a
whole, and that count rules: while it is over the limit the item that deserves its place least goes;
while tokens are idle the best item that still fits comes in.

A section's heading is charged when its first item is placed, on a line of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.errors import ContextWindowExceeded
from muntin.passages.layout import Item
from muntin.passages.placing.allocation import Allocation, Share, allocate
from muntin.passages.placing.shortening import fill_up, shorten_best
from muntin.passages.placing.table import Frame, Table
from muntin.passages.placing.windows import place_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.config import ContextConfig
    from muntin.passages.layout import Dress, Page
    from muntin.passages.selecting.ranking import Ranking

__all__ = ("Frame", "Placement", "measure", "place")

_MERGE = 3
"""Tokens an item may save by joining that are looked for: one at each border, one at the end."""

_TRIES = 8
"""How many items a little too large by their own count are tried in the joined text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Hold the page and how it came about."""

    page: Page
    """The page."""
    tokens: int
    """Tokens of its text."""
    items: Mapping[int, Item]
    """The placed items by number of the offer."""
    shortened: frozenset[int]
    """Those of them that were cut."""
    overflowed: frozenset[int]
    """Offers taken out again because the joined text was over the limit."""
    allocation: Allocation
    """Quotas and loans."""


def measure(ranking: Ranking, dress: Dress) -> tuple[Item, ...]:
    """Render every offer and count it, line break included; equal texts are counted once."""
    counted: dict[str, int] = {}
    items: list[Item] = []
    place_of = {number: place for place, number in enumerate(ranking.line, start=1)}
    for number, offer in enumerate(ranking.offers):
        place = place_of.get(number, 0)
        text = dress.rendered(offer.candidate, offer.source, place)
        tokens = counted.get(text)
        if tokens is None:
            tokens = counted[text] = dress.counter(text + "\n")
        items.append(Item(candidate=offer.candidate, text=text, tokens=tokens, number=place))
    return tuple(items)


def place(
    ranking: Ranking, items: Sequence[Item], frame: Frame, dress: Dress, config: ContextConfig
) -> Placement:
    """Fill the page.

    Args:
        ranking: The offers and their order.
        items: Each offer as it is rendered, from `measure`.
        frame: The text around them.
        dress: Layout, prompts and counter.
        config: The knobs of allocation.

    Raises:
        ContextWindowExceeded: The fixed parts and the pinned candidates alone are over the limit.
    """
    table = Table(ranking, items, frame, dress)
    giants = {number for number, item in enumerate(items) if item.tokens > frame.region}
    if config.fill and not giants.isdisjoint(ranking.order):
        table.order = ranking.order_without(giants)
    pinned = [number for number in ranking.order if items[number].candidate.pinned]
    table.add(pinned)
    if table.tokens > frame.limit:
        raise ContextWindowExceeded(
            "the parts of the context that must be kept",
            needed=table.tokens,
            available=max(frame.limit, 0),
            parts=_protected(table, pinned),
        )
    allocation = _allocate(table, pinned, config)
    windows = config.windows and config.fill and config.allow_borrow and not pinned
    shortened = place_windows(table) if windows else None
    if shortened is not None:
        return _finished(table, allocation, shortened)
    lines = table.lines()
    table.add(
        number
        for name, share in allocation.shares.items()
        for number in (lines[name][position] for position in share.placed)
    )
    overflowed = table.trim(pinned)
    quotas = {name: share.quota for name, share in allocation.shares.items()}
    if config.fill:
        _fill(table, dict.fromkeys(quotas, frame.limit) if config.allow_borrow else quotas)
    shortened = fill_up(table) if config.shorten else frozenset[int]()
    if not table.placed and (config.shorten or config.never_empty):
        shortened = shorten_best(table)
    return _finished(table, allocation, shortened, overflowed)


def _finished(
    table: Table,
    allocation: Allocation,
    shortened: frozenset[int],
    overflowed: Collection[int] = (),
) -> Placement:
    page = table.page()
    return Placement(
        page=page,
        tokens=table.dress.counter(page.text),
        items=dict(table.placed),
        shortened=shortened,
        overflowed=frozenset(overflowed) - table.placed.keys(),
        allocation=Allocation(
            region=table.frame.region,
            shares={
                name: Share(quota=share.quota, used=table.used(name), placed=())
                for name, share in allocation.shares.items()
            },
        ),
    )


def _allocate(table: Table, pinned: Sequence[int], config: ContextConfig) -> Allocation:
    lines = table.lines()
    places = {
        number: (name, place) for name, line in lines.items() for place, number in enumerate(line)
    }
    taken = sum(table.items[number].tokens for number in pinned)
    return allocate(
        {name: [table.items[number].tokens for number in line] for name, line in lines.items()},
        region=table.frame.region - taken,
        ratios=config.source_ratios,
        allow_borrow=config.allow_borrow,
        fill=config.fill,
        order=[places[number] for number in table.order if number in places],
    )


def _fill(table: Table, rooms: Mapping[str, int]) -> None:
    """Place what still fits, the best first, until nothing does.

    `rooms` holds the tokens that each source may use in all.
    """
    rejected: set[int] = set()
    while True:
        waiting = [n for n in table.ranking.waiting(table.placed) if n not in rejected]
        batch = _batch(table, waiting, rooms)
        if not batch:
            if not _squeeze(table, waiting, rooms):
                return
            continue
        table.add(batch)
        last: int | None = None
        while table.room < 0:  # joined, they count more than alone
            last = batch.pop()
            table.remove([last])
        # Only the last one taken out is known not to fit: others were tried together with it.
        if last is not None:
            rejected.add(last)


def _batch(table: Table, waiting: Sequence[int], rooms: Mapping[str, int]) -> list[int]:
    """Choose the waiting items that fit by what they count alone."""
    room, opened = table.room, table.opened()
    left = {name: rooms[name] - table.used(name) for name in rooms}
    batch: list[int] = []
    said: set[int] = set()
    for number in waiting:
        name, cost = table.source(number), table.cost(number, opened)
        fits = cost <= room and table.items[number].tokens <= left[name]
        if fits and said.isdisjoint(table.ranking.says(number)):
            batch.append(number)
            said |= table.ranking.says(number)
            opened.add(name)
            room -= cost
            left[name] -= table.items[number].tokens
    return batch


def _squeeze(table: Table, waiting: Sequence[int], rooms: Mapping[str, int]) -> bool:
    """Place one item that counts a little too much alone but fits the joined text."""
    opened = table.opened()
    close = [
        number
        for number in waiting
        if table.source(number) in opened
        and table.items[number].tokens <= table.room + _MERGE
        and table.items[number].tokens + table.used(table.source(number))
        <= rooms[table.source(number)]
    ]
    close.sort(key=lambda number: (table.items[number].tokens, len(table.items[number].text)))
    return any(table.offer(number, table.items[number]) for number in close[:_TRIES])


def _protected(table: Table, pinned: Sequence[int]) -> dict[str, int]:
    """Count each part that must be kept, alone, for the error message."""
    counter, frame = table.dress.counter, table.frame
    parts = {"system": counter(frame.system), "question": counter(frame.question)}
    parts.update(
        (f"pinned {table.ranking.offers[number].label}", table.items[number].tokens)
        for number in pinned
    )
    return {name: tokens for name, tokens in parts.items() if tokens}
