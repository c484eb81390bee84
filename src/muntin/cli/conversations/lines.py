"""Read the lines of a file with their numbers, one at a time, checked to be UTF-8 text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.cli.failures import Failure
from muntin.cli.terminal.files import name_of, reading_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

__all__ = ("numbered_lines",)


def numbered_lines(file: BufferedReader, path: Path) -> Iterator[tuple[int, str]]:
    """Read lines with their numbers; a blank line is a part of the line before it.

    Raises:
        Failure: The file cannot be read, or is not UTF-8 text.
    """
    return _with_blank(_decoded(file, path))


def _decoded(file: BufferedReader, path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines of a file with their numbers, checked to be UTF-8 without NUL."""
    name = name_of(path)
    number = 0
    while True:
        with reading_errors(path):
            data = file.readline()
        if not data:
            return
        number += 1
        if number == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Failure(
                f"{name} is UTF-16, not UTF-8: convert it first, for instance with "
                f"iconv -f UTF-16 -t UTF-8"
            )
        if b"\0" in data:
            raise Failure(f"{name}, line {number} holds a NUL byte: it is binary, or not UTF-8")
        try:
            yield number, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Failure(
                f"{name} is not UTF-8 (line {number}, byte {error.start}): convert it first, for "
                f"instance with iconv"
            ) from None


def _with_blank(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join blank lines to the line before them, so that they are written back with it."""
    held: tuple[int, str] | None = None
    for number, text in lines:
        if held is not None and not text.strip():
            held = held[0], held[1] + text
            continue
        if held is not None:
            yield held
        held = number, text
    if held is not None:
        yield held
