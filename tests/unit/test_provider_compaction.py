"""Summaries that a provider wrote stay first and are never dropped while they fit."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

from muntin import (
    ContextWindowExceeded,
    HistoryCompactor,
    count_messages,
    estimate_tokens,
    fit_messages,
    reinject,
)
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.messages import from_compaction, view
from muntin.state import AgentState
from muntin.testing import (
    BoundThinking,
    RequestRefused,
    check_anthropic,
    check_openai_responses,
)

counted = partial(count_messages, counter=estimate_tokens)
SUMMARY = "Parcels P-0 to P-19 were sent; P-7 waits for a label. " * 12


def prose(at: int, times: int = 6) -> str:
    return f"Parcel P-{at} left depot {at} with {3 * at} boxes on board. " * times


def anthropic(block: dict[str, Any], *, before: int = 20, after: int = 12) -> list[dict[str, Any]]:
    thread: list[dict[str, Any]] = []
    for at in range(before):
        thread += [{"role": "user", "content": prose(at)}, {"role": "assistant", "content": "Ok."}]
    thread += [{"role": "user", "content": "Go on."}]
    thread += [{"role": "assistant", "content": [block, {"type": "text", "text": prose(99)}]}]
    for at in range(after):
        thread += [{"role": "user", "content": prose(100 + at)}]
        thread += [{"role": "assistant", "content": prose(200 + at)}]
    return [*thread, {"role": "user", "content": "Which parcel waits?"}]


def responses(block: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [{"role": "developer", "content": "You help with parcels."}]
    items += [{"role": "user", "content": prose(at)} for at in range(20)]
    items += [block]
    for at in range(12):
        items += [
            {"role": "user", "content": prose(100 + at)},
            {"type": "function_call", "call_id": f"c{at}", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{at}", "output": prose(at)},
        ]
    return [*items, {"role": "user", "content": "Which parcel waits?"}]


KINDS: dict[str, dict[str, Any]] = {
    "anthropic threshold": {"type": "compaction", "content": SUMMARY},
    "anthropic on demand": {
        "type": "compaction", "content": SUMMARY, "signature": "s" * 40,
        "encrypted_content": "e" * 300, "tool_changes": [],
    },
    "openai": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA" + "x" * 900},
    "xai": {"type": "compaction", "encrypted_content": "y" * 900},
}  # fmt: skip


def thread_of(kind: str) -> list[dict[str, Any]]:
    block = KINDS[kind]
    return anthropic(block) if kind.startswith("anthropic") else responses(block)


def holds(messages: Any, block: dict[str, Any]) -> bool:
    return any(
        message == block
        or (isinstance(message.get("content"), list) and block in message["content"])
        for message in messages
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_summary_stays_at_every_budget_where_it_fits(kind: str) -> None:
    """The summary stands for the whole history before it; without it the model starts anew."""
    thread, block = thread_of(kind), KINDS[kind]
    before = copy.deepcopy(thread)
    replaced = from_compaction(thread)
    assert replaced is not None
    whole = counted(replaced.messages)
    least = counted([
        *[m for m in thread if m.get("role") == "developer"],
        {"role": "assistant", "content": [block]} if kind.startswith("anthropic") else block,
        thread[-1],
    ])  # fmt: skip
    for budget in range(least - 40, whole + 400, max((whole + 440 - least) // 58, 1)):
        try:
            fitted = fit_messages(thread, budget=budget)
        except ContextWindowExceeded:
            assert budget < least
            continue
        assert holds(fitted.messages, block)
        assert counted(fitted.messages) == fitted.report.used <= budget
        front = [one for one in fitted.messages if one.get("role") != "developer"]
        assert view(front[0]).compacts
        assert fitted.messages[-1] == thread[-1]
        if budget >= whole:
            assert fitted.messages == replaced.messages
        if kind.startswith("anthropic"):
            check_anthropic({"messages": fitted.messages, "max_tokens": 9})
        else:
            check_openai_responses({"input": fitted.messages})
        counts = fitted.report.count("summarised") + fitted.report.count("dropped")
        assert counts >= len(replaced.dropped)
        assert any("provider's own summary" in note for note in fitted.report.notes)
        assert fit_messages(fitted.messages, budget=budget).messages is fitted.messages
    assert thread == before


@pytest.mark.parametrize("content", [None, ""])
def test_a_failed_summary_protects_nothing(content: str | None) -> None:
    """What stands before it still counts, so it must still be sent."""
    thread = anthropic({"type": "compaction", "content": content})
    assert from_compaction(thread) is None
    whole = counted(thread)
    assert fit_messages(thread, budget=whole).messages is thread
    fitted = fit_messages(thread, budget=400)
    assert not holds(fitted.messages, {"type": "compaction", "content": content})
    with pytest.raises(RequestRefused):
        check_anthropic({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant",
            "content": [{"type": "compaction", "content": ""}]}], "max_tokens": 9})  # fmt: skip


def test_the_newest_summary_replaces_the_older_ones() -> None:
    """An old summary behind a newer one is dead weight."""
    first, second = KINDS["anthropic threshold"], {"type": "compaction", "content": "Newer."}
    thread = anthropic(first)
    thread[-2] = {"role": "assistant", "content": [{"type": "text", "text": "a"}, second]}
    fitted = fit_messages(thread, budget=9999)
    assert fitted.messages == [{"role": "assistant", "content": [second]}, thread[-1]]


def test_thinking_behind_a_summary_stays_valid() -> None:
    """The prefix of what follows a summary begins with the summary."""
    bound = BoundThinking()
    thread = anthropic(KINDS["anthropic threshold"], after=2)
    thought = bound.sign({"messages": thread}, "It is P-7.")
    thread += [{"role": "assistant", "content": [thought, {"type": "text", "text": "P-7."}]},
               {"role": "user", "content": "Why?"}]  # fmt: skip
    fitted = fit_messages(thread, budget=9999)
    assert len(fitted.messages) < len(thread)
    bound.check({"messages": fitted.messages})
    assert bound.sent({"messages": fitted.messages}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_point_keeps_the_summary_first(kind: str) -> None:
    """A note of ours in front of it is ignored by the provider, and so are its facts."""
    thread, block = thread_of(kind), KINDS[kind]
    state = AgentState(goal="Send all parcels")
    compactor = HistoryCompactor(
        lambda text, how: "Parcel P-100 left depot 100 with 300 boxes on board.",
        keep_recent=4,
        trigger_tokens=600,
        recap_role="user",
    )
    outputs: list[Any] = [
        compactor.compact(thread),
        reinject(state, thread, max_tokens=200),
        fit_messages(thread, budget=900, state=state).messages,
        reduce_agent_sync(
            fit_messages(thread, budget=9999).messages,
            summarize=lambda text, how: "looked",
            budget=1200,
            note_role="user",
        ),
    ]
    for output in outputs:
        assert holds(output, block)
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.compacted
    compacted = [one for one in outputs[0] if one.get("role") != "developer"]
    assert view(compacted[0]).compacts
