"""Find the passages of many documents that a question asks for, in one pass and little memory.

BM25 needs to know how rare a word is before it can score, and an index of every word of a large
folder is larger than the folder. But only the words of one question matter: of each passage that
holds one, a few numbers are kept (40 bytes, not its text), the scores are computed at the end, and
the best are read again from their files. A passage's length is taken in characters: against the
mean it measures the same as words, and passages without any of the words are not split into words.

It ranks; what gets a place is the builder's to decide.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from muntin.cli.failures import Skipped
from muntin.passages import Candidate
from muntin.text import content_words, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from muntin.cli.documents.find import Document

__all__ = ("Search",)

_K1, _B = 1.2, 0.75
_MOST = 65_535


class Search:
    """Read documents once for one question; then give the passages that answer it best.

    Args:
        question: What is asked.
    """

    def __init__(self, question: str) -> None:
        self.wanted = tuple(dict.fromkeys(content_words(question)))
        self.files = 0
        """Documents that were read."""
        self.passages = 0
        """Passages they have."""
        self.skipped: list[tuple[Path, str]] = []
        """Files that could not be read after all, with the reason."""
        self._documents: list[Document] = []
        self._characters = 0
        # One entry a matching passage; `_times` has one a word of the question.
        self._owners, self._lines = array("L"), array("L")
        self._places, self._lengths, self._sizes = array("Q"), array("L"), array("L")
        self._times = array("H")
        self._headings: list[str] = []

    def read(
        self, documents: Sequence[Document], advance: Callable[[int], None] = lambda _bytes: None
    ) -> None:
        """Read documents, telling of the bytes that are done."""
        for document in documents:
            before = self.passages, self._characters, len(self._owners)
            try:
                self._read(document)
            except Skipped as reason:
                # Found out half-way, perhaps: what was taken of it is taken back.
                self._go_back(*before)
                self.skipped.append((document.path, str(reason)))
            else:
                self.files += 1
            advance(document.size)

    def _read(self, document: Document) -> None:
        owner = len(self._documents)
        self._documents.append(document)
        named = Counter(word for word in words(document.path.name) if word in self.wanted)
        wanted = frozenset(self.wanted)
        for text, place, length, line, heading in document.passages():
            self.passages += 1
            self._characters += len(text)
            folded = text.casefold()
            if not any(word in folded for word in self.wanted):
                continue
            found = Counter(filter(wanted.__contains__, words(text)))
            if not found:
                continue
            found.update(named)
            self._owners.append(owner)
            self._places.append(place)
            self._lengths.append(length)
            self._lines.append(line)
            self._sizes.append(len(text))
            self._headings.append(heading)
            self._times.extend(min(found[word], _MOST) for word in self.wanted)

    def _go_back(self, passages: int, characters: int, matching: int) -> None:
        self.passages, self._characters = passages, characters
        for column in (self._owners, self._lines, self._places, self._lengths, self._sizes):
            del column[matching:]
        del self._headings[matching:]
        del self._times[matching * len(self.wanted) :]

    def scores(self) -> NDArray[np.float64]:
        """Score every passage that holds a word of the question, in the order they were read."""
        times = np.array(self._times, dtype=np.float64).reshape(-1, max(1, len(self.wanted)))
        if not len(times):
            return np.zeros(0)
        mean = self._characters / self.passages
        norm = _K1 * (1 - _B + _B * np.array(self._sizes, dtype=np.float64) / mean)
        scores = np.zeros(len(times))
        for column in times.T:
            holds = int(np.count_nonzero(column))
            rarity = math.log1p((self.passages - holds + 0.5) / (holds + 0.5))
            scores += rarity * column * (_K1 + 1) / (column + norm)
        return scores

    def best(self, k: int) -> list[Candidate]:
        """Read the `k` best passages again, best first, with scores from 0 to 1."""
        scores = self.scores()
        order = np.argsort(-scores, kind="stable")[:k]
        found: list[Candidate] = []
        for at in map(int, order):
            document = self._documents[self._owners[at]]
            where = document.where(self._lines[at])
            text = document.read_again(self._places[at], self._lengths[at])
            score = float(scores[at] / scores[order[0]])
            heading = self._headings[at]
            if heading and heading not in text.split("\n", 1)[0]:
                where = f"{where} ({heading})"
            known = {"source": str(document.path), **({"heading": heading} if heading else {})}
            found.append(
                Candidate(f"{where}: {text}", score, source="rag", id=where, metadata=known)
            )
        return found
