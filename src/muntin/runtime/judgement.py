"""Decide whether a summary may replace what it was made from.

A reply is refused when it has no content, repeats its input, is longer than its input or than twice
what was asked for, or holds what its input does not: an id, a date or a figure that is nowhere in
it, further lines of the record, or another subject. Every entry point that takes a summariser
asks here, so a reply has the same fate everywhere. Nothing is requested and nothing is cut here.

Numbers of one or two digits alone are not checked: summaries count ("three of 12 orders").
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal, TypeAlias

from muntin.prompts import PromptRegistry
from muntin.text import clean_text, content_words, kind_of, values_in, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("SUMMARY_FAULTS", "SummaryFault", "bare_summary", "fault_of", "has_content")

SummaryFault: TypeAlias = Literal[
    "summary_failed",
    "summary_late",
    "summary_no_room",
    "summary_empty",
    "summary_cut",
    "summary_echoed",
    "summary_grew",
    "summary_too_long",
    "summary_carried_on",
    "summary_invented",
    "summary_unrelated",
]
"""Why a summary is not used.

* `summary_failed`: the summariser raised.
* `summary_late`: it gave no answer in time.
* `summary_no_room`: no useful request fits its window.
* `summary_empty`: it returned nothing, white space, invisible characters or punctuation.
* `summary_cut`: it ends inside its own label or inside the name of a speaker.
* `summary_echoed`: it repeats what it was given.
* `summary_grew`: it is not shorter than its input.
* `summary_too_long`: it is more than twice as long as was asked for.
* `summary_carried_on`: it goes on with the record (`user: ...`) instead of summarising it.
* `summary_invented`: it holds an id, a date or a figure that is not in what it was given.
* `summary_unrelated`: it has hardly a word in common with what it was given.
"""

SUMMARY_FAULTS: frozenset[SummaryFault] = frozenset(
    {
        *("summary_failed", "summary_late", "summary_no_room", "summary_empty", "summary_cut"),
        *("summary_echoed", "summary_grew", "summary_too_long", "summary_carried_on"),
        *("summary_invented", "summary_unrelated"),
    }
)

_TOLERANCE = 2
"""Models cannot count tokens: up to so many times what was asked for is cut and not refused."""
_ECHO_SHARE = 0.8
"""A piece of the source that is at least so much of it is an echo."""
_ROLE = r"(?:user|assistant|system|tool|human|ai)"
_SPEAKER = re.compile(rf"[^\S\n]*({_ROLE})(?: \([^)\n]{{1,60}}\))?:(?=\s)", re.IGNORECASE)
_RECORDED = frozenset({"user", "assistant", "system", "tool"})
"""Speakers as the record writes them; a recap that uses these very words carries it on."""
_CUT = re.compile(r"(?:…|\.\.\.)\s*$")
_CUT_LABEL = re.compile(
    r"\[?(?:sys(?:t(?:e(?:m)?)?)?|ass(?:i(?:s(?:t(?:a(?:n(?:t)?)?)?)?)?)?|use(?:r)?|too(?:l)?)\W*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/\-–]\d+)*")
_DIGITS = re.compile(r"\d+")
_DECIMALS = re.compile(r"[.,]\d{1,2}$")
_ROUND = frozenset({"100"})
"""Percentages of a whole, which are not facts of the text."""
_SHORT_NUMBER = 2
"""Digits up to which a number without a sign is a count."""
_SIGNS = ("#", "$", "€", "£", "¥")
_FEW, _MANY = 6, 12
"""Content words from which a recap that shares none, or hardly any, is about something else."""
_HARDLY = 0.15
"""Share of the content words of a recap that must be in its source."""
_STEM = 5
"""Letters by which inflected forms of a word are compared."""
_LABEL_LENGTH = 4
_LABEL_KEYS = (
    "compaction.recap_prefix",
    "trajectory.agent.marker",
    "trajectory.plan.marker",
    "trajectory.reflection.marker",
)


def bare_summary(reply: str, labels: Iterable[str] = ()) -> str:
    r"""Return a reply without what surrounds a summary: labels, a speaker, invisible characters.

    Args:
        reply: What the summariser returned.
        labels: What the summary may be labelled with besides the labels of `prompts`.

    ```python
    from muntin.runtime.judgement import bare_summary

    print(bare_summary("\ufeff[Recap] assistant: Order 7 was sent. ", ["[Recap] "]))
    #> Order 7 was sent.
    ```
    """
    text = _stripped(clean_text(reply))
    stripped = _labels(labels)
    while True:
        before = text
        for label in stripped:
            text = _stripped(text.removeprefix(label))
        if text == before:
            break
    found = _SPEAKER.match(text)
    if found and found[1].lower() in ("assistant", "ai"):
        text = _stripped(text[found.end() :])
    return text


def fault_of(
    summary: str,
    given: str,
    *,
    asked: int,
    counter: Callable[[str], int],
    labels: Iterable[str] = (),
    slack: int = 0,
) -> SummaryFault | None:
    r"""Return why a summary may not be used, or `None` if it may.

    Args:
        summary: The reply, as `bare_summary` returns it.
        given: The text the summariser was given.
        asked: Tokens that were asked for.
        counter: Counts both.
        labels: As in `bare_summary`.
        slack: Tokens by which a summary may be longer than its source.

    ```python
    from muntin.runtime.judgement import fault_of
    from muntin.counting import count_tokens

    record = "user: Where is order A-1009?\nassistant: Order A-1009 left Oslo on 3 May. " * 9
    for reply in ("Order A-1009 left Oslo.", "Order A-2044 left Oslo.", "user: And A-1009?"):
        print(fault_of(reply, record, asked=50, counter=count_tokens))
    #> None
    #> summary_invented
    #> summary_carried_on
    ```
    """
    if not has_content(summary):
        return "summary_empty"
    if _is_cut(summary, labels):
        return "summary_cut"
    if _echoes(words(summary), words(bare_summary(given, labels))):
        return "summary_echoed"
    tokens = counter(summary)
    if tokens >= counter(given) + slack:
        return "summary_grew"
    if tokens > _TOLERANCE * asked:
        return "summary_too_long"
    if _carries_on(summary, given):
        return "summary_carried_on"
    if _invents(summary, given):
        return "summary_invented"
    return "summary_unrelated" if _is_unrelated(summary, given) else None


def _labels(more: Iterable[str]) -> list[str]:
    """List the labels that summaries get, in every language, and those given."""
    known = (text for key in _LABEL_KEYS for text in PromptRegistry.in_every_language(key))
    return [label for label in map(str.strip, (*more, *known)) if label]


def has_content(text: str) -> bool:
    """Whether a text holds a letter, a digit or a symbol, such as an emoji."""
    return any(unicodedata.category(character)[0] in "LNS" for character in text)


def _stripped(text: str) -> str:
    """Strip white space and invisible characters (zero width, direction marks) from both ends."""
    start, end = 0, len(text)
    while start < end and _is_invisible(text[start]):
        start += 1
    while end > start and _is_invisible(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_invisible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Cc", "Zl", "Zp")


def _echoes(said: list[str], source: list[str]) -> bool:
    """Whether a summary is its source, or one large piece of it."""
    if not said or len(said) < _ECHO_SHARE * len(source) or len(said) > len(source):
        return False
    return f" {' '.join(said)} " in f" {' '.join(source)} "


def _is_cut(summary: str, labels: Iterable[str]) -> bool:
    start = _CUT.sub("", summary).strip()
    if len(start) >= _LABEL_LENGTH and any(one.startswith(start) for one in _labels(labels)):
        return True
    return start != summary.strip() and _CUT_LABEL.fullmatch(start) is not None


def _carries_on(summary: str, given: str) -> bool:
    """Whether lines of the summary are further entries of the record.

    Entries that are in the record themselves are quotations, which extraction makes too.
    """
    others = 0
    recorded: set[str] | None = None
    for line in summary.splitlines():
        found = _SPEAKER.match(line)
        if not found:
            continue
        if recorded is None:
            recorded = {" ".join(one.split()) for one in given.splitlines()}
        said = " ".join(line.split())
        if said in recorded or _quotes(said, given):
            continue
        if found[1] in _RECORDED:
            return True
        others += 1
    return others > 1


def _quotes(line: str, given: str) -> bool:
    """Whether a line is part of a longer one of the record."""
    return _CUT.sub("", line).rstrip() in given


def _invents(summary: str, given: str) -> bool:
    """Whether an id, a date or a figure of the summary is nowhere in the text."""
    said, source = _with_ascii_digits(summary), _with_ascii_digits(given)
    groups = {_plain(found) for found in _DIGITS.findall(source)}
    joined = {form for found in _NUMBER.findall(source) for form in _forms(found)}
    for found in _NUMBER.finditer(said):
        if said.startswith("…", found.end()) or not _is_telling(said, found):
            continue
        number = found[0]
        if number in source or _joined(number) in joined:
            continue
        if not all(_plain(part) in groups for part in _DIGITS.findall(number)):
            return True
    folded = ""
    for value in values_in(summary):
        if any(map(str.isdigit, value)) or kind_of(value) != "id":
            continue
        folded = folded or given.casefold()
        if value.casefold() not in folded:
            return True
    return False


def _is_telling(text: str, found: re.Match[str]) -> bool:
    """Whether a number names something: not a small count, nor the number of a list item."""
    number = found[0]
    if number in _ROUND:
        return False
    if sum(map(str.isdigit, number)) > _SHORT_NUMBER:
        return True
    before, after = text[: found.start()][-1:], text[found.end() : found.end() + 1]
    return before in _SIGNS or (after == "%" and len(number) == _SHORT_NUMBER)


def _with_ascii_digits(text: str) -> str:
    """Write the decimal digits of every script as ASCII digits."""
    if text.isascii():
        return text
    table = {
        ord(one): str(unicodedata.decimal(one))
        for one in set(text)
        if not one.isascii() and unicodedata.decimal(one, None) is not None
    }
    return text.translate(table) if table else text


def _plain(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _joined(number: str) -> str:
    """Write a number without separators: 1,250 and 1250 are one figure."""
    return _plain("".join(_DIGITS.findall(number)))


def _forms(number: str) -> tuple[str, ...]:
    """Return a number without separators, and without its decimals: 1,250.00 is 1250."""
    whole = _DECIMALS.sub("", number)
    return (_joined(number), _joined(whole)) if whole != number else (_joined(number),)


def _is_unrelated(summary: str, given: str) -> bool:
    """Whether a summary is about something else: hardly one of its words is in its source."""
    said = {word for word in content_words(summary) if len(word) > 1 and not word.isdigit()}
    if len(said) < _FEW:
        return False
    source = words(given)
    known = {*source, *(word[:_STEM] for word in source)}
    shared = sum(word in known or word[:_STEM] in known for word in said)
    if shared == 0:
        return not _is_other_script(summary, given)
    return len(said) >= _MANY and shared < _HARDLY * len(said) and not _shares_figures(said, source)


def _is_other_script(summary: str, given: str) -> bool:
    """Whether only one is written in Latin letters: a translation shares no word."""
    return _mostly_latin(summary) != _mostly_latin(given)


def _mostly_latin(text: str) -> bool:
    letters = [one for one in text[:4_000] if one.isalpha()]
    return sum(one < "\u0250" for one in letters) * 2 >= len(letters)


def _shares_figures(said: set[str], source: list[str]) -> bool:
    figures = {word for word in source if any(map(str.isdigit, word)) and len(word) > _SHORT_NUMBER}
    return any(word in figures for word in said)
