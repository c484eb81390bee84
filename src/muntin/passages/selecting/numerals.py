"""Find out whether two texts that are almost the same differ in a number.

Texts that differ only in a number (two invoices) are not duplicates. Two texts differ if each has a
number, or a word with a digit, between shared words, and the other text does not have it.

Numbers before the first or after the last shared run do not count: overlapping windows of one
document have different ends. A number that only one text has does not count either: a rewording may
add one.
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
"""After this many comparisons that found a different number, a text counts as text of a form and is
no longer compared."""


class Numerals:
    """Distinguish texts by their numbers; a text is cut into words when it is first compared.

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
        """Return whether each text has a number between shared words that the other does not have.

        After eight texts that differ from `other`, it counts as different without a comparison.
        """
        if self._proved[other] >= _PATIENCE:
            return True
        (first, in_first, numbers), (second, in_second, others) = self._cut(index), self._cut(other)
        own, others = numbers - in_second, others - in_first
        if not own or not others:
            return False
        shared = set(_runs(first)).intersection(_runs(second))
        found = _are_between(first, own, shared) and _are_between(second, others, shared)
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


def _are_between(
    found: Sequence[str], numbers: frozenset[str], shared: set[tuple[str, ...]]
) -> bool:
    places = [at for at, run in enumerate(_runs(found)) if run in shared]
    return bool(places) and not numbers.isdisjoint(found[places[0] : places[-1]])
