"""A summary without a model: the sentences that cover most of what a text is about, in their order.

Every content word has a weight, large when the text comes back to it without being full of it. A
sentence is worth the weights of its words, more when it holds figures or settles something, and it
is taken by worth per token. A repeated word counts less each time, so repeats stay out and the
summary spreads over the whole text.

A statement later repeated with another amount or date is outdated and ranked last. An open channel,
where many people talk at once and address each other by name, has no gist: answers are a few lines
back, so only its newest lines are kept.

It picks sentences and lines unchanged: it invents nothing, rephrases nothing and cannot merge
two statements into one. It reads no instruction.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from muntin.counting import (
    AnyCounter,
    TokenCounter,
    checked_counter,
    checked_tokens,
    count_tokens,
    truncate_to_tokens,
)
from muntin.text import clean_text, content_words, grapheme_start, is_settling, kind_of, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ("ExtractiveSummarizer", "is_open_channel")

_SAID_AGAIN = 0.6
"""What a word is worth each further time, as a share of the time before."""
_FIGURES, _MOST_FIGURES = 0.8, 3
"""Worth of a word with digits on top of its weight, in mean weights, and how many are counted."""
_SETTLED = 0.8
"""Worth of a decision, rule or cause, in mean weights."""
_MARKED = re.compile(r"\W*[A-Z][A-Z _-]{2,30}:")
"""Words in capitals before a colon mark a note, such as TODO or DECISION."""
_ASKED = 4.0
"""How many times its weight a word of the question is worth."""
_STALE = 8
"""How many times less a statement is worth when it is repeated with other figures."""
_FRAGMENT = 8
"""Characters up to which a unit without a letter is a fragment, such as "(19)"."""
_REPEATED, _LEAST_REPEAT = 0.85, 5
"""A unit of so many words at least, of which so much was said before, repeats what was said; new
figures make it another statement."""
_STATEMENT = 4
"""Plain words a line must have to be a statement, and no row of a table."""
_PUNCTUATION = ".,;:!?()[]\"'*_`"
_DIGIT = re.compile(r"\d")
_SPEAKER = re.compile(
    r"(?:(?:user|assistant|system|tool)(?: \(([^)\n]{1,40})\))?: )?+"
    r"(?:([^:\n]{1,40}): )?+@?([^\s:,]+)"
)
"""Who speaks, by a role's name in brackets or by a name and a colon, and the first word said."""
_ROLE = re.compile(r"(?:user|assistant): (?=(?!(?i:user|assistant|system|tool)\b)[^:\n]{1,40}: )")
"""A role before the name of who speaks, which adds nothing to the name."""
_ADDRESSED, _SPEAKERS, _LINES = 0.1, 5, 20
"""An open channel: such a share of the lines begins with the name of somebody else who speaks,
and there are at least so many who speak, in so many lines."""
_ROUNDS = 3
_PIECE = 1_500
"""Characters of each of three pieces by which the cost of a text is estimated."""
_SURELY_OVER = 1.5
"""How many times the space a text is by estimate, that is not counted to see whether it fits."""
_COUNTED = 150_000
"""Characters of a text whose units are all counted. Counting more takes longer than all else."""
_NEAR = 4
"""Of a longer text, units for so many times the space are counted: the best by estimate."""
_AMPLE = 1.04
"""Units are chosen for so many times the space: joined they cost less than one by one."""
_LONGEST_LINE = 240
"""Characters of a line that stays whole; longer ones are parted into sentences."""
_LINES_AT_LEAST = 4
"""Lines a summary should have space for, or else none stays whole for being short."""
_LONGEST_UNIT = 400
"""Characters of a unit; longer sentences are parted, at white space where there is some."""
_PATIENCE = 16
"""Times a candidate is weighed again on average, which keeps the choice near n log n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveSummarizer:
    """Summarises by extraction: deterministic, no model, no network.

    An instance is a summariser wherever one is taken: called with a text and an instruction it
    returns a text. Lines and sentences are its units, in any script.

    ```python
    from muntin import ExtractiveSummarizer

    text = "Hello there. The budget is 300 euros. Nice day. We decided to ship on 12 May. Nice day."
    print(ExtractiveSummarizer(max_tokens=18)(text))
    #> The budget is 300 euros.
    #> We decided to ship on 12 May.
    ```
    """

    counter: AnyCounter = None
    """Counts the summary where the call brings no counter: a function of a text, a model, or the
    name of a model or an encoding. None takes `model`'s counter, else `count_tokens`."""
    model: object = None
    """A model or its name, in place of `counter`."""
    max_tokens: int = 1000
    """Tokens of a summary if the call gives none."""

    def __call__(
        self,
        text: str,
        instruction: str = "",  # noqa: ARG002 - extraction follows no instruction
        *,
        max_tokens: int | None = None,
        question: str | None = None,
        counter: TokenCounter | None = None,
    ) -> str:
        """Summarise a text in at most `max_tokens`, one unit a line.

        Args:
            text: What is to be summarised.
            instruction: Accepted for the interface of summarisers; not read.
            max_tokens: Tokens of the whole summary. None takes the instance's.
            question: Sentences that share words with it come first. None: no question is known.
            counter: Counts the summary. None takes the instance's.

        Returns:
            The text itself when it fits, lone surrogates replaced as everywhere. Never empty for a
            text that is not blank, unless not even one character of it fits.
        """
        count = checked_counter(counter or self.counter, model=self.model)
        limit = checked_tokens(
            self.max_tokens if max_tokens is None else max_tokens, "max_tokens", least=0
        )
        stripped = clean_text(text).strip()
        if not stripped or limit <= 0:
            return ""
        factor = _cost_per_estimate(stripped, count)
        likely = count_tokens(stripped) * factor
        if likely <= _SURELY_OVER * limit and count(stripped) <= limit:
            return stripped
        lines = stripped.splitlines()
        if not question and is_open_channel(lines):
            newest = _newest(lines, limit, count)
            if newest:
                return newest
        share = len(stripped) * limit / (_LINES_AT_LEAST * likely)
        times = _units(lines, longest_line=int(min(_LONGEST_LINE, share)))
        units = list(times)
        weighed = _Weighed(units, list(times.values()), question or "")
        near: Iterable[int] = range(len(units))
        if len(stripped) > _COUNTED:
            guessed = {at: int(count_tokens(unit) * factor) + 1 for at, unit in enumerate(units)}
            near = weighed.chosen(guessed, int(_NEAR * limit) + 1)
        costs = {at: count(units[at]) + 1 for at in near}
        order = weighed.chosen(costs, int(_AMPLE * limit) + 1)

        def joined(size: int) -> str:
            return "\n".join(units[at] for at in sorted(order[:size]))

        size = _most_that_fit([costs[at] for at in order], limit, lambda n: count(joined(n)))
        if size:
            return joined(size)
        best = units[order[0]] if order else max(units, key=len, default=stripped)
        return truncate_to_tokens(best, limit, count) or truncate_to_tokens(stripped, limit, count)


