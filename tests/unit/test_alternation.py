"""Conversations for chat templates that demand that user and assistant alternate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import HistoryCompactor, fit_messages
from muntin.conversations.fit import afit_messages
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.counting import count_messages, count_tokens
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages import pairing_problems, view
from muntin.testing import check_alternating

if TYPE_CHECKING:
    from collections.abc import Callable

S = {"role": "system", "content": "You are an office agent."}
MISTRAL = "mistralai/Mistral-7B-Instruct-v0.3"


def _say(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _round(at: int) -> list[dict[str, Any]]:
    function = {"name": "read", "arguments": json.dumps({"path": f"src/part_{at}.py"})}
    call = {"id": f"r{at}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"r{at}", "content": f"file {at} " + "word " * 40},
    ]


def _history(kinds: str) -> list[dict[str, Any]]:
    """Build a history of user (u), assistant (a), system (s) messages and tool rounds (r)."""
    messages: list[dict[str, Any]] = [dict(S)]
    for at, kind in enumerate(kinds):
        if kind == "r":
            messages += _round(at)
        else:
            role = {"u": "user", "a": "assistant", "s": "system"}[kind]
            messages.append(_say(role, f"{role} says {at}: order A-{1000 + at} " + "word " * 12))
    return messages


def _sum_up(text: str, instruction: str) -> str:
    return "Orders were looked up."


def _fitted(messages: list[Any], budget: int) -> list[Any]:
    return fit_messages(messages, budget=budget, counter=count_tokens, alternate=True).messages


def _of_the_family(messages: list[Any], budget: int) -> list[Any]:
    return fit_messages(messages, budget=budget, counter=count_tokens, model=MISTRAL).messages


def _noted_by(role: Any) -> Callable[[list[Any], int], list[Any]]:
    def fitted(messages: list[Any], budget: int) -> list[Any]:
        return fit_messages(
            messages, budget=budget, counter=count_tokens, alternate=True, note_role=role
        ).messages

    return fitted


def _reduced(messages: list[Any], budget: int) -> list[Any]:
    return [
        *reduce_agent_sync(
            messages,
            summarize=_sum_up,
            budget=budget,
            counter=count_tokens,
            keep_recent_steps=2,
            alternate=True,
        )
    ]


ENTRY_POINTS = {
    "fit_messages": _fitted,
    "fit_messages by model": _of_the_family,
    "fit_messages, note of the system": _noted_by("system"),
    "fit_messages, note of the assistant": _noted_by("assistant"),
    "reduce_agent": _reduced,
}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@given(kinds=st.text("uuaarrs", max_size=24), share=st.floats(0.2, 1.1))
def test_roles_alternate_inside_the_budget(entry_point: str, kinds: str, share: float) -> None:
    """A template that demands alternation refuses the whole request otherwise."""
    messages = [*_history(kinds), _say("user", "And now?")]
    budget = max(int(share * count_messages(messages, counter=count_tokens)), 1)
    try:
        out = ENTRY_POINTS[entry_point](messages, budget)
    except ContextWindowExceeded:
        return
    check_alternating({"messages": out})
    assert not pairing_problems([view(message) for message in out])
    assert count_messages(out, counter=count_tokens) <= budget


@given(kinds=st.text("uuaarrs", max_size=24), role=st.sampled_from(["system", "user", "assistant"]))
def test_a_compacted_history_alternates(kinds: str, role: Any) -> None:
    """A recap in front of a user message makes two messages of one role."""
    compactor = HistoryCompactor(
        _sum_up, trigger_tokens=60, keep_recent=2, recap_role=role, alternate=True
    )
    messages = [*_history(kinds), _say("user", "And now?")]
    out = compactor.compact(messages)
    check_alternating({"messages": out})
    assert not pairing_problems([view(message) for message in out])


def test_what_alternates_comes_back_as_it_is() -> None:
    """A caller compares by identity to find out whether something changed."""
    messages = [*_history("uaua"), _say("user", "And now?")]
    fitted = fit_messages(messages, budget=5000, alternate=True)
    assert fitted.messages is messages
    assert not fitted.changed


def test_the_report_has_the_tokens_that_are_sent() -> None:
    """A report of the messages before they were joined is not the account of the request."""
    messages = [*_history("uauauauuaauuua"), _say("user", "And now?")]
    fitted = fit_messages(messages, budget=220, counter=count_tokens, alternate=True)
    assert fitted.report.budget == 220
    assert fitted.report.used == count_messages(fitted.messages, counter=count_tokens)
    assert "roles were arranged" in fitted.report.notes[-1]
    assert fitted.report.what_if(max_tokens=400).used <= 400


def test_the_newest_message_is_in_the_result_word_for_word() -> None:
    """Joining puts a note in front of the question; it must not change the question."""
    messages = [*_history("uauauauuaauuua"), _say("user", "What about order A-1003?")]
    out = _fitted(messages, 200)
    assert out[-1]["role"] == "user"
    assert out[-1]["content"].endswith("What about order A-1003?")


@pytest.mark.asyncio
async def test_the_async_entry_point_does_the_same() -> None:
    """Two entry points with one policy must not differ."""
    messages = [*_history("uauauauuaauuua"), _say("user", "And now?")]
    fitted = await afit_messages(messages, budget=220, counter=count_tokens, alternate=True)
    assert list(fitted.messages) == _fitted(messages, 220)


def test_a_model_of_another_family_keeps_its_messages() -> None:
    """Joined messages lose their places, so it is done only where it is demanded."""
    messages = [*_history("uu"), _say("user", "And now?")]
    assert fit_messages(messages, budget=5000, model="gpt-4o").messages is messages
    off = fit_messages(messages, budget=5000, model="gpt-4o", alternate=False)
    assert off.messages is messages


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5])
def test_a_wrong_value_is_refused_by_name(wrong: Any) -> None:
    """A string is true, so that "no" would switch it on."""
    with pytest.raises(ConfigurationError, match="alternate must be a bool or None"):
        fit_messages([_say("user", "Hi")], budget=50, alternate=wrong)
    with pytest.raises(ConfigurationError, match="alternate must be a bool or None"):
        HistoryCompactor(alternate=wrong)
    with pytest.raises(ConfigurationError, match="alternate must be a bool or None"):
        reduce_agent_sync([_say("user", "Hi")], summarize=_sum_up, budget=50, alternate=wrong)
