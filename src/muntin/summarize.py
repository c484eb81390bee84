"""A summary without a model: the sentences that carry most, in their order.

It picks sentences and lines of the text itself, so it invents nothing. It does not rephrase.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from muntin.lexical import words
from muntin.tokens import TokenCounter, count_tokens

__all__ = ("ExtractiveSummarizer",)

_UNIT = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveSummarizer:
    """Summarises by extraction: deterministic, no model, no network.

    An instance is a summariser as `HistoryCompactor` and `fit_messages` take it: called with a
    text and an instruction it returns a text. The instruction is not read.
    """

    counter: TokenCounter = count_tokens
    """Counts the summary where the call brings no counter."""
    max_tokens: int = 1000
    """Tokens of a summary where the call does not say."""

    def __call__(
        self,
        text: str,
        instruction: str = "",  # noqa: ARG002 - extraction follows no instruction
        *,
        max_tokens: int | None = None,
        question: str | None = None,
        counter: TokenCounter | None = None,
    ) -> str:
        """Summarise a text in at most `max_tokens`.

        Args:
            text: What is to be summarised; lines and sentences are its units.
            instruction: Accepted so that any summariser may stand here; not read.
            max_tokens: Tokens of the whole summary. None takes the instance's.
            question: Sentences that share words with it come first. None: no question is known.
            counter: Counts the summary. None takes the instance's.
        """
        count = counter or self.counter
        limit = self.max_tokens if max_tokens is None else max_tokens
        units = list(dict.fromkeys(u.strip() for u in _UNIT.split(text) if u and u.strip()))
        asked = set(words(question or ""))
        bags = [set(words(unit)) for unit in units]
        seen = Counter(word for bag in bags for word in bag)

        def score(at: int) -> float:
            bag = bags[at]
            rare = sum(math.log1p(len(units) / seen[word]) for word in bag) / (3 + len(bag)) ** 0.7
            digits = sum(any(c.isdigit() for c in word) for word in bag)
            return rare + 0.8 * min(3, digits) + 3 * len(bag & asked)

        order = sorted(range(len(units)), key=lambda at: -score(at))
        low, high = 0, len(order)
        while low < high:
            middle = (low + high + 1) // 2
            if count("\n".join(units[at] for at in sorted(order[:middle]))) <= limit:
                low = middle
            else:
                high = middle - 1
        return "\n".join(units[at] for at in sorted(order[:low]))