def _cost_per_estimate(text: str, count: TokenCounter) -> float:
    """Compare a counter with the estimate on three pieces: counting all is most of the work."""
    if count is count_tokens:
        return 1.0
    middle = len(text) // 2
    pieces = (text[:_PIECE], text[middle : middle + _PIECE], text[-_PIECE:])
    sample = text if len(text) <= len(pieces) * _PIECE else "\n".join(pieces)
    return max(1e-3, count(sample) / max(1, count_tokens(sample)))


def _most_that_fit(costs: Sequence[int], limit: int, cost: Callable[[int], int]) -> int:
    """Find how many units fit together, in a few counts; one by one they cost about as much."""
    expected = list(accumulate(costs))
    size = bisect_right(expected, limit)
    reached = cost(size) if size else 0
    if size:  # joined they cost a little more or less, by a factor that is known now
        size = bisect_right(expected, limit * expected[size - 1] / max(1, reached))
        reached = cost(size) if size else 0
    while size and reached > limit:
        size -= max(1, size // 32)
        reached = cost(size)
    return size


def is_open_channel(lines: Sequence[str]) -> bool:
    """Return whether many people talk at once, each naming whom they talk to.

    Args:
        lines: Lines such as `name: addressee, words` or `user: name: addressee, words`.
    """
    if len(lines) < _LINES:
        return False
    found = [match.groups() for match in map(_SPEAKER.match, lines) if match]
    speaking = [((named or name or "").casefold(), word.casefold()) for named, name, word in found]
    speakers = {name for name, _ in speaking if name}
    addressed = sum(word in speakers and word != name for name, word in speaking)
    return len(speakers) >= _SPEAKERS and addressed >= _ADDRESSED * len(lines)


def _newest(lines: Sequence[str], limit: int, count: TokenCounter) -> str:
    """Keep the newest lines that fit together, by the names of who speaks."""
    lines = [_ROLE.sub("", line, count=1) if _ROLE.match(line) else line for line in lines]
    start = len(lines)
    for _ in range(_ROUNDS):  # joined they cost less than one by one, so there is room for more
        room = limit - count("\n".join(lines[start:]))
        while start and (cost := count(lines[start - 1]) + 1) <= room:
            start -= 1
            room -= cost
    while start < len(lines) and count("\n".join(lines[start:])) > limit:
        start += max(1, (len(lines) - start) // 8)
    return "\n".join(lines[start:]).strip()


def _units(lines: Sequence[str], *, longest_line: int) -> dict[str, int]:
    """Part lines into sentences, none very long, with how often each occurs."""
    spelled: dict[tuple[str, ...], str] = {}
    times: Counter[str] = Counter()
    holds: dict[tuple[str, ...], str] = {}
    for line in lines:
        parts = [line] if len(line) <= longest_line else sentences(line)
        for unit in (unit for part in parts for unit in _parted(part.strip())):
            key = tuple(content_words(unit))
            if key and (len(unit) > _FRAGMENT or any(map(str.isalpha, unit))):
                first = spelled.setdefault(key, unit)
                times[first] += 1
                holds[_but_for_figures(first)] = first
    for unit in times:
        if holds[_but_for_figures(unit)] != unit:
            times[unit] *= _STALE
    return dict(times)


def _but_for_figures(unit: str) -> tuple[str, ...]:
    """Return a statement's words without its amounts and dates; the unit where it has none."""
    if not _DIGIT.search(unit):
        return (unit,)
    kinds = [(word, kind_of(word.strip(_PUNCTUATION))) for word in unit.split()]
    said = tuple("" if kind in ("number", "date") else word for word, kind in kinds)
    return said if "" in said and sum(map(str.isalpha, said)) >= _STATEMENT else (unit,)


def _parted(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > _LONGEST_UNIT:
        end = sentence.rfind(" ", start + _LONGEST_UNIT // 2, start + _LONGEST_UNIT)
        if end < 0:
            end = max(start + 1, grapheme_start(sentence, start + _LONGEST_UNIT))
        yield sentence[start:end].strip()
        start = end
    if sentence[start:].strip():
        yield sentence[start:].strip()


class _Weighed:
    """The units of a text with what each is worth next to others."""

    def __init__(self, units: Sequence[str], times: Sequence[int], question: str) -> None:
        self._bags = [set(content_words(unit)) for unit in units]
        self._weights = _weights(self._bags, set(content_words(question)) if question else set())
        mean = sum(self._weights.values()) / max(1, len(self._weights))
        self._extras = [
            mean * _extra(unit, bag) for unit, bag in zip(units, self._bags, strict=True)
        ]
        self._times = times

    def chosen(self, costs: Mapping[int, int], room: int) -> list[int]:
        """Choose units by worth per token, the most worthy first.

        The worth of a unit only falls while others are taken, so the best of a heap whose worth
        still stands is the best of all (Minoux 1978); only those on top are weighed again.

        Args:
            costs: Tokens of each unit that may be chosen.
            room: Tokens they may take together.
        """
        said: Counter[str] = Counter()

        def worth(at: int) -> float:
            words = sorted(self._bags[at])
            new = sum(self._weights[word] * _SAID_AGAIN ** said[word] for word in words)
            return (new + self._extras[at]) / (max(1, costs[at]) * self._times[at])

        heap = [(-worth(at), -at) for at in costs]
        heapq.heapify(heap)
        patience = _PATIENCE * len(heap)
        order: list[int] = []
        while heap:
            at = -heapq.heappop(heap)[1]
            if costs[at] > room or self._repeats(at, said):
                continue
            now = -worth(at)
            if heap and now > heap[0][0] + 1e-9 and patience > 0:
                patience -= 1
                heapq.heappush(heap, (now, -at))
                continue
            order.append(at)
            room -= costs[at]
            said.update(self._bags[at])
        return order

    def _repeats(self, at: int, said: Counter[str]) -> bool:
        """Whether a unit adds hardly any new word and no new figure."""
        bag = self._bags[at]
        if len(bag) < _LEAST_REPEAT:
            return False
        new = [word for word in bag if not said[word]]
        if any(map(_DIGIT.search, new)):
            return False
        return len(new) <= (1 - _REPEATED) * len(bag)


def _weights(bags: Sequence[set[str]], asked: set[str]) -> dict[str, float]:
    """Weigh words by how often the text comes back to them and how few units hold them."""
    found = Counter(word for bag in bags for word in bag)
    return {
        word: math.log1p(times) * math.log1p(len(bags) / times) * (_ASKED if word in asked else 1)
        for word, times in found.items()
    }


def _extra(unit: str, bag: set[str]) -> float:
    figures = sum(any(map(str.isdigit, word)) for word in bag)
    is_marked = _MARKED.match(unit) is not None
    return _FIGURES * min(_MOST_FIGURES, figures) + _SETTLED * (is_settling(unit) + is_marked)
