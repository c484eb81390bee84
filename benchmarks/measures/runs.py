"""Is what an agent needs for its next call still there? Real runs, cut just before a call.

The budget is the leading system message and the newest user message, plus a share of the rest. The
values needed are ids, dates, paths and numbers in the arguments of the call that the real agent
made next; they are in the rest and in neither protected message. A value counts when one of its
labels (the nearest word before it) is near it in the result as well: a bare list of ids does not
count. The share is 0 unless pairs, system message, question and budget hold.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.measures.tokens import Message, messages_tokens, texts_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ("Case", "Score", "cases", "is_paired", "score", "text_of")

_LEAST_REST = 600
"""Tokens outside the protected messages below which there is nothing to cut."""
_REACH = 40
"""Characters before a value in which its label is looked for."""
_VALUE = re.compile(r"[A-Za-z0-9_#][A-Za-z0-9_\-./@#:]*[A-Za-z0-9_]")
_WORD = re.compile(r"[A-Za-z]{3,}")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, cut before a call, with a budget."""

    run: str
    messages: list[Message]
    question: int
    """Index of the newest user message."""
    share: float
    budget: int
    needed: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        """The text of all messages."""
        return text_of(self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a result achieves. A refusal keeps nothing."""

    run: str
    share: float
    refused: bool
    paired: bool = False
    system: bool = False
    question: bool = False
    held: bool = False
    kept: float | None
    """Share of the needed values; None if the next call needs none."""


def text_of(messages: Iterable[Message]) -> str:
    """Return contents and calls as one text."""
    parts: list[str] = []
    for message in messages:
        parts.append(message.get("content") or "")
        parts += [
            f"{call['function']['name']} {call['function']['arguments']}"
            for call in message.get("tool_calls") or ()
        ]
    return "\n".join(parts)


def is_paired(messages: Sequence[Message]) -> bool:
    """Return whether every call is followed by its results and no result is alone."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return not waiting


def cases(
    runs: Iterable[dict[str, Any]], *, shares: Sequence[float], cuts: int = 1
) -> Iterator[Case]:
    """Cut each run at up to two places and yield a case for each share of the rest."""
    for run in runs:
        for at in _places(run["messages"])[:cuts]:
            before: list[Message] = run["messages"][:at]
            protected, rest = _divided(before)
            needed = _needed(run["messages"][at]["tool_calls"], protected, rest)
            for share in shares:
                yield Case(
                    run=run["id"],
                    messages=before,
                    question=_newest_question(before),
                    share=share,
                    budget=int(messages_tokens(protected) + share * messages_tokens(rest)),
                    needed=needed,
                )


def _places(messages: Sequence[Message]) -> list[int]:
    """Return where to cut: the last call that needs something, then the middle one."""
    found: list[int] = []
    needing: list[int] = []
    later: list[Any] = []
    for at in range(len(messages) - 1, 5, -1):
        calls = messages[at].get("tool_calls") or []
        later += calls
        if not calls:
            continue
        protected, rest = _divided(messages[:at])
        if messages_tokens(rest) < _LEAST_REST or not _needed(later, protected, rest):
            continue
        found.append(at)
        if _needed(calls, protected, rest):
            needing.append(at)
    chosen = (needing or found)[::-1]
    if len(chosen) < 2:
        return chosen
    return list(dict.fromkeys((chosen[-1], chosen[len(chosen) // 2])))


def _newest_question(messages: Sequence[Message]) -> int:
    return max(at for at, message in enumerate(messages) if message["role"] == "user")


def _divided(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the protected messages and the rest."""
    kept = {_newest_question(messages)}
    if messages[0]["role"] == "system":
        kept.add(0)
    return (
        [message for at, message in enumerate(messages) if at in kept],
        [message for at, message in enumerate(messages) if at not in kept],
    )


def _needed(
    calls: Iterable[Any], protected: Sequence[Message], rest: Sequence[Message]
) -> tuple[str, ...]:
    there, elsewhere = text_of(rest), text_of(protected)
    values = {value for call in calls for value in _values(call["function"]["arguments"])}
    return tuple(sorted(v for v in values if _at(v, there) and not _at(v, elsewhere)))


def _values(arguments: str) -> set[str]:
    try:
        parsed: Any = json.loads(arguments)
    except ValueError:
        parsed = arguments
    found: set[str] = set()
    for text in _leaves(parsed):
        parts = [text] if len(text) <= 40 and " " not in text else _VALUE.findall(text)
        found.update(part for part in (one.strip(".,:;") for one in parts) if _is_value(part))
    return found


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _is_value(text: str) -> bool:
    """Return whether a text is an id, a path, a date or a number, and not a common word."""
    if len(text) < 4:
        return False
    marked = any(one.isdigit() or one in "/_@" for one in text)
    return marked or (len(text) >= 8 and any(one.isupper() for one in text[1:]))


def _at(value: str, text: str) -> list[int]:
    """Return where a value is in a text as a whole."""
    if value not in text:
        return []
    whole = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(value)}(?![A-Za-z0-9_])")
    return [match.start() for match in whole.finditer(text)]


def _before(text: str, at: int) -> list[str]:
    return [word.lower() for word in _WORD.findall(text[max(0, at - _REACH) : at])]


def _is_labelled(value: str, original: str, text: str) -> bool:
    """Return whether a value is in `text` with a label that it has in the original."""
    labels = {words[-1] for at in _at(value, original) if (words := _before(original, at))}
    places = _at(value, text)
    if not labels:
        return bool(places)
    return any(labels.intersection(_before(text, at)) for at in places)


def score(case: Case, fit: Callable[[list[Message], int], list[Message]]) -> Score:
    """Fit a case and score the result. An exception of the function is a refusal."""
    try:
        fitted = fit([dict(message) for message in case.messages], case.budget)
    except Exception:  # noqa: BLE001 - any refusal keeps nothing
        kept = 0.0 if case.needed else None
        return Score(run=case.run, share=case.share, refused=True, kept=kept)
    contents = "\n".join(message.get("content") or "" for message in fitted)
    question = case.messages[case.question]["content"]
    first = case.messages[0]
    sound = {
        "paired": is_paired(fitted),
        "system": first["role"] != "system" or first["content"] in contents,
        "question": any(m["role"] == "user" and m.get("content") == question for m in fitted),
        # Two ways of counting are common; the cheaper one decides.
        "held": min(messages_tokens(fitted), _bare_tokens(fitted)) <= case.budget,
    }
    kept = None
    if case.needed:
        text = text_of(fitted)
        found = sum(_is_labelled(value, case.text, text) for value in case.needed)
        kept = found / len(case.needed) if all(sound.values()) else 0.0
    return Score(run=case.run, share=case.share, refused=False, kept=kept, **sound)


def _bare_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of contents and of calls as JSON, without framing."""
    calls = [
        {"content": json.dumps(message["tool_calls"], ensure_ascii=False)}
        for message in messages
        if message.get("tool_calls")
    ]
    return texts_tokens([*messages, *calls])
