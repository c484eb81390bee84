"""Mending broken pairs of calls and results."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.messages.repair import repair
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems
from strategies import conversations


def _call(*ids: str, **more: Any) -> dict[str, Any]:
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def _result(call_id: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


S, U, A = ({"role": role, "content": role} for role in ("system", "user", "assistant"))

BROKEN: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a call nobody answered": ([S, U, _call("1"), U],
                               ["system", "user", "assistant", "tool", "user"]),
    "a result without a call": ([S, _result("gone"), A, U], ["system", "assistant", "user"]),
    "half a batch": ([U, _call("1", "2"), _result("1"), U],
                     ["user", "assistant", "tool", "tool", "user"]),
    "an answer given twice": ([U, _call("1"), _result("1"), _result("1"), A],
                              ["user", "assistant", "tool", "assistant"]),
    "a paused run that came back as history": (
        [U, _call("1", id="m1"), U, _call("1", id="m1"), _result("1"), A],
        ["user", "user", "assistant", "tool", "assistant"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_conversation_is_mended(name: str) -> None:
    """One broken pair that was stored makes every later request fail."""
    messages, roles = BROKEN[name]
    before = copy.deepcopy(messages)
    mended = repair(messages)
    assert [message["role"] for message in mended] == roles
    assert not pairing_problems([view(message) for message in mended])
    assert mended.changed
    assert messages == before
    assert repair(mended) == mended
    assert not repair(mended).changed


def test_what_was_done_is_said() -> None:
    mended = repair([U, _result("gone"), _call("1"), U])
    assert (mended.dropped, mended.answered) == ((1,), ("1",))
    assert "interrupted" in mended[2]["content"]


def test_the_open_tail_is_left_alone() -> None:
    """Its calls may still be running; answering them now makes their real answers orphans."""
    messages = [U, _call("1", "2"), _result("1")]
    assert list(repair(messages)) == messages


def test_anthropic_results_are_taken_out_block_by_block() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "gone", "content": "x"},
        {"type": "text", "text": "and a question"},
    ]
    mended = repair([{"role": "user", "content": blocks}])
    assert mended == [{"role": "user", "content": blocks[1:]}]


@given(conversations(), st.data())
def test_any_conversation_with_messages_missing_is_mended(
    messages: list[Any], data: st.DataObject
) -> None:
    """Whatever was lost on the way, the result can be sent, and mending it again does nothing."""
    if messages:
        lost = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
        messages = [message for at, message in enumerate(messages) if at not in lost]
    mended = repair(messages)
    assert not pairing_problems([view(message) for message in mended])
    assert list(repair(mended)) == list(mended)
