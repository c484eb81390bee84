"""Which of the ranked candidates end up on the page, so that the joined text fits.

Allocation divides a region by the tokens of items counted alone. Tokens are not additive, though:
`"  "` is 1 token and `"123"` is 1, but `"  123"` is 3. So the page is joined and counted as a
whole, and that count rules: while it is over the limit the item that deserves its place least goes;
while tokens are idle the best item that still fits comes in.

A section's heading is charged when its first item is placed, on a line of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muntin.counting import cut_to_tokens
from muntin.errors import ContextWindowExceeded
from muntin.passages.allocation import Allocation, Share, allocate
from muntin.passages.layout import Item
from muntin.runtime import largest_within
from muntin.text import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muntin.config import ContextConfig
    from muntin.passages.layout import Dress, Page
    from muntin.passages.ranking import Ranking

__all__ = ("Frame", "Placement", "measure", "place")

_MERGE = 3
"""Tokens an item may save by joining that are looked for: one at each border, one at the end."""

_TRIES = 8
"""How many items a little too large by their own count are tried in the joined text."""

_LEAST_SHORTENED = 24
"""Room below which a shortened item would say too little to be worth its place, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Hold what stands around the candidates and how much room there is."""

    sources: tuple[str, ...]
    """Names of the sources in the order in which they were given."""
    limit: int
    """Tokens the joined text may take."""
    overhead: int
    """Tokens of it that are taken before anything is divided: what is fixed, and the headings of
    all sources."""
    system: str = ""
    """System prompt; `""` where there is none."""
    question: str = ""
    """The question as it is rendered; `""` where it is not part of the text."""

    @property
    def region(self) -> int:
        """Tokens that are divided among the sources."""
        return max(self.limit - self.overhead, 0)


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
    for offer in ranking.offers:
        text = dress.rendered(offer.candidate, offer.source)
        tokens = counted.get(text)
        if tokens is None:
            tokens = counted[text] = dress.counter(text + "\n")
        items.append(Item(candidate=offer.candidate, text=text, tokens=tokens))
    return tuple(items)


def place(
    ranking: Ranking, items: Sequence[Item], frame: Frame, dress: Dress, config: ContextConfig
) -> Placement:
    """Fill the page.

    Args:
        ranking: The offers and their order.
        items: Each offer as it is rendered, from `measure`.
        frame: What stands around them.
        dress: How they are rendered and counted.
        config: The knobs of allocation.

    Raises:
        ContextWindowExceeded: The fixed parts and the pinned candidates alone are over the limit.
    """
    table = _Table(ranking, items, frame, dress)
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
    shortened = _shorten(table) if config.shorten else frozenset[int]()
    page = table.page()
    return Placement(
        page=page,
        tokens=dress.counter(page.text),
        items=dict(table.placed),
        shortened=shortened,
        overflowed=frozenset(overflowed - table.placed.keys()),
        allocation=Allocation(
            region=frame.region,
            shares={
                name: Share(quota=quota, used=table.used(name), placed=())
                for name, quota in quotas.items()
            },
        ),
    )


class _Table:
    """The page in the making: what is placed, and what the whole counts."""

    def __init__(self, ranking: Ranking, items: Sequence[Item], frame: Frame, dress: Dress) -> None:
        self.ranking, self.items, self.frame, self.dress = ranking, items, frame, dress
        self.order = ranking.order
        self.rank = {number: place for place, number in enumerate(ranking.line)}
        self.headings = {name: dress.heading_tokens(name) for name in frame.sources}
        self.gap = dress.counter("\n\n")
        self.placed: dict[int, Item] = {}
        self.tokens = self._count()

    @property
    def room(self) -> int:
        """Tokens that are idle."""
        return self.frame.limit - self.tokens

    def source(self, number: int) -> str:
        return self.ranking.offers[number].source

    def lines(self) -> dict[str, list[int]]:
        """Return each source's selected offers that are not placed, the best first."""
        lines: dict[str, list[int]] = {name: [] for name in self.frame.sources}
        for number in self.order:
            if number not in self.placed:
                lines[self.source(number)].append(number)
        return lines

    def used(self, name: str) -> int:
        """Count a source's placed items, each alone."""
        placed = self.placed.items()
        return sum(item.tokens for number, item in placed if self.source(number) == name)

    def add(self, numbers: Iterable[int]) -> None:
        self.placed.update((number, self.items[number]) for number in numbers)
        self.tokens = self._count()

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self.placed[number]
        self.tokens = self._count()

    def offer(self, number: int, item: Item) -> bool:
        """Place an item if the joined text still fits, and say whether it did."""
        tokens = self.counted(number, item)
        if tokens > self.frame.limit:
            return False
        self.placed[number], self.tokens = item, tokens
        return True

    def counted(self, number: int, item: Item) -> int:
        """Count the joined text with one more item."""
        self.placed[number] = item
        tokens = self._count()
        del self.placed[number]
        return tokens

    def with_content(self, number: int, content: str) -> Item:
        """Make the item an offer would be with another content."""
        candidate = replace(self.items[number].candidate, content=content)
        text = self.dress.rendered(candidate, self.source(number))
        return Item(candidate=candidate, text=text, tokens=self.dress.counter(text + "\n"))

    def cost(self, number: int, opened: set[str]) -> int:
        """Return what an item takes, with its heading where its section is not open yet."""
        name = self.source(number)
        return self.items[number].tokens + (0 if name in opened else self.headings[name] + self.gap)

    def opened(self) -> set[str]:
        return {self.source(number) for number in self.placed}

    def trim(self, pinned: Sequence[int]) -> set[int]:
        """Take out the least deserving items until the joined text fits."""
        out: set[int] = set()
        while self.tokens > self.frame.limit:
            over = self.tokens - self.frame.limit
            victims: list[int] = []
            free = sorted(self.placed.keys() - set(pinned), key=self.rank.__getitem__)
            while over > 0 and free:
                victims.append(free.pop())
                over -= self.items[victims[-1]].tokens
            out.update(victims)
            self.remove(victims)
        return out

    def page(self, sources: Sequence[str] | None = None) -> Page:
        layout, frame = self.dress.layout, self.frame
        by_source: dict[str, list[int]] = {name: [] for name in sources or frame.sources}
        for number in sorted(self.placed, key=self._standing):
            by_source[self.source(number)].append(number)
        sections = [
            layout.section(name, [self.placed[number] for number in numbers], self.dress.prompts)
            for name, numbers in by_source.items()
        ]
        return layout.page(system=frame.system, sections=sections, question=frame.question)

    def _standing(self, number: int) -> int:
        if self.dress.layout.ordering == "document":
            return self.ranking.offers[number].index
        return self.rank[number]

    def _count(self) -> int:
        """Count the joined text; in the order given and by name, so that neither decides alone."""
        counts = [self.dress.counter(self.page().text)]
        by_name = tuple(sorted(self.frame.sources))
        layout = self.dress.layout
        if layout.arranged(by_name) != layout.arranged(self.frame.sources):
            counts.append(self.dress.counter(self.page(by_name).text))
        return max(counts)


