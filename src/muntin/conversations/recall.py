"""Which turns of a long conversation stay verbatim when not all of them fit.

A kept tail serves chat, where an answer is a few turns back and shares no word with the
question. Selection by the question serves meetings and long projects, where it may be anywhere.
Neither share is a setting here: every turn gets one value, and the budget goes to the best.

```text
value = (match + 7 * surroundings * substance + 2.5 * latest) * (1 + nearness / 2)

match         BM25 of the turn against the question, over what a turn with all its words would get;
              words that are frequent around the best turns join the question with a fifth of weight
surroundings  the match of the turns around it, a quarter of it 8 turns away, a ninth 16 turns away:
              people answer over many turns, and most of them do not repeat the question's words
latest        each word of the question favours its newest mentions, 0.6 times less for each newer
              one: the latest statement about a thing is the valid one
nearness      1 at the end of the conversation, 1/2 a quarter of the budget earlier, and so on
substance     1 for a turn of 4 content words or more, less for fewer: "Mm-hmm." answers nothing,
              wherever it stands
```

Where nothing matches, all values are 0 and newer goes first: what is left is a tail. How these
numbers were found and their results are in `docs/decisions/0011-recall.md`. Nothing is
summarised and nothing is rendered here: indices come out.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from muntin.counting import TokenCounter, count_tokens
from muntin.text import content_words, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ("NEWEST", "Newest", "RecallPlan", "plan", "recall")

_K1, _B = 0.5, 0.2
"""BM25: turns saturate sooner than documents do, and a long turn is not a fault."""
_SURROUNDINGS, _REACH, _FARTHEST = 7.0, 8, 32
_LATEST, _LATEST_DECAY = 2.5, 0.6
_NEARNESS, _NEAR_SHARE = 0.5, 0.25
_FEEDBACK_TURNS, _FEEDBACK_WORDS, _FEEDBACK = 8, 12, 0.2
_FEEDBACK_COMMON = 0.15
"""Words in more than this share of the turns distinguish none of them."""
_SUBSTANCE = 4
"""Content words from which on what surrounds a turn speaks for it in full."""
_ASKING = frozenset(
    {
        *("summarize", "summarise", "summary", "discuss", "discussed", "discussing", "discussion"),
        *("discussions", "describe", "explain"),
    }
)
"""Words about the form of an answer, not its subject."""
_TAIL_SHARE = 1 / 20
"""Share of the budget that goes to the newest turns before anything is weighed."""


class Newest(Enum):
    """The newest user message, as the value of `question`."""

    MESSAGE = "newest user message"


NEWEST: Final = Newest.MESSAGE
"""The question is the newest user message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPlan:
    """Which turns stay verbatim, as indices into the turns given."""

    recalled: tuple[int, ...]
    """Turns before the tail that stay, ascending; all are below `tail_start`."""
    tail_start: int
    """First turn of the unbroken tail; the number of turns when there is no tail."""
    tokens: int
    """Tokens of all that is kept, by the costs or the counter given."""
    turns: int
    """How many turns there were."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Every index kept, ascending."""
        return (*self.recalled, *range(self.tail_start, self.turns))


def plan(
    texts: Sequence[str],
    question: str | None,
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    costs: Sequence[int] | None = None,
) -> RecallPlan:
    """Choose the tail and the older turns that stay verbatim within a budget.

    Deterministic, and linear in the text but for one sort of the turns. The tokens kept are a sum
    of costs: who joins the turns with a counter that is not additive counts once more.

    Args:
        texts: The turns, oldest first, each as the model will read it: a speaker's name in it is
            matched like any other word. A unit of several messages may be one turn.
        question: What is asked now. None keeps the longest tail that fits, and nothing else.
        max_tokens: Tokens all kept turns may take together, by `costs` or `counter`.
        counter: Counts a turn that is not in `costs`.
        costs: Tokens of each turn, framing included. None counts every text with `counter`.

    ```python
    from muntin.conversations.recall import plan

    turns = ["the budget is 300", "lunch at noon?", "yes", "who takes notes?", "me"]
    print(plan(turns, "what was our budget?", max_tokens=7).kept)
    #> (0, 2, 4)
    print(plan(turns, None, max_tokens=7).kept)
    #> (2, 3, 4)
    ```
    """
    sizes = [counter(text) for text in texts] if costs is None else list(costs)
    tail_tokens = max_tokens if question is None else int(max_tokens * _TAIL_SHARE)
    start = _tail_start(sizes, tail_tokens)
    if question is not None and start == len(sizes):
        start = _tail_start(sizes[-1:], max_tokens) + max(0, len(sizes) - 1)
    if question is None:
        return _planned([], start, sizes)
    left = max_tokens - sum(sizes[start:])
    older = _best(_values(texts, question, sizes, max_tokens)[:start], sizes, left)
    while older and older[-1] == start - 1:
        start = older.pop()
    return _planned(older, start, sizes)


def recall(
    texts: Sequence[str],
    question: str,
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    costs: Sequence[int] | None = None,
) -> list[int]:
    """Choose turns to keep verbatim by the question alone, ascending.

    The same values as in `plan`, with no tail set apart: for older turns next to a tail somebody
    else keeps. Arguments are those of `plan`; turns that do not fit are passed over.
    """
    sizes = [counter(text) for text in texts] if costs is None else list(costs)
    return _best(_values(texts, question, sizes, max_tokens), sizes, max_tokens)


