"""Decide which of the ranked candidates are placed, so that the joined text fits.

Allocation divides a region by the tokens of items counted alone. Tokens are not additive, though:
`"  "` is 1 token and `"123"` is 1, but `"  123"` is 3. So the text is joined and counted as a
whole. While this count is over the limit, the lowest ranked item is removed; while tokens are idle,
the best item that still fits is added.

A section's heading is charged when its first item is placed, on a line of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.errors import ContextWindowExceeded
from muntin.passages.layout import Item
from muntin.passages.placing.allocation import Allocation, Share, allocate
from muntin.passages.placing.draft import Draft, Frame
from muntin.passages.placing.shortening import fill_up, shorten_best
from muntin.passages.placing.windows import place_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.config import ContextConfig
    from muntin.passages.layout import ContextParts, Rendering
    from muntin.passages.selecting.ranking import Ranking

__all__ = ("Frame", "Placement", "measure", "place")

_MERGE = 3
"""Tokens that joining may save per item: one at each boundary and one at the end."""

_TRIES = 8
"""How many items a little too large by their own count are tried in the joined text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Hold the placed items and how they were chosen."""

    parts: ContextParts
    """The context in its parts."""
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


def measure(ranking: Ranking, rendering: Rendering) -> tuple[Item, ...]:
    """Render every offer and count it, line break included; equal texts are counted once."""
    counted: dict[str, int] = {}
    items: list[Item] = []
    place_of = {number: place for place, number in enumerate(ranking.line, start=1)}
    for number, offer in enumerate(ranking.offers):
        place = place_of.get(number, 0)
        text = rendering.rendered(offer.candidate, offer.source, place)
        tokens = counted.get(text)
        if tokens is None:
            tokens = counted[text] = rendering.counter(text + "\n")
        items.append(Item(candidate=offer.candidate, text=text, tokens=tokens, number=place))
    return tuple(items)


def place(
    ranking: Ranking,
    items: Sequence[Item],
    frame: Frame,
    rendering: Rendering,
    config: ContextConfig,
) -> Placement:
    """Place candidates within the limit.

    Args:
        ranking: The offers and their order.
        items: Each offer as it is rendered, from `measure`.
        frame: The text around them.
        rendering: Layout, prompts and counter.
        config: The options of allocation.

    Raises:
        ContextWindowExceeded: The fixed parts and the pinned candidates alone are over the limit.
    """
    draft = Draft(ranking, items, frame, rendering)
    giants = {number for number, item in enumerate(items) if item.tokens > frame.region}
    if config.fill and not giants.isdisjoint(ranking.order):
        draft.order = ranking.order_without(giants)
    pinned = [number for number in ranking.order if items[number].candidate.pinned]
    draft.add(pinned)
    if draft.tokens > frame.limit:
        raise ContextWindowExceeded(
            "the parts of the context that must be kept",
            needed=draft.tokens,
            available=max(frame.limit, 0),
            parts=_protected(draft, pinned),
        )
    allocation = _allocate(draft, pinned, config)
    windows = config.windows and config.fill and config.allow_borrow and not pinned
    shortened = place_windows(draft) if windows else None
    if shortened is not None:
        return _finished(draft, allocation, shortened)
    lines = draft.lines()
    draft.add(
        number
        for name, share in allocation.shares.items()
        for number in (lines[name][position] for position in share.placed)
    )
    overflowed = draft.trim(pinned)
    quotas = {name: share.quota for name, share in allocation.shares.items()}
    if config.fill:
        _fill(draft, dict.fromkeys(quotas, frame.limit) if config.allow_borrow else quotas)
    shortened = fill_up(draft) if config.shorten else frozenset[int]()
    if not draft.placed and (config.shorten or config.never_empty):
        shortened = shorten_best(draft)
    return _finished(draft, allocation, shortened, overflowed)


def _finished(
    draft: Draft,
    allocation: Allocation,
    shortened: frozenset[int],
    overflowed: Collection[int] = (),
) -> Placement:
    parts = draft.compose()
    return Placement(
        parts=parts,
        tokens=draft.rendering.counter(parts.text),
        items=dict(draft.placed),
        shortened=shortened,
        overflowed=frozenset(overflowed) - draft.placed.keys(),
        allocation=Allocation(
            region=draft.frame.region,
            shares={
                name: Share(quota=share.quota, used=draft.used(name), placed=())
                for name, share in allocation.shares.items()
            },
        ),
    )


def _allocate(draft: Draft, pinned: Sequence[int], config: ContextConfig) -> Allocation:
    lines = draft.lines()
    places = {
        number: (name, place) for name, line in lines.items() for place, number in enumerate(line)
    }
    taken = sum(draft.items[number].tokens for number in pinned)
    return allocate(
        {name: [draft.items[number].tokens for number in line] for name, line in lines.items()},
        region=draft.frame.region - taken,
        ratios=config.source_ratios,
        allow_borrow=config.allow_borrow,
        fill=config.fill,
        order=[places[number] for number in draft.order if number in places],
    )


def _fill(draft: Draft, limits: Mapping[str, int]) -> None:
    """Place what still fits, the best first, until nothing does.

    `limits` maps each source to the tokens it may use in all.
    """
    rejected: set[int] = set()
    while True:
        waiting = [n for n in draft.ranking.waiting(draft.placed) if n not in rejected]
        batch = _batch(draft, waiting, limits)
        if not batch:
            if not _squeeze(draft, waiting, limits):
                return
            continue
        draft.add(batch)
        last: int | None = None
        while draft.idle < 0:  # joined, they count more than alone
            last = batch.pop()
            draft.remove([last])
        # Only the last one taken out is known not to fit: others were tried together with it.
        if last is not None:
            rejected.add(last)


def _batch(draft: Draft, waiting: Sequence[int], limits: Mapping[str, int]) -> list[int]:
    """Choose the waiting items that fit by what they count alone."""
    free, opened = draft.idle, draft.opened()
    left = {name: limits[name] - draft.used(name) for name in limits}
    batch: list[int] = []
    covered: set[int] = set()
    for number in waiting:
        name, cost = draft.source(number), draft.cost(number, opened)
        fits = cost <= free and draft.items[number].tokens <= left[name]
        if fits and covered.isdisjoint(draft.ranking.covers(number)):
            batch.append(number)
            covered |= draft.ranking.covers(number)
            opened.add(name)
            free -= cost
            left[name] -= draft.items[number].tokens
    return batch


def _squeeze(draft: Draft, waiting: Sequence[int], limits: Mapping[str, int]) -> bool:
    """Place one item that counts a little too much alone but fits the joined text."""
    opened = draft.opened()
    close = [
        number
        for number in waiting
        if draft.source(number) in opened
        and draft.items[number].tokens <= draft.idle + _MERGE
        and draft.items[number].tokens + draft.used(draft.source(number))
        <= limits[draft.source(number)]
    ]
    close.sort(key=lambda number: (draft.items[number].tokens, len(draft.items[number].text)))
    return any(draft.offer(number, draft.items[number]) for number in close[:_TRIES])


def _protected(draft: Draft, pinned: Sequence[int]) -> dict[str, int]:
    """Count each part that must be kept, alone, for the error message."""
    counter, frame = draft.rendering.counter, draft.frame
    parts = {"system": counter(frame.system), "question": counter(frame.question)}
    parts.update(
        (f"pinned {draft.ranking.offers[number].label}", draft.items[number].tokens)
        for number in pinned
    )
    return {name: tokens for name, tokens in parts.items() if tokens}
