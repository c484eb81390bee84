"""Mending broken pairs of calls and results."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.messages.message import Message
from muntin.messages.repair import needs_repair, repair
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems
from muntin.testing import check_request
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


# --- what is empty, parted or without an id -------------------------------------------------------

TEXT = {"type": "text", "text": "x"}
EMPTY: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "an empty answer": ([U, {"role": "assistant", "content": ""}, U], [U, U]),
    "an answer of white space": ([U, {"role": "assistant", "content": " \n"}, U], [U, U]),
    "an answer that is absent": ([U, {"role": "assistant", "content": None}, U], [U, U]),
    "an answer of empty blocks": (
        [U, {"role": "assistant", "content": [{"type": "text", "text": ""}]}, U], [U, U]),
    "an empty request among others": ([U, A, {"role": "user", "content": ""}, A, U], [U, A, A, U]),
    "an empty block beside another": (
        [{"role": "user", "content": [{"type": "text", "text": ""}, TEXT]}],
        [{"role": "user", "content": [TEXT]}]),
    "an emptied list of calls": (
        [U, {"role": "assistant", "content": "Yes.", "tool_calls": []}, U],
        [U, {"role": "assistant", "content": "Yes."}, U]),
    "an emptied list of calls and no text": (
        [U, {"role": "assistant", "content": None, "tool_calls": []}, U], [U, U]),
    "a result without an id": (
        [U, _call("1"), {"role": "tool", "tool_call_id": "", "content": "ok"}, A, U],
        [U, _call("1"), _result("1"), A, U]),
    "results without ids": (
        [U, _call("1", "2"), {"role": "tool", "content": "a"}, {"role": "tool", "content": "b"}, U],
        [U, _call("1", "2"), _result("1", "a"), _result("2", "b"), U]),
    "a result behind another request": ([U, _call("1"), U, _result("1"), A],
                                        [U, _call("1"), _result("1"), U, A]),
    "half a character": ([{"role": "user", "content": "a\ud83d"}],
                         [{"role": "user", "content": "a\ufffd"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_what_providers_refuse_is_taken_out_or_completed(name: str) -> None:
    """One empty message that was stored makes every later request of the thread fail."""
    messages, expected = EMPTY[name]
    before = copy.deepcopy(messages)
    mended = repair(messages)

    assert list(mended) == expected
    assert mended.changed
    assert mended.notes
    assert messages == before
    again = repair(mended)
    assert list(again) == expected
    assert not again.changed
    assert len(mended.origins) == len(mended)
    views = [view(message) for message in messages]
    assert needs_repair(messages, views) == (name != "half a character")
    assert not needs_repair(mended, [view(message) for message in mended])


@pytest.mark.parametrize(
    "messages", [[{"role": "user", "content": ""}], [U, A, {"role": "user", "content": []}]]
)
def test_an_empty_request_at_the_end_gets_a_text(messages: list[dict[str, Any]]) -> None:
    """Without it the request would end with the assistant, or be empty."""
    mended = repair(messages)

    assert len(mended) == len(messages)
    assert view(mended[-1]).text == "[Empty message]"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": ""},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y"}}]},
        {"role": "assistant", "content": [{"type": "compaction", "content": "sum"}]},
    ],
)
def test_what_only_looks_empty_stays(message: dict[str, Any]) -> None:
    """Thinking with an empty text is complete, and an empty system prompt is accepted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mended = repair([message, U])

    assert mended[0] is message
    assert not mended.changed


def test_raw_copies_of_removed_calls_go() -> None:
    """The client sends them, and the provider waits for results that nobody will send."""
    core = pytest.importorskip("langchain_core.messages")
    raw = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    made: Any = core.AIMessage("I look.", additional_kwargs={"tool_calls": raw, "kept": 1})
    emptied: Any = made.model_copy(update={"tool_calls": []})
    whole: Any = core.AIMessage("", additional_kwargs={"tool_calls": raw},
                                tool_calls=[{"id": "c1", "name": "f", "args": {}}])  # fmt: skip
    result: Any = core.ToolMessage("ok", tool_call_id="c1")
    mended = repair([core.HumanMessage("x"), emptied, core.HumanMessage("y"), whole, result])

    assert mended[1].additional_kwargs == {"kept": 1}
    assert mended[3] is whole
    assert emptied.additional_kwargs["tool_calls"] == raw


BREAKS = ("drop", "double", "empty", "move")


@given(data=st.data(), shape=st.sampled_from(("openai-chat", "anthropic", "message")))
def test_what_was_broken_by_chance_is_accepted_after_repair(
    data: st.DataObject, shape: str
) -> None:
    """The kind's property: a request is accepted whatever was lost, doubled, emptied or moved."""

    def user(text: str) -> Any:
        return Message(text) if shape == "message" else {"role": "user", "content": text}

    messages = [user("Begin."), *data.draw(conversations(shape, pins=False)), user("Go on.")]
    provider: Any = "anthropic" if shape == "anthropic" else "openai"
    if shape == "anthropic":
        messages = [message for message in messages if view(message).role != "system"]
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(1, len(messages) - 1))
        how = data.draw(st.sampled_from(BREAKS))
        if how == "drop" and at < len(messages) - 1:
            del messages[at]
        elif how == "double":
            messages.insert(at, messages[at])
        elif how == "empty" and view(messages[at]).role in ("user", "assistant"):
            messages[at] = emptied_copy(messages[at])
        elif how == "move" and at < len(messages) - 1:
            messages.insert(data.draw(st.integers(1, len(messages) - 1)), messages.pop(at))
    messages.append(user("And now?"))
    mended = repair(messages)

    check_request(mended, provider=provider)
    assert list(repair(mended)) == list(mended)


def emptied_copy(message: Any) -> Any:
    if isinstance(message, Message):
        return Message("", message.role)
    return {"role": message["role"], "content": ""}
