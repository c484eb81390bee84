"""Signed thinking behind a changed prefix is taken out; texts, calls and pairs stay."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muntin import (
    ContextWindowExceeded,
    HistoryCompactor,
    count_messages,
    estimate_tokens,
    fit_messages,
)
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.messages import pairing_problems, view, without_signed_thinking
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


@pytest.mark.parametrize("model", [None, "claude-opus-5-5", "us.anthropic.claude-sonnet-5-5-v1:0"])
def test_a_fitted_thread_is_accepted_at_every_budget(model: str | None) -> None:
    """A note in place of old turns makes every later signature invalid, and the run ends."""
    bound = BoundThinking()
    body = signed_thread(bound)
    messages = body["messages"]
    before = copy.deepcopy(messages)
    whole = count_messages(messages, counter=estimate_tokens)
    kept: set[int] = set()
    for budget in range(100, whole, whole // 40):
        try:
            fitted = fit_messages(messages, budget=budget, model=model, counter=estimate_tokens)
        except ContextWindowExceeded:
            continue
        sent = {**body, "messages": fitted.messages}
        bound.check(sent)
        kept.add(bound.sent(sent))
        left_out = bound.written - bound.sent(sent)
        assert any("reasoning left out" in note for note in fitted.report.notes) == bool(left_out)
        assert fitted.report.used <= budget
        used = count_messages(fitted.messages, counter=estimate_tokens)
        assert fitted.report.used == used
        assert not pairing_problems([view(message) for message in fitted.messages])
        again = fit_messages(fitted.messages, budget=budget, model=model, counter=estimate_tokens)
        assert again.messages is fitted.messages
    assert kept == set(range(9))
    assert messages == before


def test_a_cut_that_leaves_thinking_in_is_refused() -> None:
    """A check that accepts everything would make the other tests worthless."""
    bound = BoundThinking()
    body = signed_thread(bound)
    with pytest.raises(RequestRefused, match="different conversation"):
        bound.check({**body, "messages": [body["messages"][0], *body["messages"][3:]]})
    no_front = without_signed_thinking(body["messages"], places={1, 3})
    bound.check({**body, "messages": no_front.messages})
    no_middle = without_signed_thinking(body["messages"], places={3})
    with pytest.raises(RequestRefused, match="different conversation"):
        bound.check({**body, "messages": no_middle.messages})


def test_thinking_that_the_model_does_not_check_stays() -> None:
    """Older models take thinking behind any prefix; without it they work worse."""
    body = signed_thread(BoundThinking())
    fitted = fit_messages(
        body["messages"], budget=700, model="claude-sonnet-4-5", counter=estimate_tokens
    )

    assert any(view(message).signed for message in fitted.messages)
    assert not any("reasoning left out" in note for note in fitted.report.notes)


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


def test_a_recap_takes_the_thinking_written_before_it_and_keeps_the_later() -> None:
    """A recap changes the prefix once; what is written behind it stays valid until the next."""
    bound = BoundThinking()
    body = signed_thread(bound)
    history = list(body["messages"])
    compactor = HistoryCompactor(
        lambda text, how: "Find all parcels. I look; row 0, row 1 and row 2 were found.",
        keep_recent=4, trigger_tokens=600, recap_role="user"
    )  # fmt: skip
    sent = {**body, "messages": compactor.compact(history)}
    outcome = compactor.last_outcome
    assert outcome is not None
    assert outcome.compacted
    assert outcome.reasoning_blocks == 2
    assert outcome.tokens_after < outcome.tokens_before
    bound.check(sent)
    assert bound.sent(sent) == 0
    for turn in range(3):
        block = bound.sign(sent, f"Thought {turn}.")
        history += [
            {"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]},
            {"role": "user", "content": "And?"},
        ]
        sent = {**body, "messages": compactor.compact(history)}
        bound.check(sent)
        assert bound.sent(sent) == turn + 1
        assert compactor.last_outcome is not None
        assert compactor.last_outcome.reason == "reused"
    other = HistoryCompactor(
        lambda text, how: "Find all parcels. I look; row 0, row 1 and row 2 were found.",
        keep_recent=4, trigger_tokens=600, recap_role="user"
    )  # fmt: skip
    other.load(compactor.state())
    assert other.compact(history) == sent["messages"]


def test_a_reduced_tool_loop_holds_no_thinking_behind_its_summary() -> None:
    """The summary stands in place of the oldest rounds, so the newest lose their thinking."""
    bound = BoundThinking()
    body = signed_thread(bound)
    reduced = reduce_agent_sync(
        body["messages"], summarize=lambda text, how: "looked", budget=700, keep_recent_steps=3
    )
    bound.check({**body, "messages": reduced})
    assert bound.sent({**body, "messages": reduced}) == 0
