"""Decides how text is set in the fixed cells of a terminal: width, cutting, aligned columns.

A Chinese character takes two cells and a combining mark none, so `len` would push columns apart.
It knows nothing of reports, colours or the terminal's real size.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("cells", "cut", "figure", "pad", "table", "visible", "wrap")

_CONTROL = dict.fromkeys([*range(32), *range(127, 160), 0x2028, 0x2029], "�")


def visible(text: str) -> str:
    """Make a line safe to print: no control characters, no escape sequences, valid UTF-8."""
    return text.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")


def cells(text: str) -> int:
    """Count the terminal cells a line takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Cc", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Shorten a line to at most `width` cells, marking the cut with `…`."""
    if cells(text) <= width:
        return text
    taken: list[str] = []
    room = width - 1
    for character in text:
        room -= _cells_of(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken).rstrip() + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad a line with blanks to `width` cells, on the left if it is aligned `right`."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def figure(number: int | None) -> str:
    """Write a number of tokens with thousands marked; `-` for None."""
    return "-" if number is None else f"{number:,}"


def table(rows: Sequence[Sequence[str]], *, first_width: int) -> list[str]:
    """Set rows in columns: the first one left, at most `first_width` cells, all others right."""
    cropped = [(cut(row[0], first_width), *row[1:]) for row in rows]
    widths = [max(cells(row[i]) for row in cropped) for i in range(len(cropped[0]))]
    return [
        "  ".join(
            pad(cell, width, right=column > 0)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cropped
    ]


def wrap(pieces: Iterable[str], *, width: int, indent: str = "") -> list[str]:
    """Set pieces one after another, two blanks apart, beginning a new line where one is full."""
    lines: list[str] = []
    line = ""
    for piece in pieces:
        piece = cut(piece, width - len(indent))
        if line and cells(line) + 2 + cells(piece) > width:
            lines.append(line)
            line = ""
        line = f"{line}  {piece}" if line else indent + piece
    return [*lines, line] if line else lines
