"""Place the best sentences of several passages where the budget holds hardly one passage.

Under such a budget, sentences chosen by the words of the question hold the answer more often than
the beginning of the best passage. A window keeps the title line and the order of its sentences;
a gap is marked by "…". Code, tables and JSON are not cut into sentences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.passages.selecting.names import is_title, phrase
from muntin.text import content_words, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muntin.passages.layout import Item
    from muntin.passages.placing.draft import Draft

__all__ = ("place_windows",)

_PASSAGES = 8
"""Passages, the best first, whose sentences are compared."""

_SMALL = 1.5
"""Passages of median size that a budget must hold for whole passages to be better."""

_DECAY = 0.1
"""Worth that a sentence loses per sentence before it: first sentences name the subject."""

_LEAST_SENTENCES = 3
"""Sentences from which a passage is worth cutting."""

_NOT_PROSE = re.compile(
    r"```|^\s*[|{\[<]|\t|^(?: {4}|\s*(?:def|class|import|from|#include)\b)", re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    number: int
    """Number of the offer it belongs to."""
    position: int
    """Its position among the sentences of its passage."""
    worth: float
    """How much it is wanted."""
    tokens: int
    """Tokens of it, counted alone."""


def place_windows(draft: Draft) -> frozenset[int] | None:
    """Place windows of sentences in an empty context.

    Returns:
        The numbers of the passages that are shortened; `None` if whole passages are better.
    """
    best = list(draft.ranking.order[:_PASSAGES])
    sizes = sorted(draft.items[number].tokens for number in best)
    if not best or draft.frame.region >= _SMALL * sizes[len(sizes) // 2]:
        return None
    parts = {number: _parts(draft.items[number].candidate.content) for number in best}
    if not any(len(pieces) >= _LEAST_SENTENCES for _, pieces in parts.values()):
        return None
    chosen = _chosen(draft, parts)
    while chosen:
        items = _items(draft, parts, chosen)
        draft.place(items)
        if draft.idle >= 0:
            return frozenset(
                number
                for number, item in items.items()
                if item.candidate != draft.items[number].candidate
            )
        draft.remove(list(items))
        chosen.pop()
    return None


def _parts(content: str) -> tuple[str, list[str]]:
    """Return the title line and the sentences of a passage; one sentence where it is not prose."""
    first, _, rest = content.strip().partition("\n")
    title, body = (first, rest.lstrip()) if rest.strip() and is_title(first) else ("", content)
    pieces = [body] if _NOT_PROSE.search(body) else sentences(body)
    return title, [piece for piece in pieces if piece.strip()]


def _chosen(draft: Draft, parts: Mapping[int, tuple[str, list[str]]]) -> list[_Sentence]:
    """Choose sentences that fit by what they count alone, the best first."""
    counter = draft.rendering.counter
    opened: set[str] = set()
    used: set[int] = set()
    free = draft.idle
    chosen: list[_Sentence] = []
    for one in _ranked(draft, parts):
        source = draft.source(one.number)
        cost = one.tokens
        if one.number not in used:
            title = parts[one.number][0]
            cost += counter(draft.rendering.rendered(draft.titled(one.number, title), source))
            cost += 0 if source in opened else draft.headings[source]
        if cost <= free:
            chosen.append(one)
            used.add(one.number)
            opened.add(source)
            free -= cost
    return chosen


def _ranked(draft: Draft, parts: Mapping[int, tuple[str, list[str]]]) -> list[_Sentence]:
    asked = dict.fromkeys(phrase(" ".join(content_words(draft.ranking.question))).split())
    texts = [phrase(" ".join([title, *pieces])) for title, pieces in parts.values()]
    weights = {word: 1 / (1 + sum(f" {word} " in text for text in texts)) ** 0.5 for word in asked}
    total = sum(weights.values()) or 1.0
    found: list[_Sentence] = []
    seen: set[str] = set()
    for rank, (number, (_, pieces)) in enumerate(parts.items()):
        for position, piece in enumerate(pieces):
            text = phrase(piece)
            if text in seen:
                continue  # boilerplate is placed once
            seen.add(text)
            covered = sum(weight for word, weight in weights.items() if f" {word} " in text)
            found.append(
                _Sentence(
                    number=number,
                    position=position,
                    worth=1 - rank / len(parts) + covered / total - _DECAY * position,
                    tokens=draft.rendering.counter(piece),
                )
            )
    return sorted(found, key=lambda one: -one.worth)


def _items(
    draft: Draft, parts: Mapping[int, tuple[str, list[str]]], chosen: Iterable[_Sentence]
) -> dict[int, Item]:
    """Write the chosen sentences of each passage in their order."""
    kept: dict[int, set[int]] = {}
    for one in chosen:
        kept.setdefault(one.number, set()).add(one.position)
    items: dict[int, Item] = {}
    for number, positions in kept.items():
        title, pieces = parts[number]
        if len(positions) == len(pieces):
            items[number] = draft.items[number]
        else:
            body = _window(pieces, sorted(positions))
            items[number] = draft.with_content(number, f"{title}\n{body}" if title else body)
    return items


def _window(pieces: Sequence[str], positions: Sequence[int]) -> str:
    """Join sentences; a gap between two of them is marked."""
    text = ""
    for at, position in enumerate(positions):
        if at and position != positions[at - 1] + 1:
            text = f"{text.rstrip()} … "
        text += pieces[position]
    return text.strip()
