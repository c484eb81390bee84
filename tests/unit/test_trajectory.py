"""Reducing an agent's own working steps."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from muntin import fit_messages
from muntin.conversations.trajectory import (
    REDUCERS,
    reduce_agent,
    reduce_agent_sync,
    reduce_plan,
    reduce_plan_sync,
    reduce_reflection,
    reduce_reflection_sync,
)
from muntin.counting import tokens_of
from muntin.counting.message_counts import count_messages
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems


def _round(at: int, text: str = "x" * 400) -> list[dict[str, Any]]:
    call = {"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": text},
    ]


def _trajectory(rounds: int = 6) -> list[dict[str, Any]]:
    head = [{"role": "system", "content": "sys"}, {"role": "user", "content": "question"}]
    return head + [message for at in range(rounds) for message in _round(at)]


class _Summary:
    """Answer with one text, and remember what was asked."""

    def __init__(self, reply: str = "told") -> None:
        self.reply = reply
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, text: str, instruction: str) -> str:
        self.asked.append((text, instruction))
        return self.reply


def _agent(messages: Any, summary: Any = None, **how: Any) -> Any:
    return asyncio.run(reduce_agent(messages, summarize=summary or _Summary(), **how))


def _shape(messages: Any) -> list[str]:
    return [message.get("tool_call_id") or message["role"] for message in messages]


def test_a_trajectory_that_fits_comes_back_as_the_same_object() -> None:
    messages, summary = _trajectory(), _Summary()
    assert _agent(messages, summary, budget=10**6) is messages
    assert summary.asked == []


def test_head_and_newest_rounds_stay_and_the_rest_is_one_summary() -> None:
    out = _agent(_trajectory(), budget=450, turn_start=2)
    assert _shape(out) == [
        "system", "user", "system", "assistant", "c3", "assistant", "c4", "assistant", "c5"
    ]  # fmt: skip
    assert out[2]["content"] == "[Attempted Steps Summary]told"


def test_what_must_be_kept_and_does_not_fit_is_an_error_with_figures() -> None:
    with pytest.raises(ContextWindowExceeded) as caught:
        _agent(_trajectory(), budget=200, turn_start=2)
    assert caught.value.needed > caught.value.available == 200
    assert sum(caught.value.parts.values()) == caught.value.needed


def test_nothing_kept_leaves_head_and_summary() -> None:
    assert _shape(_agent(_trajectory(), budget=450, keep_recent_steps=0)) == [
        "system", "user", "system"
    ]  # fmt: skip


def test_without_turn_start_system_and_question_stay_all_the_same() -> None:
    """Summarised away, the agent works on without knowing what for."""
    out = _agent(_trajectory(), budget=450)
    assert [message["content"] for message in out[:2]] == ["sys", "question"]


@pytest.mark.parametrize("reply", ["", "  \n "])
def test_an_empty_summary_leaves_the_mark_of_failure(reply: str) -> None:
    out = _agent(_trajectory(), _Summary(reply), budget=450, turn_start=2)
    assert "(compression of earlier content failed, omitted)" in out[2]["content"]


def test_a_failing_summariser_leaves_the_mark_and_the_facts() -> None:
    """An agent must not stop because a helper did, and must not lose what it had found."""

    async def fail(text: str, instruction: str) -> str:
        raise TimeoutError("no answer")

    messages = _trajectory(2)
    messages[3]["content"] = "reservation_id: ZFA04Y " + "x" * 380
    messages += [message for at in range(2, 6) for message in _round(at)]
    out = _agent(messages, fail, budget=600, turn_start=2)
    assert "failed" in out[2]["content"]
    assert "ZFA04Y" in out[2]["content"]


def test_a_long_summary_is_cut_and_leaves_room_for_the_next_step() -> None:
    """A summary that fills the room makes the very next step overflow, and be paid for again."""
    out = _agent(_trajectory(), _Summary("s" * 230), budget=450, turn_start=2)
    assert out[2]["content"].endswith("…")
    assert 380 < count_messages(out) <= 450


def test_nobody_is_paid_for_a_summary_there_is_no_room_for() -> None:
    summary = _Summary()
    out = _agent(_trajectory(), summary, budget=378, turn_start=2)
    assert summary.asked == []
    assert out[2]["content"] == "…"
    assert count_messages(out) <= 378


def test_a_turn_that_starts_inside_a_round_keeps_the_round() -> None:
    out = _agent(_trajectory(), budget=600, turn_start=3)
    assert "c0" in _shape(out)
    assert not pairing_problems([view(message) for message in out])


def test_notes_between_a_call_and_its_result_make_no_orphan() -> None:
    messages = _trajectory()
    messages.insert(3, {"role": "system", "content": "a note"})
    for budget in range(60, count_messages(messages), 7):
        try:
            out = _agent(messages, budget=budget, keep_recent_steps=1)
        except ContextWindowExceeded:
            continue
        assert not pairing_problems([view(message) for message in out])
        assert count_messages(out) <= budget


@pytest.mark.parametrize("tokens", [60_000, 3_000])
def test_one_giant_result_is_cut_to_the_budget(tokens: int) -> None:
    messages = _trajectory() + _round(9, "word " * (tokens * 4 // 5))
    out = _agent(messages, budget=2_000, turn_start=2)
    assert count_messages(out) <= 2_000
    assert _shape(out)[-1] == "c9"


def test_steps_do_not_overflow_again_at_once() -> None:
    """Every reduction is a model call: a run of fifty steps must not pay for fifty."""
    summary = _Summary("s" * 4_000)
    messages = _trajectory(0)
    for at in range(50):
        messages = [*messages, *_round(at)]
        messages = list(_agent(messages, summary, budget=1_500, turn_start=2))
    assert len(summary.asked) <= 20


def test_markers_do_not_nest() -> None:
    messages = list(_agent(_trajectory(), _Summary("first"), budget=450, turn_start=2))
    summary = _Summary("second")
    out = _agent([*messages, *_round(7), *_round(8)], summary, budget=450, turn_start=2)
    assert sum("[Attempted Steps Summary]" in (m["content"] or "") for m in out) == 1
    assert "[Attempted Steps Summary]" not in summary.asked[0][0]
    assert "first" in summary.asked[0][0]


def test_plan_results_keep_the_newest() -> None:
    history = ["p" * 400] * 6
    out = asyncio.run(reduce_plan(history, summarize=_Summary(), budget=400))
    assert out[0] == "[Earlier Step Results Summary]told"
    assert list(out[1:]) == history[3:]
    assert tokens_of(*out) <= 400
    with pytest.raises(ContextWindowExceeded):
        asyncio.run(reduce_plan(history, summarize=_Summary(), budget=250))


def _reflection() -> list[dict[str, str]]:
    kinds = ["draft", "critique", "refine", "critique"]
    return [{"kind": kind, "text": f"{at}" * 400} for at, kind in enumerate(kinds)]


def test_a_reflection_keeps_the_latest_answer_and_past_points() -> None:
    out = asyncio.run(reduce_reflection(_reflection(), summarize=_Summary(), budget=200))
    assert [entry["kind"] for entry in out] == ["critique", "refine"]
    assert out[0]["text"] == "[Past Critique Points]told"


def test_an_open_critique_stays_last_while_it_fits() -> None:
    """Moved before the answer it reads as settled, and the agent stops refining."""
    out = asyncio.run(reduce_reflection(_reflection(), summarize=_Summary(), budget=390))
    assert [entry["kind"] for entry in out] == ["critique", "refine", "critique"]
    assert out[-1] == _reflection()[-1]


def test_a_reflection_without_critiques_asks_nobody() -> None:
    summary = _Summary()
    entries = [{"kind": "draft", "text": "a" * 400}, {"kind": "refine", "text": "b" * 40}]
    assert (
        list(asyncio.run(reduce_reflection(entries, summarize=summary, budget=20))) == entries[1:]
    )
    assert summary.asked == []


def test_only_critiques_keep_the_last_one_once() -> None:
    entries = [{"kind": "critique", "text": letter * 100} for letter in "abc"]
    out = asyncio.run(reduce_reflection(entries, summarize=_Summary(), budget=60))
    assert [entry["text"][:1] for entry in out] == ["[", "c"]


def test_both_entry_points_do_the_same_and_change_nothing() -> None:
    messages, history, entries = _trajectory(), ["p" * 400] * 6, _reflection()
    before = copy.deepcopy((messages, history, entries))

    def plain(text: str, instruction: str) -> str:
        return "told"

    assert reduce_agent_sync(messages, summarize=plain, budget=450) == _agent(messages, budget=450)
    assert reduce_plan_sync(history, summarize=plain, budget=400) == asyncio.run(
        reduce_plan(history, summarize=_Summary(), budget=400)
    )
    assert reduce_reflection_sync(entries, summarize=plain, budget=200) == asyncio.run(
        reduce_reflection(entries, summarize=_Summary(), budget=200)
    )
    assert (messages, history, entries) == before


def test_the_reducers_are_found_by_kind() -> None:
    assert dict(REDUCERS) == {
        "agent": reduce_agent, "plan": reduce_plan, "reflection": reduce_reflection
    }  # fmt: skip


def test_negative_numbers_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="keep_recent_steps"):
        _agent(_trajectory(), budget=10, keep_recent_steps=-1)


def test_leading_system_messages_stay_behind_one_that_looks_like_a_summary() -> None:
    """A rule of the operator must not go because of the mark of the message before it."""
    rule = {"role": "system", "content": "Never pay out."}
    messages = [
        {"role": "system", "content": "[Attempted Steps Summary]sum"},
        rule,
        {"role": "user", "content": "Go on."},
        *({"role": "assistant", "content": f"step {at} " * 20} for at in range(30)),
        {"role": "user", "content": "And now?"},
    ]
    short = reduce_agent_sync(messages, summarize=lambda text, how: "All was tried.", budget=400)
    assert len(short) < len(messages)
    assert rule in short
    assert rule in fit_messages(messages, budget=400, note_role="system").messages
