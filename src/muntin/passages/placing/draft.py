"""The context while it is filled: which items are placed, and what the joined text counts.

Tokens are not additive, so every change counts the joined text again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muntin.passages.layout import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muntin.passages.candidates import Candidate
    from muntin.passages.layout import ContextParts, Rendering
    from muntin.passages.selecting.ranking import Ranking

__all__ = ("Draft", "Frame")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The text around the candidates and the space for them."""

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


class Draft:
    """Hold the placed items and the token count of the joined text."""

    def __init__(
        self, ranking: Ranking, items: Sequence[Item], frame: Frame, rendering: Rendering
    ) -> None:
        self.ranking, self.items, self.frame, self.rendering = ranking, items, frame, rendering
        self.order = ranking.order
        self.rank = {number: place for place, number in enumerate(ranking.line)}
        self.headings = {name: rendering.heading_tokens(name) for name in frame.sources}
        self.gap = rendering.counter("\n\n")
        self.placed: dict[int, Item] = {}
        self.tokens = self._count()

    @property
    def idle(self) -> int:
        """Tokens that are idle."""
        return self.frame.limit - self.tokens

    def source(self, number: int) -> str:
        """Return the name of an item's source."""
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
        """Place items whole."""
        self.placed.update((number, self.items[number]) for number in numbers)
        self.tokens = self._count()

    def place(self, items: Mapping[int, Item]) -> None:
        """Place items as they are given."""
        self.placed.update(items)
        self.tokens = self._count()

    def titled(self, number: int, title: str) -> Candidate:
        """Return the candidate of an offer with nothing but a title."""
        return replace(self.items[number].candidate, content=title)

    def remove(self, numbers: Iterable[int]) -> None:
        """Take items out again."""
        for number in numbers:
            del self.placed[number]
        self.tokens = self._count()

    def offer(self, number: int, item: Item) -> bool:
        """Place an item if the joined text still fits; return whether it did."""
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
        place = self.items[number].number
        text = self.rendering.rendered(candidate, self.source(number), place)
        tokens = self.rendering.counter(text + "\n")
        return Item(candidate=candidate, text=text, tokens=tokens, number=place)

    def cost(self, number: int, opened: set[str]) -> int:
        """Return what an item takes, with its heading where its section is not open yet."""
        name = self.source(number)
        return self.items[number].tokens + (0 if name in opened else self.headings[name] + self.gap)

    def opened(self) -> set[str]:
        """Return the sources whose section is not empty."""
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

    def compose(self, sources: Sequence[str] | None = None) -> ContextParts:
        """Return the context with the placed items; `sources` gives another order of sections."""
        layout, frame = self.rendering.layout, self.frame
        by_source: dict[str, list[int]] = {name: [] for name in sources or frame.sources}
        for number in sorted(self.placed, key=self._position):
            by_source[self.source(number)].append(number)
        sections = [
            layout.section(
                name, [self.placed[number] for number in numbers], self.rendering.prompts
            )
            for name, numbers in by_source.items()
        ]
        return layout.compose(system=frame.system, sections=sections, question=frame.question)

    def _position(self, number: int) -> int:
        if self.rendering.layout.ordering == "document":
            return self.ranking.offers[number].index
        return self.rank[number]

    def _count(self) -> int:
        """Count the joined text in the order given and by name, and take the larger count."""
        counts = [self.rendering.counter(self.compose().text)]
        by_name = tuple(sorted(self.frame.sources))
        layout = self.rendering.layout
        if layout.arranged(by_name) != layout.arranged(self.frame.sources):
            counts.append(self.rendering.counter(self.compose(by_name).text))
        return max(counts)
