"""Signed thinking behind a changed prefix is taken out; texts, calls and pairs stay."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muntin import ContextWindowExceeded, count_messages, fit_messages
from muntin.messages import first_change, pairing_problems, view, without_signed_thinking
from muntin.testing import BoundThinking, RequestRefused, check_openai_responses


def signed_thread(bound: BoundThinking, rounds: int = 8) -> dict[str, Any]:
    """Write an agent's thread in which every round opens with thinking bound to its prefix."""
    body: dict[str, Any] = {"system": "Be brief.", "max_tokens": 100, "messages": [
        {"role": "user", "content": "Find all parcels. " * 5}]}  # fmt: skip
    for at in range(rounds):
        block = bound.sign(body, f"I look for parcel {at}. " * 8)
        use: dict[str, Any] = {"type": "tool_use", "id": f"t{at}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": f"row {at} " * 60}
        body["messages"] = [
            *body["messages"],
            {"role": "assistant", "content": [block, {"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [result]},
        ]
    done = {
        "role": "assistant",
        "content": [bound.sign(body, "All."), {"type": "text", "text": "Found."}],
    }
    return {**body, "messages": [*body["messages"], done, {"role": "user", "content": "And now?"}]}


def test_a_cut_thread_is_accepted_once_its_stale_thinking_is_out() -> None:
    """A note in place of old turns makes every later signature invalid, and the run ends."""
    bound = BoundThinking()
    body = signed_thread(bound)
    messages = body["messages"]
    before = copy.deepcopy(messages)
    whole = count_messages(messages)
    refused = 0
    for budget in range(100, whole, whole // 24):
        try:
            fitted = fit_messages(messages, budget=budget).messages
        except ContextWindowExceeded:
            continue
        try:
            bound.check({**body, "messages": fitted})
        except RequestRefused:
            refused += 1
        start = first_change(messages, fitted)
        assert start is not None
        unsigned = without_signed_thinking(fitted, start)
        bound.check({**body, "messages": unsigned.messages})
        assert not pairing_problems([view(message) for message in unsigned.messages])
        texts = [view(message).text for message in fitted]
        assert [view(message).text for message in unsigned.messages] == texts
        assert count_messages(unsigned.messages) <= budget
        assert without_signed_thinking(unsigned.messages, start).removed == 0
    assert refused
    assert messages == before


def test_reasoning_items_go_with_the_ids_of_their_followers() -> None:
    """The provider looks for the reasoning that an item of its own was written with."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "Look."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "role": "assistant", "id": "msg_2", "content": [
            {"type": "output_text", "text": "Here."}]},
        {"role": "user", "content": "And now?"},
    ]  # fmt: skip
    issued = {"fc_1": "rs_1", "msg_2": "rs_2"}
    unsigned = without_signed_thinking(items)

    assert unsigned.removed == 2
    assert not any("id" in item for item in unsigned.messages)
    check_openai_responses({"input": unsigned.messages}, issued=issued)
    later = without_signed_thinking(items, 3)
    assert later.removed == 1
    check_openai_responses({"input": later.messages}, issued=issued)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "s"}},
        {"type": "reasoning", "id": "rs_1", "summary": []},
    ],
)
def test_langchain_blocks_are_taken_out_too(block: dict[str, Any]) -> None:
    """Each provider package keeps its signed reasoning in another block."""
    core: Any = pytest.importorskip("langchain_core.messages")
    text = {"type": "text", "text": "Here.", "id": "msg_1"}
    message = core.AIMessage([block, text], id="kept")
    alone = core.AIMessage([block])
    unsigned = without_signed_thinking([core.HumanMessage("x"), message, alone])

    assert [one.text for one in unsigned.messages] == ["x", "Here."]
    assert unsigned.messages[1].id == "kept"
    assert unsigned.removed == 2
    assert message.content[0] == block


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Here.", "reasoning_content": "Hm."},
        {"role": "assistant", "content": [{"type": "text", "text": "Here."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "s"}]},
    ],
)
def test_reasoning_that_must_go_back_stays(message: dict[str, Any]) -> None:
    """DeepSeek wants its plain reasoning back, and Gemini the signature of a call."""
    unsigned = without_signed_thinking([message])

    assert unsigned.messages == [message]
    assert unsigned.messages[0] is message
