"""Do standing rules of users survive? A rule is put into a real history and looked for afterwards.

Histories are two agent runs and two meetings, joined to about 16,000 tokens. A rule is appended to
a user message at the start, at 10, 40 or 70 % of the length, never to the newest one. It counts
when a message of the result contains it word for word. `changed`: a later rule replaces an earlier
one; the later one has to be in the result, and the earlier one not after it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from benchmarks._data import json_lines
from benchmarks.measures.histories import rendered
from benchmarks.measures.needs import size

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measures.tokens import Message

    Fit = Callable[[list[Message], int], list[Message]]

__all__ = ("PLACES", "RULES", "changed", "kept")

PLACES = (0.0, 0.1, 0.4, 0.7)
RULES = (
    "Never promise a delivery date to a customer.",
    "For the rest of this conversation, answer in Italian.",
    "Please always give weights in kilograms.",
    "From now on round all amounts to full euros.",
    "Do not touch the archive folder without asking me.",
    "Whenever you mention a depot, add its city in brackets.",
    "Keep every answer below forty words from here on.",
    "Don't send mails unless I ask for it.",
    "Ab jetzt bitte immer mit Datum antworten.",
    "从现在开始,请用公里表示距离。",
    "À partir de maintenant, n'utilise plus de tableaux.",
    "Only ever use the test account.",
)
_CHANGES = (
    ("Please always give weights in kilograms.", "From now on give weights in pounds instead."),
    (
        "Use the long form for all addresses.",
        "Use the short form from now on, not the long one.",
    ),
)
_TOKENS = 16_000


@lru_cache(maxsize=1)
def _histories() -> tuple[tuple[str, list[Message]], ...]:
    runs = [
        record["messages"]
        for record in json_lines("trajectories.dev.jsonl.gz")
        if record["messages"][0]["role"] == "system"
    ]
    meetings = [
        record["turns"]
        for record in json_lines("conversations.dev.jsonl.gz")
        if record["kind"].startswith("meeting")
    ]
    agents = [("agent", _joined(runs, first)) for first in (0, 1)]
    return (*agents, *(("meeting", _meeting(turns)) for turns in meetings[:2]))


def _joined(runs: list[list[Message]], first: int) -> list[Message]:
    """Return one run with the messages of later ones after it."""
    messages, at = list(runs[first]), first
    while size(messages) < _TOKENS:
        at += 2
        messages += [one for one in runs[at % len(runs)] if one["role"] != "system"]
    return messages


def _meeting(turns: list[dict[str, str]]) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You take part in meetings."}]
    for at, turn in enumerate(turns):
        role = "assistant" if at % 2 else "user"
        messages.append({"role": role, "content": rendered(turn)})
        if size(messages) > _TOKENS:
            break
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": "What comes next?"})
    return messages


def _with_rule(messages: list[Message], place: float, rule: str) -> list[Message]:
    asked = [
        at
        for at, one in enumerate(messages)
        if one["role"] == "user" and isinstance(one["content"], str)
    ][:-1]
    chosen = min(asked, key=lambda at: abs(at / len(messages) - place)) if place else asked[0]
    changed = [dict(message) for message in messages]
    changed[chosen]["content"] = f"{changed[chosen]['content'].rstrip()} {rule}"
    return changed


def _texts(fit: Fit, messages: list[Message], share: float) -> list[str]:
    try:
        result = fit(messages, int(size(messages) * share))
    except Exception:  # noqa: BLE001 - a refusal keeps nothing
        return []
    return [message.get("content") or "" for message in result]


def kept(fit: Fit, kind: str, place: float, share: float) -> float:
    """Return how many of the rules are kept in histories of one kind."""
    found = [
        any(rule in text for text in _texts(fit, _with_rule(messages, place, rule), share))
        for named, messages in _histories()
        if named == kind
        for rule in RULES
    ]
    return sum(found) / len(found)


def changed(fit: Fit) -> float:
    """Return how often the later of two rules is there and the earlier one not after it."""
    found: list[bool] = []
    for _, messages in _histories():
        for old, new in _CHANGES:
            thread = _with_rule(_with_rule(messages, 0.1, old), 0.4, new)
            for share in (0.25, 0.1):
                text = "\n".join(_texts(fit, thread, share))
                found.append(new in text and text.rfind(old) < text.rfind(new))
    return sum(found) / len(found)
