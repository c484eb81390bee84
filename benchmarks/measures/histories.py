"""What is left of the evidence when a long conversation is cut? Real meetings and chats.

A compactor takes turns, a budget and the question (None if it is not known yet), and returns
messages. A turn of the evidence is left when 80 % of its three-word runs are in the output; turns
of fewer than four words are not counted. For meetings the words of the answer are counted that are
in the evidence.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks._data import json_lines
from benchmarks.measures.tokens import (
    PER_MESSAGE,
    STOP_WORDS,
    Message,
    count,
    mean,
    messages_tokens,
    texts_tokens,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Compactor: TypeAlias = "Callable[[list[Turn], int, str | None], list[Message]]"

__all__ = (
    "Case",
    "Score",
    "Turn",
    "bm25",
    "cases",
    "frequent_sentences",
    "half_newest",
    "newest",
    "random_turns",
    "rendered",
    "score",
)

Turn = dict[str, Any]
"""`role`, `speaker`, `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A conversation up to where a question is asked, with a budget."""

    conversation: str
    kind: str
    """`meeting` or `irc`."""
    turns: list[Turn]
    question: str
    answer: str | None
    evidence: tuple[int, ...]
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What an output keeps."""

    conversation: str
    kind: str
    budget: int
    turns: float | None
    words: float | None
    held: bool


def rendered(turn: Turn) -> str:
    """Return a turn with its speaker."""
    return f"{turn['speaker']}: {turn['text']}"


@lru_cache(maxsize=4)
def cases(budgets: tuple[int, ...], questions: int) -> tuple[Case, ...]:
    """Return the cases in which something has to go, with up to so many questions each."""
    return tuple(_cases(budgets, questions))


def _cases(budgets: Sequence[int], questions: int) -> Iterator[Case]:
    for record in json_lines("conversations.dev.jsonl.gz"):
        kind, asked = record["kind"].partition(":")[0], record["queries"]
        step = max(1, len(asked) // questions) if kind == "irc" else 1
        for query in asked[::step][:questions]:
            turns = record["turns"][: query["at"]]
            total = sum(count(rendered(turn)) for turn in turns)
            for budget in budgets:
                if total > 1.2 * budget:
                    yield Case(
                        conversation=record["id"],
                        kind=kind,
                        turns=turns,
                        question=query["question"],
                        answer=query.get("answer"),
                        evidence=tuple(query["evidence"]),
                        budget=budget,
                    )


def score(case: Case, compact: Compactor, *, known: bool) -> Score:
    """Compact a case and score the output."""
    output = compact(case.turns, case.budget, case.question if known else None)
    text = "\n".join(message["content"] for message in output)
    there, runs = set(words(text)), _runs(text)
    long = [case.turns[at]["text"] for at in case.evidence]
    long = [one for one in long if len(words(one)) >= 4]
    return Score(
        conversation=case.conversation,
        kind=case.kind,
        budget=case.budget,
        turns=mean(_is_left(one, runs) for one in long) if long else None,
        words=_words_left(case, there),
        held=min(messages_tokens(output), texts_tokens(output)) <= case.budget,
    )


def _runs(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return set(zip(found, found[1:], found[2:], strict=False))


def _is_left(text: str, runs: set[tuple[str, ...]]) -> float:
    own = _runs(text)
    return float(len(own & runs) >= 0.8 * len(own))


def _words_left(case: Case, there: set[str]) -> float | None:
    evidence = [case.turns[at] for at in case.evidence]
    told = set(words(" ".join(f"{turn['text']} {turn['speaker']}" for turn in evidence)))
    asked = {one for one in words(case.answer or "") if len(one) > 3}
    wanted = (asked - STOP_WORDS) & told
    return len(wanted & there) / len(wanted) if wanted else None


# --- simple ways to compare with -----------------------------------------------------------------


def newest(turns: list[Turn], budget: int, _question: str | None) -> list[Message]:
    """Keep the newest turns, as trimmers do."""
    kept: list[Message] = []
    for turn in reversed(turns):
        budget -= PER_MESSAGE + count(rendered(turn))
        if budget < 0:
            break
        kept.append({"role": turn["role"], "content": rendered(turn)})
    return kept[::-1]


def random_turns(turns: list[Turn], budget: int, _question: str | None) -> list[Message]:
    """Keep turns drawn by lot, in order."""
    order = list(range(len(turns)))
    random.Random(len(turns) * 7 + budget).shuffle(order)
    return _joined(turns, _within(turns, order, budget, PER_MESSAGE))


def half_newest(turns: list[Turn], budget: int, question: str | None) -> list[Message]:
    """Keep newest turns in one half; turns by BM25, or frequent sentences, in the other."""
    tail = newest(turns, budget // 2, None)
    old = turns[: len(turns) - len(tail)]
    left = budget - messages_tokens(tail) - 2 * PER_MESSAGE
    if question is None:
        text = frequent_sentences("\n".join(map(rendered, old)), left)
    else:
        worth = bm25(old, question)
        order = sorted((at for at in range(len(old)) if worth[at]), key=lambda at: -worth[at])
        text = "\n".join(rendered(old[at]) for at in _within(old, order, left, 1))
    return [{"role": "system", "content": text}, *tail] if text else tail


def _within(turns: list[Turn], order: Sequence[int], budget: int, extra: int) -> list[int]:
    chosen: list[int] = []
    for at in order:
        tokens = count(rendered(turns[at])) + extra
        if tokens <= budget:
            budget -= tokens
            chosen.append(at)
    return sorted(chosen)


def _joined(turns: list[Turn], chosen: Sequence[int]) -> list[Message]:
    return [{"role": turns[at]["role"], "content": rendered(turns[at])} for at in chosen]


def bm25(turns: Sequence[Turn], question: str) -> list[float]:
    """Return the BM25 score (k1 1.2, b .75) of every turn, with half of its best neighbour's."""
    documents = [Counter(words(turn["text"])) for turn in turns]
    lengths = [document.total() for document in documents]
    average = sum(lengths) / max(1, len(lengths))
    asked = set(words(question)) - STOP_WORDS
    holding = {word: sum(word in document for document in documents) for word in asked}
    own: list[float] = []
    for document, length in zip(documents, lengths, strict=True):
        total = 0.0
        for word in asked & document.keys():
            rarity = math.log(1 + (len(turns) - holding[word] + 0.5) / (holding[word] + 0.5))
            times = document[word]
            total += rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average))
        own.append(total)
    around = [0.0, *own, 0.0]
    return [own[at] + max(around[at], around[at + 2]) / 2 for at in range(len(own))]


def frequent_sentences(text: str, budget: int) -> str:
    """Return the sentences with the most frequent words, in order: the textbook extract."""
    parts = re.split(r"\n+|(?<=[.!?])\s+", text)
    units = [part.strip() for part in parts if part.strip()]
    told = [
        {word for word in words(unit) if len(word) > 2 and word not in STOP_WORDS} for unit in units
    ]
    often = Counter(word for one in told for word in one)
    worth = [
        sum(math.log(1 + often[word]) for word in one) / math.sqrt(1 + len(one)) for one in told
    ]
    chosen: list[int] = []
    for at in sorted(range(len(units)), key=lambda at: -worth[at]):
        tokens = count(units[at]) + 1
        if tokens <= budget:
            budget -= tokens
            chosen.append(at)
    return "\n".join(units[at] for at in sorted(chosen))
