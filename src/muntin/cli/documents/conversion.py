"""Turn HTML pages, Word files and notebooks into sections under headings.

HTML is read with beautifulsoup4 and Word files with python-docx, both of the extra `documents`.
Pictures, scripts and navigation are left out.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from muntin.cli.documents.converted import Section
from muntin.cli.failures import Skipped

__all__ = ("sections_of_docx", "sections_of_html", "sections_of_notebook")

_EXTRA = 'pip install "muntin[documents]" to read it'
_LEFT_OUT = ("script", "style", "nav", "template", "noscript", "svg", "form", "iframe")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = (*_HEADINGS, "p", "li", "pre", "td", "th", "tr", "dt", "dd", "blockquote", "figcaption",
           "div", "section", "article", "table", "ul", "ol", "br")  # fmt: skip
_OUTPUT = 2_000
"""Characters of one output of a notebook cell that are read."""


def sections_of_html(path: Path) -> list[Section]:
    """Read an HTML page: text under its headings.

    Raises:
        Skipped: beautifulsoup4 is not installed, or the file cannot be read.
    """
    try:
        from bs4 import BeautifulSoup
    except ModuleNotFoundError:
        raise Skipped(f"an HTML page: {_EXTRA}") from None
    try:
        # Bytes, because a page says itself how it is encoded.
        page: Any = BeautifulSoup(path.read_bytes(), "html.parser")
    except (OSError, RecursionError) as error:
        raise Skipped(f"an HTML page that cannot be read: {error}") from None
    for unwanted in page.find_all(_LEFT_OUT):
        unwanted.decompose()
    for block in page.find_all(_BLOCKS):
        mark = "#" * int(block.name[1]) + " " if block.name in _HEADINGS else ""
        block.insert_before("\n")
        block.insert(0, mark)
        block.append("\n" if block.name in ("td", "th", "li", "br") else "\n\n")
    text = re.sub(r"[ \t\xa0]+", " ", page.get_text())
    lines = (line.strip() for line in text.split("\n"))
    return _under_headings("\n".join(lines))


def _under_headings(text: str) -> list[Section]:
    """Divide a text at lines that are Markdown headings."""
    sections: list[Section] = []
    heading = ""
    held: list[str] = []
    for line in [*text.split("\n"), None]:
        found = None if line is None else re.match(r"#{1,6} +(\S.*)", line)
        if line is not None and found is None:
            held.append(line)
            continue
        whole = re.sub(r"\n{3,}", "\n\n", "\n".join(held)).strip()
        if whole:
            sections.append(Section(whole, heading))
        if line is not None and found is not None:
            heading, held = found[1].strip(), [line]
    return sections


def sections_of_docx(path: Path) -> list[Section]:
    """Read a Word file: paragraphs and tables under its headings.

    Raises:
        Skipped: python-docx is not installed, or the file cannot be read.
    """
    try:
        import docx
        from docx.opc.exceptions import PackageNotFoundError
    except ModuleNotFoundError:
        raise Skipped(f"a Word file: {_EXTRA}") from None
    try:
        document = docx.Document(str(path))
        blocks = list(_docx_blocks(document))
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise Skipped(f"a Word file that cannot be read: {error}") from None
    return _under_headings("\n\n".join(blocks))


def _docx_blocks(document: Any) -> Iterable[str]:
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            rows = [" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows]
            yield "\n".join(rows)
            continue
        text = str(block.text).strip()
        style = str(getattr(block.style, "name", "") or "")
        level = re.fullmatch(r"(?:Heading (\d)|Title)", style)
        if text and level is not None:
            yield f"{'#' * int(level[1] or 1)} {text}"
        elif text:
            yield text


def sections_of_notebook(path: Path) -> list[Section]:
    """Read a Jupyter notebook: a section for every cell, with its textual output.

    Raises:
        Skipped: The file cannot be read or is not a notebook.
    """
    try:
        value: Any = json.loads(path.read_text("utf-8"))
        cells = cast("list[dict[str, Any]]", value["cells"])
        sections: list[Section] = []
        heading = ""
        for number, cell in enumerate(cells, start=1):
            text = _joined(cell.get("source"))
            if cell.get("cell_type") == "markdown":
                titles = re.findall(r"^#{1,6} +(\S.*)$", text, re.MULTILINE)
                heading = titles[-1].strip() if titles else heading
            outputs = [_output(one) for one in cell.get("outputs") or ()]
            whole = "\n\n".join(part for part in (text.strip(), *outputs) if part)
            if whole:
                sections.append(Section(whole, heading, f"cell {number}"))
    except OSError as error:
        raise Skipped(f"unreadable: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Skipped("a notebook that cannot be read") from None
    return sections


def _joined(source: Any) -> str:
    """Return a text that a notebook keeps whole or as a list of lines."""
    return source if isinstance(source, str) else "".join(cast("list[str]", source or []))


def _output(output: dict[str, Any]) -> str:
    """Return the text of an output; nothing for pictures and other data."""
    text: Any = output.get("text")
    data = cast("dict[str, Any]", output.get("data") or {})
    if any(kind.startswith("image/") for kind in data):
        return ""  # beside a picture only its address in memory is printed
    if text is None:
        text = data.get("text/plain")
    if output.get("output_type") == "error":
        text = f"{output.get('ename')}: {output.get('evalue')}"
    return _joined(text)[:_OUTPUT].strip()
