"""Order, headings and markup of context sections.

A layout is data: the order of the sections, their headings, the style, and how stable each section
is from one request to the next, which decides what a prompt cache can reuse. It does not decide
what is placed; it renders, and records which item every character came from.

Content cannot forge structure. In the plain style every line of an item after its first is
indented, so no candidate can start a line like a heading; in the XML style it is escaped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape, quoteattr

from muntin.errors import ConfigurationError
from muntin.prompts import DEFAULT_PROMPTS
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.counting import TokenCounter
    from muntin.passages.candidates import Candidate
    from muntin.prompts import PromptRegistry

__all__ = ("Block", "ContextParts", "Item", "Layout", "Rendering", "Section")

Stability = Literal["stable", "session", "volatile"]
"""How long a section stays as it is: across sessions, within one, or not even to the next turn."""

Ordering = Literal["selection", "ascending", "lost-in-the-middle", "document"]
"""Order of the items within a section."""
_ORDERINGS = ("selection", "ascending", "lost-in-the-middle", "document")

_ORDER = ("system", "memory", "rag", "history", "tool", "*", "question")
_STABILITY: dict[str, Stability] = {
    "system": "stable",
    "memory": "session",
    "history": "session",
    "rag": "volatile",
    "tool": "volatile",
    "question": "volatile",
}
_CLASSES: tuple[Stability, ...] = ("stable", "session", "volatile")
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_FIELD = re.compile(r"\{([^{}]+)\}")
_TAG = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Hold one rendered candidate."""

    candidate: Candidate
    """The candidate as it was offered, or shortened."""
    text: str
    """Its text in the section, item mark included."""
    tokens: int
    """Tokens of `text` and the line break after it, counted alone."""
    number: int = 0
    """Number for citations: the place in the ranking, from 1; 0 where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Hold one source's items under its heading."""

    name: str
    """Name of the source."""
    opening: str
    """Heading line, or opening tag."""
    items: tuple[Item, ...]
    """The items in the order of the text."""
    closing: str = ""
    """Closing tag; `""` in the plain style."""

    @property
    def text(self) -> str:
        """The whole section."""
        lines = [self.opening, *(item.text for item in self.items)]
        return "\n".join([*lines, self.closing] if self.closing else lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Hold one part of the context: a section, or the fixed text of `system` or `question`."""

    name: str
    """Name of the source, or `system`, or `question`."""
    text: str
    """Its text."""
    section: Section | None = None
    """The section it is; `None` for fixed text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParts:
    """Hold the parts of a context in their order."""

    blocks: tuple[Block, ...]
    """The parts; joined by a blank line they are the text."""

    @property
    def text(self) -> str:
        """The parts joined by a blank line."""
        return "\n\n".join(block.text for block in self.blocks)

    def candidate_at(self, offset: int) -> Candidate | None:
        """Return the candidate whose item covers a character, `None` for all else."""
        starts, ends, candidates = self._spans()
        position = bisect_right(starts, offset) - 1
        if position < 0 or offset >= ends[position]:
            return None
        return candidates[position]

    def _spans(self) -> tuple[list[int], list[int], list[Candidate]]:
        starts: list[int] = []
        ends: list[int] = []
        candidates: list[Candidate] = []
        at = 0
        for block in self.blocks:
            if block.section is not None:
                inside = at + len(block.section.opening) + 1
                for item in block.section.items:
                    starts.append(inside)
                    ends.append(inside + len(item.text))
                    candidates.append(item.candidate)
                    inside += len(item.text) + 1
            at += len(block.text) + 2
        return starts, ends, candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Configure the layout of a context.

    ```python
    from muntin import Candidate, CallableSource, ContextBuilder, Layout

    rules = CallableSource("rag", lambda query: [Candidate("Tea < coffee.", 0.9, id="r1")])
    builder = ContextBuilder(layout=Layout.xml())
    print(builder.build_block("tea?", sources=[rules], budget=100))
    #> <rag>
    #> <item id="r1" source="rag" score="0.9">Tea &lt; coffee.</item>
    #> </rag>
    ```
    """

    order: tuple[str, ...] = _ORDER
    """Names of the parts in their order; `*` means all sources not named, in the order in
    which they were given."""
    headings: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Heading of a source or of `question`, where it is not the prompt registry's."""
    style: Literal["plain", "xml"] = "plain"
    """Headings and list items, or escaped tags that carry id, source and score."""
    ordering: Ordering = "selection"
    """Order of the items within a section: best first (`selection`); best last (`ascending`); best
    at both ends, where models read best (`lost-in-the-middle`, Liu et al. 2023); or in the order of
    the source (`document`)."""
    item: str | None = None
    """Template of one item, such as `"[{n}] {content} ({title}, p. {page})"`. Fields are `content`,
    `n` (a number for citations, see `AssembledContext.citations`), `id`, `source`, `score`, and
    the keys of the candidate's metadata; one that is missing is left empty. `None` writes the
    content alone."""
    stability: Mapping[str, Stability] = field(default_factory=lambda: dict(_STABILITY), hash=False)
    """How stable each part is; one that is not named is volatile."""

    def __post_init__(self) -> None:
        if len(set(self.order)) != len(self.order) or self.order.count("*") != 1:
            raise ConfigurationError(
                f"a layout's order names each part once and has one '*', not {self.order}"
            )
        for name, known, value in (
            ("style", ("plain", "xml"), self.style),
            ("ordering", _ORDERINGS, self.ordering),
        ):
            if value not in known:
                raise ConfigurationError(f"a layout's {name} is one of {known}, not {value!r}")
        if self.item is not None and "{content}" not in self.item:
            raise ConfigurationError(
                f"a layout's item must contain '{{content}}', got {self.item!r}"
            )
        strange = set(self.stability.values()) - set(_CLASSES)
        if strange:
            raise ConfigurationError(f"a part is one of {_CLASSES}, not {sorted(strange)}")

    @classmethod
    def xml(cls) -> Layout:
        """Return the layout with escaped tags."""
        return cls(style="xml")

    def cache_friendly(self) -> Layout:
        """Return this layout with stable parts first and volatile ones last.

        A prompt cache reuses the prefix that did not change since the last request, so what
        changes most belongs at the end.
        """
        return replace(
            self,
            order=tuple(sorted(self.order, key=lambda name: _CLASSES.index(self.class_of(name)))),
        )

    def class_of(self, name: str) -> Stability:
        """Return how stable a part is."""
        return self.stability.get(name, "volatile")

    def render(self, candidate: Candidate, source: str) -> str:
        """Write one candidate as an item of its section."""
        return self._marked(candidate, source, candidate.content)

    def render_numbered(self, candidate: Candidate, source: str, number: int) -> str:
        """Write one candidate by the template `item`, with its number for citations."""
        if self.item is None:
            return self.render(candidate, source)
        known = {**candidate.metadata, "id": candidate.id, "source": candidate.source or source}
        known["score"] = "" if candidate.score is None else f"{candidate.score:.4g}"
        known["n"] = number

        def fill(match: re.Match[str]) -> str:
            if match[1] == "content":
                return candidate.content
            value = known.get(match[1])
            return "" if value is None else " ".join(str(value).split())

        return self._marked(candidate, source, _FIELD.sub(fill, self.item))

    def _marked(self, candidate: Candidate, source: str, text: str) -> str:
        """Write a text as an item, so that it cannot forge a heading or a tag."""
        if self.style == "plain":
            if text.isprintable():  # then it has no line break, found fast
                return f"- {text}"
            return "- " + _LINE_BREAK.sub(lambda match: match[0] + "  ", text)
        marks = {"id": candidate.id, "source": candidate.source or source}
        if candidate.score is not None:
            marks["score"] = f"{candidate.score:.4g}"
        attributes = "".join(f" {name}={quoteattr(mark)}" for name, mark in marks.items() if mark)
        return f"<item{attributes}>{escape(text)}</item>"

    def opening(self, name: str, prompts: PromptRegistry = DEFAULT_PROMPTS) -> str:
        """Return the line that opens a source's section."""
        if self.style == "xml":
            return f"<{_tag(name)}>"
        return self.headings.get(name) or prompts.section_heading(name)

    def closing(self, name: str) -> str:
        """Return the line that closes a source's section, `""` where there is none."""
        return f"</{_tag(name)}>" if self.style == "xml" else ""

    def question(self, query: str, prompts: PromptRegistry = DEFAULT_PROMPTS) -> str:
        """Render the question under its heading."""
        if self.style == "xml":
            return f"<question>\n{escape(query)}\n</question>"
        return f"{self.headings.get('question') or prompts.get('context.question')}\n{query}"

    def section(
        self, name: str, items: Sequence[Item], prompts: PromptRegistry = DEFAULT_PROMPTS
    ) -> Section:
        """Put a source's items, the best first, under its heading in this layout's order."""
        placed = tuple(items)
        if self.ordering == "ascending":
            placed = placed[::-1]
        elif self.ordering == "lost-in-the-middle":
            placed = (*placed[::2], *reversed(placed[1::2]))
        return Section(
            name=name,
            opening=self.opening(name, prompts),
            items=placed,
            closing=self.closing(name),
        )

    def compose(self, *, system: str, sections: Sequence[Section], question: str) -> ContextParts:
        """Put the parts in order; empty ones are left out."""
        named = {section.name: section for section in sections if section.items}
        fixed = {"system": system, "question": question}
        blocks: list[Block] = []
        for name in self.arranged([section.name for section in sections]):
            if fixed.get(name):
                blocks.append(Block(name=name, text=fixed[name]))
            elif name in named:
                blocks.append(Block(name=name, text=named[name].text, section=named[name]))
        return ContextParts(blocks=tuple(blocks))

    def arranged(self, names: Sequence[str]) -> list[str]:
        """Return all parts of a context with these sources, in order."""
        others = [name for name in names if name not in self.order]
        return [part for name in self.order for part in (others if name == "*" else [name])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Hold how things are rendered and counted."""

    layout: Layout
    """Order, headings and style."""
    prompts: PromptRegistry
    """Gives the headings."""
    counter: TokenCounter
    """Counts tokens."""

    def rendered(self, candidate: Candidate, source: str, number: int = 1) -> str:
        """Write one candidate as an item of its section, in text that can be encoded.

        `number` is written where the layout's template asks for one.
        """
        if self.layout.item is None:
            return clean_text(self.layout.render(candidate, source))
        return clean_text(self.layout.render_numbered(candidate, source, number))

    def heading_tokens(self, name: str) -> int:
        """Count the lines that open and close a section."""
        opening = self.counter(self.layout.opening(name, self.prompts) + "\n")
        closing = self.layout.closing(name)
        return opening + (self.counter(closing + "\n") if closing else 0)


def _tag(name: str) -> str:
    """Make a tag name of a source's name."""
    tag = _TAG.sub("_", name)
    return tag if tag[:1].isalpha() else f"s_{tag}"