def _allocate(table: _Table, pinned: Sequence[int], config: ContextConfig) -> Allocation:
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


def _fill(table: _Table, rooms: Mapping[str, int]) -> None:
    """Place what still fits, the best first, until nothing does.

    `rooms` says how many tokens each source may use in all.
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


def _batch(table: _Table, waiting: Sequence[int], rooms: Mapping[str, int]) -> list[int]:
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


def _squeeze(table: _Table, waiting: Sequence[int], rooms: Mapping[str, int]) -> bool:
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


def _shorten(table: _Table) -> frozenset[int]:
    """Cut the best waiting items at a sentence border to what is left.

    Where nothing stands on the page then, the best item is cut wherever it must be.
    """
    cut: set[int] = set()
    for number in table.ranking.waiting(table.placed)[:_TRIES]:
        if number not in table.ranking.waiting(table.placed):
            continue  # one that was cut says it
        opened = table.opened()
        room = table.room - (table.cost(number, opened) - table.items[number].tokens)
        if room < _LEAST_SHORTENED:
            continue
        short = _shortened(table, number, room)
        if short is not None and table.offer(number, short):
            cut.add(number)
    if table.placed:
        return frozenset(cut)
    numbers = table.ranking.waiting(table.placed)[:_TRIES]
    return frozenset(next(([number] for number in numbers if _cut(table, number)), ()))


def _cut(table: _Table, number: int) -> bool:
    """Place as much of an item as fits the page, and say whether anything of it does."""
    content = cut_to_tokens(
        table.items[number].candidate.content,
        table.frame.limit,
        lambda text: table.counted(number, table.with_content(number, text)),
    )
    return content not in ("", "…") and table.offer(number, table.with_content(number, content))


def _shortened(table: _Table, number: int, room: int) -> Item | None:
    """Keep as many whole sentences of an item as fit some room."""
    pieces = sentences(table.items[number].candidate.content)

    def shortened(kept: int) -> Item:
        return table.with_content(number, "".join(pieces[:kept]).rstrip())

    kept = largest_within(room, lambda n: shortened(n).tokens, low=0, high=len(pieces) - 1)
    short = shortened(kept)
    return short if short.candidate.content else None


def _protected(table: _Table, pinned: Sequence[int]) -> dict[str, int]:
    """Count each part that must be kept, alone, for the error that says it does not fit."""
    counter, frame = table.dress.counter, table.frame
    parts = {"system": counter(frame.system), "question": counter(frame.question)}
    parts.update(
        (f"pinned {table.ranking.offers[number].label}", table.items[number].tokens)
        for number in pinned
    )
    return {name: tokens for name, tokens in parts.items() if tokens}
