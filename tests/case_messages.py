"""The notation of the case tables: `S U A T` as chat dicts, rounds of tool calls, the entry points.

Cases are synthetic inputs of failures that were reported in public, grouped by kind in
`unit/test_cases_*.py`. Each kind has its property in the same file: what must hold of the rows must
hold of whatever a strategy draws.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import FittedMessages, fit_messages
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.counting.tokens import count_tokens
from muntin.errors import ContextWindowExceeded
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = (
    "ENTRY_POINTS",
    "A",
    "S",
    "T",
    "U",
    "budgets",
    "call",
    "fit_or_none",
    "saying",
    "says",
    "sound",
    "steps",
    "talk",
    "text_of",
    "trimmed",
)

S = {"role": "system", "content": "You are a careful assistant."}


def U(text: str = "Where is my order?") -> dict[str, Any]:  # noqa: N802 - the notation of the tables
    return {"role": "user", "content": text}


def A(*ids: str, text: str | None = None, **more: Any) -> dict[str, Any]:  # noqa: N802 - as above
    if not ids:
        return {"role": "assistant", "content": text or "Let me see."}
    return {"role": "assistant", "content": text, "tool_calls": [call(i) for i in ids], **more}


def call(call_id: str, name: str = "f", arguments: str | None = None) -> dict[str, Any]:
    """Write one call; calls differ in what they ask for unless told otherwise."""
    asked = json.dumps({"at": call_id}) if arguments is None else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": asked}}


def T(call_id: str, text: str = "ok " * 30) -> dict[str, Any]:  # noqa: N802 - as above
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def steps(count: int, batch: int = 1, text: str = "row " * 40) -> list[dict[str, Any]]:
    """Write rounds of tool calls, each with `batch` parallel ones."""
    rounds: list[dict[str, Any]] = []
    for at in range(count):
        ids = [f"s{at}_{part}" for part in range(batch)]
        rounds += [A(*ids), *(T(i, f"{text}{i}") for i in ids)]
    return rounds


def talk(count: int, words: int = 30) -> list[dict[str, Any]]:
    """Write turns of a question and its answer; each names the number of its turn."""
    return [
        message
        for at in range(count)
        for message in (U(f"q{at} " + "ask " * words), A(text=f"a{at} " + "say " * words))
    ]


def sound(messages: Sequence[Any]) -> bool:
    """Whether every result has its call and every call its results."""
    return not pairing_problems([view(message) for message in messages])


def text_of(messages: Sequence[Any]) -> str:
    """All that is said, in order."""
    return "\n".join(view(message).text for message in messages)


def says(messages: Sequence[Any], text: str) -> bool:
    """Whether a text stands anywhere in the messages, results included."""
    return text in json.dumps(list(messages), ensure_ascii=False, default=str)


def budgets(total: int, tries: int = 50) -> range:
    """Budgets from 1 to a little over the total, evenly spread."""
    return range(1, total * 11 // 10 + 1, max(1, total // tries))


def fit_or_none(messages: list[Any], budget: int, **how: Any) -> FittedMessages[list[Any]] | None:
    """Fit, or return None where the protected part alone is over the budget."""
    if "counts" not in how:
        how.setdefault("counter", count_tokens)
    try:
        return fit_messages(messages, budget=budget, **how)
    except ContextWindowExceeded:
        return None


def saying(reply: Any) -> Callable[[str, str], Any]:
    """Make a summariser that always gives the same reply, whatever it is; errors are raised."""

    def summarize(text: str, instruction: str) -> Any:
        if isinstance(reply, BaseException):
            raise reply
        return reply

    return summarize


def _fit(messages: list[Any], budget: int, **more: Any) -> list[Any]:
    return fit_messages(messages, budget=budget, counter=count_tokens, **more).messages


def _reduce(messages: list[Any], budget: int, **more: Any) -> list[Any]:
    out = reduce_agent_sync(
        messages,
        summarize=saying("They went on."),
        budget=budget,
        keep_recent_steps=1,
        counter=count_tokens,
        **more,
    )
    return messages if out is messages else list(out)


def _compact(messages: list[Any], budget: int, **more: Any) -> list[Any]:
    compactor = HistoryCompactor(
        saying("They went on."),
        keep_recent=1,
        trigger_tokens=budget,
        counter=count_tokens,
        **more,
    )
    return compactor.compact(messages)


ENTRY_POINTS: dict[str, Callable[..., list[Any]]] = {
    "fit_messages": _fit,
    "reduce_agent": _reduce,
    "HistoryCompactor": _compact,
}
"""Every way into the library that leaves messages out, keeping as little as it may; the budget of
a compactor is its trigger."""


def trimmed(entry_point: str, messages: list[Any], budget: int, **more: Any) -> list[Any] | None:
    """Send messages through an entry point; None where the protected part does not fit."""
    try:
        return ENTRY_POINTS[entry_point](messages, budget, **more)
    except ContextWindowExceeded:
        return None