def _planned(recalled: list[int], start: int, sizes: Sequence[int]) -> RecallPlan:
    tokens = sum(sizes[start:]) + sum(sizes[at] for at in recalled)
    return RecallPlan(recalled=tuple(recalled), tail_start=start, tokens=tokens, turns=len(sizes))


def _tail_start(sizes: Sequence[int], room: int) -> int:
    start = len(sizes)
    while start and sizes[start - 1] <= room:
        start -= 1
        room -= sizes[start]
    return start


def _best(values: NDArray[np.float64], sizes: Sequence[int], room: int) -> list[int]:
    """Take turns by value, newer ones first among equals, as long as they fit."""
    newest_first: list[int] = np.argsort(-values[::-1], kind="stable").tolist()
    chosen: list[int] = []
    left = room
    for back in newest_first:
        at = len(values) - 1 - back
        if sizes[at] <= left:
            chosen.append(at)
            left -= sizes[at]
    return sorted(chosen)


def _values(
    texts: Sequence[str], question: str, sizes: Sequence[int], max_tokens: int
) -> NDArray[np.float64]:
    """Return the worth of each turn for the question; see the formula above."""
    turns = [words(text) for text in texts]
    asked = _asked(question)
    table = _Postings(turns)
    match = table.match(asked)
    latest = table.latest(asked)
    ranked = np.argsort(-(match + _SURROUNDINGS * _around(match)), kind="stable")
    best = [at for at in ranked[:_FEEDBACK_TURNS].tolist() if match[at] > 0]
    match = match + _FEEDBACK * table.match(table.typical_of(best, without=asked))
    tokens = np.asarray(sizes, dtype=np.float64)
    age = np.cumsum(tokens[::-1])[::-1] - tokens
    nearness = 1 / (1 + age / max(1.0, _NEAR_SHARE * max_tokens))
    surroundings = _around(match) * table.substance()
    value = match + _SURROUNDINGS * surroundings + _LATEST * latest
    return np.round(value * (1 + _NEARNESS * nearness), 12)


def _asked(question: str) -> list[str]:
    """List the words a question is about, each once; all of them if it only asks."""
    found = list(dict.fromkeys(content_words(question)))
    return [word for word in found if word not in _ASKING] or found


def _around(match: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the matches of the turns around each, without its own."""
    if not len(match):
        return match
    distance = np.abs(np.arange(-_FARTHEST, _FARTHEST + 1))
    weights = np.where(distance > 0, (1 + distance / _REACH) ** -2, 0.0)
    spread = np.convolve(match, weights / weights.sum()).astype(np.float64)
    return spread[_FARTHEST : _FARTHEST + len(match)]


class _Postings:
    """The turns and positions of each word of a conversation."""

    def __init__(self, turns: Sequence[Sequence[str]]) -> None:
        self._bags = [Counter(turn) for turn in turns]
        self._turns_with = Counter(word for bag in self._bags for word in bag)
        lengths = np.fromiter((len(turn) for turn in turns), dtype=np.float64, count=len(turns))
        mean = max(1.0, float(lengths.mean())) if len(turns) else 1.0
        self._saturation = _K1 * (1 - _B + _B * lengths / mean)

    def _rarity(self, word: str) -> float:
        count, found = len(self._bags), self._turns_with[word]
        return math.log1p((count - found + 0.5) / (found + 0.5))

    def _weights(self, asked: Iterable[str]) -> dict[str, float]:
        """Weigh the words that occur at all, adding up to 1."""
        rarity = {word: self._rarity(word) for word in asked if self._turns_with[word]}
        total = sum(rarity.values())
        return {word: value / total for word, value in rarity.items()}

    def match(self, asked: Sequence[str]) -> NDArray[np.float64]:
        """BM25 of each turn, over the rarities of the words that occur."""
        scores = np.zeros(len(self._bags))
        weights = self._weights(asked)
        for at, bag in enumerate(self._bags):
            for word in weights.keys() & bag.keys():
                times = bag[word]
                scores[at] += weights[word] * times * (_K1 + 1) / (times + self._saturation[at])
        return scores

    def latest(self, asked: Sequence[str]) -> NDArray[np.float64]:
        """Favour the newest mentions of each word, by its weight."""
        scores = np.zeros(len(self._bags))
        left = self._weights(asked)
        for at in range(len(self._bags) - 1, -1, -1):
            for word in left.keys() & self._bags[at].keys():
                scores[at] += left[word]
                left[word] *= _LATEST_DECAY
        return scores

    def substance(self) -> NDArray[np.float64]:
        """Return how much content each turn has, between 0 and 1."""
        telling = set(content_words(" ".join(self._turns_with)))
        content = (sum(map(telling.__contains__, bag)) for bag in self._bags)
        counts = np.fromiter(content, dtype=np.float64, count=len(self._bags))
        return np.minimum(1.0, counts / _SUBSTANCE)

    def typical_of(self, chosen: Sequence[int], *, without: Sequence[str]) -> list[str]:
        """Name the words that occur in several of these turns and are rare elsewhere."""
        inside = Counter(word for at in chosen for word in self._bags[at])
        common = _FEEDBACK_COMMON * len(self._bags)
        worth = {
            word: times * self._rarity(word)
            for word, times in inside.items()
            if times > 1 and self._turns_with[word] < common and word not in without
        }
        telling = set(content_words(" ".join(worth)))
        ranked = sorted(telling & worth.keys(), key=lambda word: (-worth[word], word))
        return ranked[:_FEEDBACK_WORDS]
