"""Find folded turns about the question, so that they can be sent again word for word.

```text
score(turn) = sum of rarity(w) over the content words w of the question that the turn holds,
              plus, if vectors are given, how far its cosine exceeds the mean of all turns
```

An index from words to turns is kept as messages are folded, so a question costs what it matches,
not what the conversation holds. A turn reaches from one user message to the next. Nothing is chosen
by a budget here.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from llama_index_muntin._memory.messages import is_system
from llama_index_muntin._shapes import SHAPE
from muntin.text import content_words, words

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from llama_index.core.base.llms.types import ChatMessage
    from numpy.typing import NDArray

__all__ = ("FoldedTurns", "text_of")

_COVERED = 0.1
"""Part of the rarity of a question's words that a turn has to hold; unknown words count as rare."""
_NAMED = 3
"""A word with digits in at most so many turns names something: they are about the question."""
_OF_BEST = 0.5
"""Part of the best score below which a turn is not about the question."""
_MOST = 32
"""Turns proposed at most."""
_STANDS_OUT = 2.0
"""Standard deviations by which a cosine has to exceed the mean of all turns."""
_INDEXED = 20_000
"""Characters of one message that are indexed."""


class FoldedTurns:
    """Index the folded messages of one conversation by word, turn by turn."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._turns_with: dict[str, list[int]] = {}
        self._end = 0

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()

    def follow(self, messages: Sequence[ChatMessage], folded: int) -> None:
        """Index the messages before position `folded` that are not indexed yet."""
        for at in range(self._end, folded):
            message = messages[at]
            if is_system(message):
                continue
            if not self._starts or SHAPE.view(message).role == "user":
                self._starts.append(at)
            turn = len(self._starts) - 1
            for word in set(words(text_of(message)[:_INDEXED])):
                turns = self._turns_with.setdefault(word, [])
                if not turns or turns[-1] != turn:
                    turns.append(turn)
        self._end = max(self._end, folded)

    def ranges(self) -> list[range]:
        """Return the positions of every folded turn, oldest first."""
        ends = [*self._starts[1:], self._end]
        return [range(start, end) for start, end in zip(self._starts, ends, strict=True)]

    def about(
        self,
        question: str,
        *,
        held: Collection[int] = (),
        vectors: Mapping[int, NDArray[np.float32]] | None = None,
        asked: NDArray[np.float32] | None = None,
    ) -> list[range]:
        """Return the positions of the turns about a question, best first.

        Args:
            question: The question.
            held: Positions that are sent anyway; a turn with one of them is left out.
            vectors: Unit vectors of turns by their first position; `None` uses words alone.
            asked: Unit vector of the question.
        """
        scores = self._by_words(question)
        if vectors and asked is not None:
            for turn, score in self._by_vectors(vectors, asked).items():
                scores[turn] = scores.get(turn, 0.0) + score
        turns = self.ranges()
        ranked = sorted(scores, key=lambda turn: (-scores[turn], -turn))
        free = (turns[turn] for turn in ranked)
        return [turn for turn in free if not any(at in held for at in turn)][:_MOST]

    def _by_words(self, question: str) -> dict[int, float]:
        """Score turns by the words they share with the question; the best one gets 1."""
        asked = set(content_words(question))
        rarity = {word: self._rarity(word) for word in asked}
        scores: dict[int, float] = {}
        for word in asked:
            for turn in self._turns_with.get(word, ()):
                scores[turn] = scores.get(turn, 0.0) + rarity[word]
        best = max(scores.values(), default=0.0)
        least = max(_COVERED * sum(rarity.values()), _OF_BEST * best)
        named = {turn for word in asked if _has_digit(word) for turn in self._few_with(word)}
        return {
            turn: score / best for turn, score in scores.items() if score >= least or turn in named
        }

    def _few_with(self, word: str) -> Sequence[int]:
        turns = self._turns_with.get(word, ())
        return turns if len(turns) <= _NAMED else ()

    def _rarity(self, word: str) -> float:
        count, found = len(self._starts), len(self._turns_with.get(word, ()))
        return math.log1p((count - found + 0.5) / (found + 0.5))

    def _by_vectors(
        self, vectors: Mapping[int, NDArray[np.float32]], asked: NDArray[np.float32]
    ) -> dict[int, float]:
        """Score turns by how far their cosine exceeds the mean; the best one gets 1."""
        known = [at for at in self._starts if at in vectors]
        if not known:
            return {}
        cosines = np.stack([vectors[at] for at in known]) @ asked
        over = cosines - cosines.mean()
        least = _STANDS_OUT * float(cosines.std())
        best = float(over.max())
        if best <= 0:
            return {}
        return {
            bisect_right(self._starts, at) - 1: float(value) / best
            for at, value in zip(known, over, strict=True)
            if value >= least or value == best
        }


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)


def text_of(message: ChatMessage) -> str:
    """Return the text, the calls with their arguments and the results of a message."""
    seen = SHAPE.view(message)
    calls = (f"{call.name} {call.arguments}" for call in seen.calls)
    return "\n".join([seen.text, *calls, *(result.text for result in seen.results)])
