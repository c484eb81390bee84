"""PDF files as documents, where `pypdf` is installed.

A place is a page and a character on it. Text that is only a picture in a PDF is not read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muntin.cli.documents.passages import Passage, cut
from muntin.cli.failures import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("PdfDocument",)

_PAGE = 1 << 24
"""More characters than a page has: place = page * _PAGE + character."""


@dataclass(frozen=True, slots=True)
class PdfDocument:
    """Read the text of a PDF file page by page."""

    path: Path
    size: int
    _open: list[Any] = field(default_factory=list[Any], compare=False, repr=False)

    def passages(self) -> Iterator[Passage]:
        """Read it in passages, none of which crosses a page."""
        empty = True
        for number in range(len(self._pages())):
            text = self._text(number)
            for start, end in cut(text):
                empty = False
                yield Passage(text[start:end], number * _PAGE + start, end - start, number + 1)
        self._open.clear()
        if empty:
            raise Skipped("a PDF without text, perhaps scanned")

    def parts(self, size: int) -> Iterator[str]:  # noqa: ARG002 - a page is a part
        """Read its text page by page."""
        return (self._text(number) for number in range(len(self._pages())))

    def read_again(self, place: int, length: int) -> str:
        """Return the text of a passage."""
        number, start = divmod(place, _PAGE)
        return self._text(number)[start : start + length]

    def where(self, line: int) -> str:
        """Name a page."""
        return f"{self.path}, page {line}"

    def _pages(self) -> Any:
        if not self._open:
            try:
                from pypdf import PdfReader
            except ModuleNotFoundError:
                raise Skipped('a PDF: pip install "pypdf" to read it') from None
            logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every oddity
            try:
                self._open.append(PdfReader(self.path).pages)
                len(self._open[0])
            except Exception as error:  # noqa: BLE001 - a parser that meets a broken file
                self._open.clear()
                raise Skipped(f"a PDF that cannot be read: {error}") from None
        return self._open[0]

    def _text(self, number: int) -> str:
        try:
            text = str(self._pages()[number].extract_text())
        except Skipped:
            raise
        except Exception as error:  # noqa: BLE001 - a parser that meets a broken page
            raise Skipped(f"a PDF that cannot be read: {error}") from None
        return text.encode("utf-8", "replace").decode()
