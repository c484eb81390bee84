"""Cut a text into passages: at headings, definitions and blank lines, never in a word.

Text comes in blocks of bounded size, so that a file of any size passes through in little memory,
and every passage has its place, so that it can be read again. A passage is what a model
should see at once: a section, a few paragraphs, a definition; 1,200 characters, at most 1,600.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from muntin.text import grapheme_start

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Passage", "blocks", "cut", "passages_of")

_AIM, _MOST, _LEAST = 1_200, 1_600, 200
"""Characters from which a passage is full, that it may have, and below which no heading ends it."""
_GAP = re.compile(r"\n(?:[ \t\r]*\n)+")
_OPENS = re.compile(
    r"#{1,6} |(?:async )?def |class |(?:export |public |pub |static )*(?:function|fn|func|struct|"
    r"interface|impl|enum|trait|type)\b|@\w|\.\. \w|=+ "
)
"""What opens a section or a definition at the left margin, in the usual languages."""
_NEAR = 64
"""Characters looked at to find a grapheme border."""


class Passage(NamedTuple):
    """Hold one passage and its place."""

    text: str
    """Its text, without blank lines around it."""
    place: int
    """Where it begins: a byte of the file, or whatever its document counts in."""
    length: int
    """How much it takes there, in the same unit."""
    line: int
    """The line it begins on, from 1; for a document of pages the page."""
    heading: str = ""
    """The heading it is under; `""` where there is none."""


def blocks(file: BinaryIO, size: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    """Read a file in blocks that end between paragraphs where there are any.

    Yields the offset of each block and its bytes; no block ends inside a UTF-8 character.
    """
    offset, rest = 0, b""
    while len(data := file.read(size)) == size:
        whole = rest + data
        border = _border(whole)
        yield offset, whole[:border]
        offset, rest = offset + border, whole[border:]
    if rest or data:
        yield offset, rest + data


def _border(data: bytes) -> int:
    """Find the last place to part a block: a blank line, a line end, else a character."""
    for mark in (b"\n\n", b"\n"):
        at = data.rfind(mark)
        if at >= 0:
            return at + len(mark)
    border = len(data)
    while border and len(data) - border < 4:
        border -= 1
        if data[border] & 0xC0 != 0x80:  # the first byte of the last character
            return border
    return len(data)


def passages_of(text: str, offset: int, size: int, line: int) -> Iterator[Passage]:
    """Cut one block of a UTF-8 file into passages, with their place in bytes.

    Args:
        text: The block.
        offset: Where it begins in the file.
        size: Its bytes.
        line: The line it begins on.
    """
    plain = len(text) == size  # then characters are bytes
    place, seen = offset, 0
    for start, end in cut(text):
        line += text.count("\n", seen, start)
        passage = text[start:end]
        place += (start - seen) if plain else len(text[seen:start].encode())
        length = (end - start) if plain else len(passage.encode())
        yield Passage(passage, place, length, line)
        line += passage.count("\n")
        place, seen = place + length, end


def cut(text: str) -> Iterator[tuple[int, int]]:
    r"""Find where the passages of a text begin and end, in characters, without the blanks between.

    ```python
    from muntin.cli.documents.passages import cut

    text = "# One\n\nFirst.\n\n" + "word " * 400
    print([len(text[start:end]) for start, end in cut(text)])
    #> [13, 1199, 799]
    ```
    """
    held = 0, 0
    for start, end in _paragraphs(text):
        if held[1]:
            size = held[1] - held[0]
            full = end - held[0] > _AIM
            if full or (size >= _LEAST and _OPENS.match(text, start)):
                yield held
                held = 0, 0
        if end - start > _MOST:
            if held[1]:
                yield held
            yield from _pieces(text, start, end)
            held = 0, 0
        else:
            held = (held[0] if held[1] else start), end
    if held[1]:
        yield held


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for gap in _GAP.finditer(text):
        yield from _trimmed(text, start, gap.start())
        start = gap.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Leave line ends around a paragraph out; its indentation belongs to it."""
    while start < end and text[start] in "\r\n\ufeff":
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long paragraph at line ends, at blanks, and where there are none between characters."""
    while end - start > _MOST:
        border = _break(text, start, start + _AIM)
        yield from _trimmed(text, start, border)
        start = border
    yield from _trimmed(text, start, end)


def _break(text: str, start: int, aim: int) -> int:
    for mark in ("\n", " "):
        at = text.rfind(mark, start + _LEAST, aim)
        if at > 0:
            return at + 1
    near = text[aim - _NEAR : aim + _NEAR]
    return aim - _NEAR + grapheme_start(near, _NEAR) if grapheme_start(near, _NEAR) else aim
