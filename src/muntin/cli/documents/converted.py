"""Documents that a library turns into sections: HTML, Word files, notebooks.

A place is a section and a character in it. The text of the document read last is kept, because the
passages that answer a question are read again from few documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from muntin.cli.documents.passages import Passage, cut
from muntin.cli.failures import Skipped

__all__ = ("ConvertedDocument", "Section")

_SECTION = 1 << 32
"""More characters than a section has: place = section * _SECTION + character."""


class Section(NamedTuple):
    """Hold one part of a document."""

    text: str
    """Its text, the heading included."""
    heading: str = ""
    """Its heading; `""` for text before the first one."""
    label: str = ""
    """What people call the place, such as `cell 3`; `""` where only the heading names it."""


@dataclass(frozen=True, slots=True)
class ConvertedDocument:
    """Read a file through a function that returns its sections."""

    path: Path
    size: int
    convert: Callable[[Path], list[Section]]
    """Returns the sections; raises `Skipped` where the file cannot be read."""
    _held: list[list[Section]] = field(
        default_factory=list[list[Section]], compare=False, repr=False
    )

    def passages(self) -> Iterator[Passage]:
        """Read it in passages, none of which crosses a section."""
        empty = True
        for number, section in enumerate(self._sections()):
            for start, end in cut(section.text):
                empty = False
                place = number * _SECTION + start
                text = section.text[start:end]
                yield Passage(text, place, end - start, number + 1, section.heading)
        self._held.clear()
        if empty:
            raise Skipped("empty")

    def parts(self, size: int) -> Iterator[str]:
        """Read its text section by section."""
        del size
        return (section.text for section in self._sections())

    def read_again(self, place: int, length: int) -> str:
        """Return the text of a passage."""
        number, start = divmod(place, _SECTION)
        return self._sections()[number].text[start : start + length]

    def where(self, line: int) -> str:
        """Name a section."""
        label = self._sections()[line - 1].label
        return f"{self.path}, {label}" if label else str(self.path)

    def _sections(self) -> list[Section]:
        if not self._held:
            self._held.append(self.convert(self.path))
        return self._held[0]
