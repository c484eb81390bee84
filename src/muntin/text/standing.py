"""Find sentences that bind all later turns of a conversation: "from now on", "never", "always".

Three forms are recognised, each by the words of many languages. A *lasting* phrase ("from now on",
"ab jetzt", "从现在开始") is enough by itself. "Always" and "never" count only where the sentence
addresses the reader: they are near its beginning, or it contains "please", and it has no other
subject. A *guarded* prohibition ("don't ... unless I ask") counts as it is. Questions never count.

It errs on the side of missing a rule: what it finds is kept whole, so a wrong find costs tokens.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from muntin.text.boundaries import sentences
from muntin.text.standing_words import (
    ENGLISH_COMMAND,
    ENGLISH_GUARDED,
    ENGLISH_LASTING,
    ENGLISH_SIGNS,
    LANGUAGES,
    UNSPACED,
)

__all__ = ("standing_sentences",)

_LONGEST = 280
"""Characters of a sentence that is kept; of a longer one only the part from its rule on."""
_MOST_WORDS = 40
_NEAR_WORDS = 4
"""Words from the beginning within which "always" or "never" is a command."""
_MOST_TEXT = 60_000
"""Characters of a message that are read, at either end."""


class _Language(NamedTuple):
    lasting: re.Pattern[str]
    commands: re.Pattern[str]
    guarded: re.Pattern[str]
    others: re.Pattern[str]
    please: re.Pattern[str]


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ENGLISH = frozenset(ENGLISH_SIGNS.split())
_SIGNS: dict[str, tuple[int, ...]] = {
    word: tuple(at for at, one in enumerate(LANGUAGES) if word in one.signs.split())
    for one in LANGUAGES
    for word in one.signs.split()
}
"""Languages by the words that point to them: only their expressions are made and tried."""


@cache
def _language(at: int) -> _Language:
    one = LANGUAGES[at]
    return _Language(
        _whole(one.lasting),
        _whole(one.commands),
        re.compile(one.guarded),
        _whole(one.others),
        _whole(one.please),
    )


@cache
def _english() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, (rf"\b(?:{ENGLISH_LASTING})\b", ENGLISH_COMMAND, ENGLISH_GUARDED)))


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(UNSPACED)


def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)")


_SPEAKER = re.compile(r"^[^\W\d_][\w .'-]{0,40}: +")
_QUESTION = re.compile(r"[?？؟;]\W*$")
_FIRST_UNSPACED = "\u0590"
"""Hebrew, and behind it all scripts whose words are looked for as they are."""
_CAPITAL = re.compile(r"\s([A-ZÀ-ÞΑ-ΩА-ЯЇІЄ\u4e00-\u9fff])")
_MOST_STARTS = 12
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@lru_cache(maxsize=8_192)
def standing_sentences(text: str) -> tuple[str, ...]:
    """List the sentences of a message that bind all later turns, verbatim, in their order.

    ```python
    from muntin.text import standing_sentences

    print(standing_sentences("Thanks! From now on use metric units. I never liked miles."))
    #> ('From now on use metric units.',)
    print(standing_sentences("Ab jetzt bitte immer mit Quelle. Was kostet das immer?"))
    #> ('Ab jetzt bitte immer mit Quelle.',)
    ```
    """
    if len(text) > 2 * _MOST_TEXT:
        text = f"{text[:_MOST_TEXT]}\n{text[-_MOST_TEXT:]}"
    folded = _folded(text)
    # Most messages hold no sign of a rule and are not divided into sentences.
    if not _has_signs(folded):
        return ()
    found: list[str] = []
    for sentence in sentences(_FENCED.sub("\n", text)):
        said = _SPEAKER.sub("", sentence.strip())
        rule = _rule_in(said) if said else ""
        if rule:
            found.append(rule)
    return tuple(found)


def _rule_in(sentence: str) -> str:
    """Return the rule of a sentence; empty when it has none or is too long."""
    if sentence.startswith((">", "|", "{", "[", "#", "+", "- [", "//")):
        return ""
    if len(sentence) <= _LONGEST and _is_rule(_folded(sentence)):
        return sentence
    # The rule may follow a text that ends without a full stop: try where a sentence may begin.
    starts = [found.start(1) for found in _CAPITAL.finditer(sentence)]
    for start in starts[-_MOST_STARTS:]:
        rule = sentence[start:]
        if len(rule) <= _LONGEST and _is_rule(_folded(rule)):
            return rule
    return ""


def _folded(sentence: str) -> str:
    return sentence.lower().replace("\u2019", "'")


def _has_signs(folded: str) -> bool:
    said = set(_WORD.findall(folded))
    if not said.isdisjoint(_ENGLISH) or not said.isdisjoint(_SIGNS):
        return True
    return max(folded, default="") >= _FIRST_UNSPACED and _unspaced().search(folded) is not None


def _is_rule(folded: str) -> bool:
    said = _WORD.findall(folded)
    if _QUESTION.search(folded) or len(said) > _MOST_WORDS:
        return False
    words = set(said)
    if not words.isdisjoint(_ENGLISH) and any(one.search(folded) for one in _english()):
        return True
    if max(folded) >= _FIRST_UNSPACED and _unspaced().search(folded):
        return True
    near = {at for word in words if word in _SIGNS for at in _SIGNS[word]}
    return any(_binds(folded, _language(at)) for at in sorted(near))


def _binds(folded: str, language: _Language) -> bool:
    if language.lasting.search(folded):
        return True
    found = language.commands.search(folded)
    is_guarded = language.guarded.search(folded) is not None
    if not found or language.others.search(folded):
        return is_guarded
    near = len(folded[: found.start()].split()) <= _NEAR_WORDS
    return near or is_guarded or language.please.search(folded) is not None
