"""Passages of real documentation: descriptions of installed packages, docstrings of the library.

Sources are parsed, not imported, so collecting them runs no code.
"""

from __future__ import annotations

import ast
import sysconfig
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from muntin.passages import Candidate
from muntin.text import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

__all__ = ("Passages",)

_LEAST, _MOST = 120, 900
"""Characters of a passage worth having, and of one that is cut."""

_Defined = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Passages:
    """Hold documentation in passages and find those a question asks for.

    Args:
        progress: Called with the share of the work that is done, 0 to 1; `None` reports nothing.
    """

    def __init__(self, progress: Callable[[float], None] | None = None) -> None:
        found = dict(_collected(progress or (lambda _share: None)))
        self.names, self.texts = list(found), list(found.values())

    def __len__(self) -> int:
        return len(self.texts)

    def search(self, question: str, *, k: int = 40) -> list[Candidate]:
        """Return the `k` passages that match best, scored by BM25 from 0 to 1."""
        scores = bm25_scores(question, self.texts)
        best = np.argsort(-scores, kind="stable")[:k]
        top = scores[best[0]] if len(best) else 0.0
        return [
            Candidate(self.texts[at], float(scores[at] / top), source="rag", id=self.names[at])
            for at in map(int, best)
            if scores[at] > 0
        ]


def _collected(progress: Callable[[float], None]) -> Iterator[tuple[str, str]]:
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in library.glob("*.py") if not path.name.startswith("_"))
    packages = sorted(distributions(), key=lambda package: package.name.lower())
    whole = len(files) + len(packages)
    for done, package in enumerate(packages):
        progress(done / whole)
        metadata = cast("Message", package.metadata)  # its payload is the description
        for number, passage in enumerate(_passages(str(metadata.get_payload() or ""))):
            yield f"{package.name} {package.version}, part {number + 1}", passage
    for done, path in enumerate(files, len(packages)):
        progress(done / whole)
        yield from _docstrings(path)
    progress(1.0)


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_bytes())
    nodes: list[tuple[str, ast.Module | _Defined]] = [(path.stem, module)]
    for name, node in nodes:  # grows by what is defined in a module or class, not in functions
        for number, passage in enumerate(_passages(ast.get_docstring(node) or "")):
            yield f"{name}{f', part {number + 1}' if number else ''}", f"{name}: {passage}"
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = (part for part in node.body if isinstance(part, _Defined))
            nodes += [(f"{name}.{part.name}", part) for part in inside]


def _passages(text: str) -> Iterator[str]:
    """Cut a text at blank lines into passages of a useful size."""
    held = ""
    for paragraph in text.split("\n\n"):
        if held and len(held) + len(paragraph) > _MOST:
            yield held[:_MOST]
            held = ""
        held = f"{held}\n{paragraph.strip()}".strip()
    if len(held) >= _LEAST:
        yield held[:_MOST]
