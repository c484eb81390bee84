"""Which files of a folder are documents, and how each is read in passages, and read again.

A folder is walked in order of names. Hidden files, caches and installed dependencies are left out
without a note, as `git grep` does; binary, empty, unreadable and non-UTF-8 files are skipped with a
reason. HTML, Word and PDF files need the extra `documents`. The text of a document is not kept: a
passage that is wanted again is read again.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from muntin.cli.documents.conversion import (
    sections_of_docx,
    sections_of_html,
    sections_of_notebook,
)
from muntin.cli.documents.converted import ConvertedDocument
from muntin.cli.documents.passages import Passage, blocks, passages_of
from muntin.cli.failures import SOURCE_FAILED, Failure, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("Document", "TextDocument", "find_documents")

_BLOCK = 1 << 20
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})
_BINARY = re.compile(
    r"""\.(?:png|jpe?g|gif|webp|ico|bmp|tiff?|svgz|woff2?|ttf|otf|eot|mp[34]|wav|ogg|webm|mov|avi
    |zip|gz|bz2|xz|zst|7z|tar|whl|jar|class|py[co]|so|dll|dylib|o|a|exe|bin|np[yz]|pkl|pt
    |safetensors|onnx|parquet|sqlite|db|xlsx|pptx|odt)""",
    re.VERBOSE,
)
"""Endings of files that are not worth opening; all others are known by their bytes."""


_CONVERTED = {
    ".html": sections_of_html, ".htm": sections_of_html, ".xhtml": sections_of_html,
    ".docx": sections_of_docx, ".ipynb": sections_of_notebook,
}  # fmt: skip
_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".qmd"})
_HEADING = re.compile(r"^#{1,6} +(\S.*)$", re.MULTILINE)


class Document(Protocol):
    """A file that can be read in passages, and asked for one of them again."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    def passages(self) -> Iterator[Passage]:
        """Read it in passages; raises `Skipped` where it cannot be read after all."""
        ...

    def parts(self, size: int) -> Iterator[str]:
        """Read its text whole, in parts of about `size` bytes; raises `Skipped`, too."""
        ...

    def read_again(self, place: int, length: int) -> str:
        """Return the text of a passage."""
        ...

    def where(self, line: int) -> str:
        """Name a place in it for a reader."""
        ...


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Read a UTF-8 file."""

    path: Path
    size: int

    def passages(self) -> Iterator[Passage]:
        """Read it in passages of bounded size."""
        line = 1
        empty = True
        heading = ""
        has_headings = self.path.suffix.lower() in _MARKDOWN
        for offset, size, text in self._blocks(_BLOCK):
            for passage in passages_of(text, offset, size, line):
                empty = False
                titles = _HEADING.findall(passage.text) if has_headings else []
                first = titles[0] if titles and passage.text.startswith("#") else heading
                yield passage._replace(heading=first.strip())
                heading = titles[-1] if titles else heading
            line += text.count("\n")
        if empty:
            raise Skipped("empty")

    def parts(self, size: int) -> Iterator[str]:
        """Read its text whole, in parts that end between paragraphs."""
        return (text for _, _, text in self._blocks(size))

    def _blocks(self, size: int) -> Iterator[tuple[int, int, str]]:
        """Read blocks: where each begins, its bytes, its text."""
        try:
            with self.path.open("rb") as file:
                for offset, data in blocks(file, size):
                    if b"\0" in data:
                        raise Skipped("binary")
                    yield offset, len(data), data.decode("utf-8")
        except UnicodeDecodeError:
            raise Skipped("not UTF-8") from None
        except OSError as error:
            raise Skipped(f"unreadable: {error.strerror}") from None

    def read_again(self, place: int, length: int) -> str:
        """Return the text at some bytes."""
        with self.path.open("rb") as file:
            file.seek(place)
            return file.read(length).decode("utf-8", "replace")

    def where(self, line: int) -> str:
        """Name a line as editors understand it."""
        return f"{self.path}:{line}"


def find_documents(
    paths: Sequence[Path], *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> tuple[list[Document], list[tuple[Path, str]]]:
    """Find the documents under paths, in order.

    Args:
        paths: Files and folders.
        include: Patterns of names or paths to take, as `*.md`; none takes all.
        exclude: Patterns to leave out.

    Returns:
        The documents, and the files that are none with the reason.

    Raises:
        Failure: A path is not there.
    """
    found: list[Document] = []
    skipped: list[tuple[Path, str]] = []
    for path in paths:
        if not path.exists():
            raise Failure(f"{path} is not there: check the name", code=SOURCE_FAILED)
        for file in _walk(path, skipped) if path.is_dir() else [path]:
            if include and not _matches(file, include):
                continue
            if _matches(file, exclude):
                continue
            try:
                found.append(_document(file))
            except Skipped as reason:
                skipped.append((file, str(reason)))
    return found, skipped


def _walk(root: Path, skipped: list[tuple[Path, str]]) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        skipped.append((Path(error.filename or root), f"unreadable: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=failed):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _is_passed_over(here / name))
        yield from (here / name for name in sorted(names) if not name.startswith("."))


def _is_passed_over(folder: Path) -> bool:
    name = folder.name
    return name.startswith(".") or name in _PASSED_OVER or (folder / "pyvenv.cfg").exists()


def _matches(path: Path, patterns: Sequence[str]) -> bool:
    whole = path.as_posix()
    return any(fnmatch(path.name, one) or fnmatch(whole, one) for one in patterns)


def _document(path: Path) -> Document:
    try:
        state = path.stat()
    except OSError as error:
        raise Skipped(f"unreadable: {error.strerror}") from None
    if not stat.S_ISREG(state.st_mode):
        raise Skipped("not a regular file")  # reading a pipe would wait for ever
    if not state.st_size:
        raise Skipped("empty")
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        from muntin.cli.documents.pdf import PdfDocument

        return PdfDocument(path, state.st_size)
    if suffix in _CONVERTED:
        return ConvertedDocument(path, state.st_size, _CONVERTED[suffix])
    if _BINARY.fullmatch(suffix):
        raise Skipped("binary")
    return TextDocument(path, state.st_size)
