"""Choose old units that come back word for word because the question speaks of them.

In a conversation without tools the question decides about everything that is not recent. Where
tools were called, only units that share a rare word with the question come back, within a bounded
share of the space: there, recent rounds matter more than a similar wording.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from muntin.conversations.approvals import is_go_ahead
from muntin.conversations.fitting.entries import entries_of, transcript_line
from muntin.conversations.recall import Newest
from muntin.conversations.recall import plan as plan_recall
from muntin.text import content_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import Unit

__all__ = ("RECALL_SHARE", "is_talk", "matching", "not_recalled", "question_of")

RECALL_SHARE = 0.1
"""Share of the space for old units that share a rare word with the question."""
_RARE, _FEW = 0.05, 2
"""Share and number of units up to which a word is rare."""
_IDENTIFIER = re.compile(r"[^\W_]+(?:[-/.:#][^\W_]+)+")
"""Words joined by a punctuation mark, as in order numbers, dates and paths."""
_LEAST_WORD, _LEAST_NUMBER = 4, 3
"""Characters of a rare word and of a rare number. A word with a digit in it may be shorter."""
_UNSPACED = "\u0e01"
"""The first character of the scripts that are compared by pairs and triples of characters."""
_ASKED = 2_000
"""Characters of a question that are read."""


def question_of(draft: Draft, plan: Plan) -> str:
    """Return what is asked: the question given, or the newest user message; "" for nothing."""
    if not isinstance(plan.question, Newest):
        return (plan.question or "")[:_ASKED]
    if draft.question is None:
        return ""
    asked = draft.views[draft.question].text
    if is_go_ahead(asked):
        asked = " ".join(draft.views[at].text for at in draft.protected.earlier)
    return asked[:_ASKED]


def is_talk(draft: Draft) -> bool:
    """Return whether no tool was called in a conversation."""
    return not draft.outline.carrying and not draft.outline.unanswered


def not_recalled(
    draft: Draft, question: str, foldable: Sequence[Unit], sizes: Sequence[int], room: int
) -> tuple[list[Unit], list[Unit]]:
    """Divide units into those that go and those that are recent or asked for."""
    texts = [
        "\n".join(transcript_line(entry) for entry in entries_of(draft, unit.indices))
        for unit in foldable
    ]
    kept = plan_recall(texts, question, max_tokens=max(room, 0), counter=draft.counter, costs=sizes)
    draft.recalled = {i for at in kept.recalled for i in foldable[at].indices}
    stays = set(kept.kept)
    return (
        [unit for at, unit in enumerate(foldable) if at not in stays],
        [unit for at, unit in enumerate(foldable) if at in stays],
    )


def matching(draft: Draft, question: str, units: Sequence[Unit]) -> list[Unit]:
    """Return the units that share a rare word with the question, best first."""
    words = [word for word in dict.fromkeys(_words_of(question)) if _may_be_rare(word)]
    if not words or not units:
        return []
    texts = [_text(draft, unit) for unit in units]
    score = [0.0] * len(units)
    for word in words:
        whole = _whole(word)
        found = [at for at, text in enumerate(texts) if word in text and whole.search(text)]
        if 0 < len(found) <= max(_FEW, _RARE * len(units)):
            for at in found:
                score[at] += math.log1p(len(units) / len(found))
    ranked = sorted((at for at in range(len(units)) if score[at]), key=lambda at: (-score[at], -at))
    return [units[at] for at in ranked]


def _words_of(question: str) -> list[str]:
    """List the words of a question, and its identifiers such as "A-3" as words of their own."""
    return [*content_words(question), *_IDENTIFIER.findall(question.casefold())]


def _may_be_rare(word: str) -> bool:
    if word[0] >= _UNSPACED:
        return True
    if word.isdigit():
        return len(word) >= _LEAST_NUMBER
    has_digit = any(character.isdigit() for character in word)
    return has_digit or len(word) >= _LEAST_WORD


def _whole(word: str) -> re.Pattern[str]:
    """Match a word as a whole; in a script without spaces anywhere."""
    escaped = re.escape(word)
    return re.compile(escaped if word[0] >= _UNSPACED else rf"(?<![^\W_]){escaped}(?![^\W_])")


def _text(draft: Draft, unit: Unit) -> str:
    parts: list[str] = []
    for index in unit.indices:
        view = draft.views[index]
        parts += [view.text, *(call.arguments for call in view.calls)]
        parts += [result.text for result in view.results]
    return "\n".join(parts).casefold()
