"""Counters that tests measure with, among them one built to break sums of parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("COUNTERS", "characters", "superadditive", "words")

_BORDER = re.compile(r"(?<=\S)(?=\s)|(?<=\s)(?=\S)")


def characters(text: str) -> int:
    """Count characters: the strictest common counter, additive and easy to reason about."""
    return len(text)


def words(text: str) -> int:
    """Count words: joins that add no word add no token."""
    return len(text.split())


def superadditive(text: str) -> int:
    """Count so that joining two texts costs at least the sum of both, and usually more.

    Real vocabularies do this at a few borders; this one does it at nearly all of them, so that a
    ledger which adds up parts instead of counting the joined text is caught by the first example.
    """
    size = len(text)
    return size + size // 3 + len(_BORDER.findall(text))


def _rule() -> Callable[[str], int]:
    from muntin.counting.tokens import count_tokens

    return count_tokens


def _exact() -> Callable[[str], int]:
    from muntin.counting.tiktoken_counter import TiktokenCounter

    return TiktokenCounter("o200k_base")


COUNTERS: dict[str, Callable[[], Callable[[str], int]]] = {
    "characters": lambda: characters,
    "count_tokens": _rule,
    "o200k": _exact,
    "superadditive": lambda: superadditive,
}
"""Makers of the counters behind the `counter` fixture, by the name the test id shows."""
