"""Whether two texts that are almost the same differ in a number.

Two invoices of one form share nearly all of their words, and yet neither repeats the other: what
the reader looks for is the number. So a number, or a word with a digit in it, between
shared words in the one text, where the other has another, makes two texts of them.

Numbers before the first or behind the last shared run do not: windows of one document overlap, and
each has its own ends. Nor does a number that has no counterpart, which a rewording may add.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Numerals",)

_DIGIT = re.compile(r"\d")
_RUN = 3
"""Words that must follow each other in both texts to count as shared."""

_PATIENCE = 8
"""Comparisons in which a text may prove different; then it is one of a form, and distinct."""


class Numerals:
    """Distinguish texts by their numbers; each text is cut into words once, when it is asked for.

    ```python
    from muntin.passages.selecting.numerals import Numerals

    texts = [
        "the total of order 17 is 40 euros",
        "the total of order 18 is 40 euros",
        "the total of order seventeen is 40 euros",
    ]
    numerals = Numerals(texts)
    print(numerals.differ(0, 1), numerals.differ(0, 2))
    #> True False
    ```
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._words: dict[int, tuple[list[str], frozenset[str], frozenset[str]]] = {}
        self._proved = [0] * len(texts)

    def differ(self, index: int, other: int) -> bool:
        """Return whether each text has a number amid shared words that the other has nowhere.

        After eight texts from which `other` differs it is not looked at again, and differs.
        """
        if self._proved[other] >= _PATIENCE:
            return True
        (first, in_first, numbers), (second, in_second, others) = self._cut(index), self._cut(other)
        own, others = numbers - in_second, others - in_first
        if not own or not others:
            return False
        shared = set(_runs(first)).intersection(_runs(second))
        found = _stand_amid(first, own, shared) and _stand_amid(second, others, shared)
        self._proved[other] += found
        return found

    def _cut(self, index: int) -> tuple[list[str], frozenset[str], frozenset[str]]:
        known = self._words.get(index)
        if known is None:
            found = words(self._texts[index])
            distinct = frozenset(found)
            numbers = frozenset(filter(_DIGIT.search, distinct))
            known = self._words[index] = (found, distinct, numbers)
        return known


def _runs(found: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(found[at:] for at in range(_RUN)), strict=False))


def _stand_amid(
    found: Sequence[str], numbers: frozenset[str], shared: set[tuple[str, ...]]
) -> bool:
    places = [at for at, run in enumerate(_runs(found)) if run in shared]
    return bool(places) and not numbers.isdisjoint(found[places[0] : places[-1]])
