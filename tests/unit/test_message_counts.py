"""What is remembered of messages, and what is never mistaken for it."""

from __future__ import annotations

import json
import threading
from collections import UserDict
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from counters import characters
from muntin.counting.anchored import AnchoredCounter
from muntin.counting.charges.message_tokens import count_view
from muntin.counting.message_counts import MessageCounts
from muntin.counting.tokens import count_tokens
from muntin.messages.message import Message
from muntin.messages.shapes import view


class _Spy:
    """Count characters, and remember what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def test_a_history_that_grew_by_one_message_costs_one_count() -> None:
    spy = _Spy()
    counts = MessageCounts(spy)
    history: list[dict[str, Any]] = [{"role": "user", "content": f"m{i}"} for i in range(100)]
    counts.measure_all(history)
    spy.asked.clear()
    history.append({"role": "user", "content": "new"})
    counts.measure_all(history)
    counts.measure_all([dict(message) for message in history])  # equal, in other objects
    assert spy.asked == ["new"]


def test_a_message_changed_in_place_is_counted_anew() -> None:
    """A stale count is an overrun nobody can explain."""
    counts = MessageCounts(characters)
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "ab"}]}
    assert counts.measure(message).tokens == 6
    message["content"][0]["text"] = "abcd"
    assert counts.measure(message).tokens == 8


@pytest.mark.parametrize("position", [0, 1, 20, 38, 39])
def test_a_known_history_with_one_changed_message_costs_one_count(position: int) -> None:
    """A history is recognised as a whole: an edit in it must not go unseen."""
    spy = _Spy()
    counts = MessageCounts(spy)
    history = [{"role": "user", "content": f"m{i}"} for i in range(40)]
    counts.measure_all(history)
    spy.asked.clear()
    history[position]["content"] = "edited in place"
    found = counts.measure_all(history)
    assert spy.asked == ["edited in place"]
    assert [one.view.text for one in found] == [message["content"] for message in history]


def test_numbers_that_are_written_differently_are_told_apart() -> None:
    """`1 == True`, but a block with `true` in it costs what `true` costs."""
    counts = MessageCounts(characters)
    kinds: list[Any] = [1, True, 1.0]
    for kind in kinds:
        history: list[Any] = [{"role": "user", "content": f"m{i}"} for i in range(20)]
        history.append({"role": "user", "content": [{"type": "odd", "value": kind}]})
        with pytest.warns(UserWarning, match="odd"):
            found = counts.measure_all(history)
        assert json.dumps(kind) in found[-1].view.unknown[0][1]


def test_content_that_refuses_to_be_compared_is_read_again() -> None:
    """An array in a message raises when it is compared with another one."""
    counts = MessageCounts(characters)
    for _ in range(2):
        history: list[Any] = [{"role": "user", "content": f"m{i}"} for i in range(20)]
        history.append({"role": "user", "content": "see", "embedding": np.arange(3)})
        assert len(counts.measure_all(history)) == 21


def test_a_counter_that_learned_counts_anew() -> None:
    counter = AnchoredCounter(count_tokens)
    message = {"role": "user", "content": "a" * 4_000}
    counts = MessageCounts(counter)
    before = counts.measure(message).tokens
    counter.observe(1_000, 2_000)
    assert counts.measure(message).tokens > 1.5 * before


def test_memory_is_bounded() -> None:
    spy = _Spy()
    counts = MessageCounts(spy, capacity=10, max_characters=10_000)
    for i in range(1_000):
        counts.measure({"role": "user", "content": f"message {i}"})
    assert len(counts._by_key) <= 10  # pyright: ignore[reportPrivateUsage] - the bound itself
    assert len(counts._by_id) <= 10  # pyright: ignore[reportPrivateUsage] - the bound itself
    for _ in range(100):
        counts.measure({"role": "user", "content": "equal, and another object each time"})
    assert len(counts._by_id) <= 10  # pyright: ignore[reportPrivateUsage] - the bound itself
    counts.measure({"role": "user", "content": "x" * 50_000})
    counts.measure({"role": "user", "content": "y" * 50_000})
    assert len(counts._by_key) == 1  # pyright: ignore[reportPrivateUsage] - the bound itself


def test_threads_share_counts() -> None:
    counts = MessageCounts(characters, capacity=50)
    history = [{"role": "user", "content": f"m{i}"} for i in range(200)]
    totals: list[int] = []

    def work() -> None:
        totals.extend(sum(one.tokens for one in counts.measure_all(history)) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(totals)) == 1
    assert len(totals) == 120


def test_what_says_the_same_is_counted_once_whatever_shape_it_has() -> None:
    """A chat kept as values and sent as dicts is one chat."""
    spy = _Spy()
    counts = MessageCounts(spy)
    spy.asked.clear()  # a counter is tried once when it is given
    value = Message("Where is my order?", "user")
    assert counts.measure(value).view == counts.measure(value.to_dict()).view
    assert spy.asked == ["Where is my order?"]
    assert counts.measure(value.to_dict()).shape is not counts.measure(value).shape


def test_messages_alike_in_text_alone_are_told_apart() -> None:
    """The index looks at a part of a message, so everything else has to be compared."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    other = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n": 12}'}}
    alike: list[dict[str, Any]] = [
        {"role": "user", "content": "ok"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "ok", "name": "ann"},
        {"role": "user", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": "ok", "tool_calls": [call]},
        {"role": "assistant", "content": "ok", "tool_calls": [other]},
        {"role": "tool", "content": "ok", "tool_call_id": "c1"},
        {"role": "tool", "content": "ok", "tool_call_id": "c1", "name": "look"},
    ]
    counts = MessageCounts(characters)
    for _ in range(2):
        found = [counts.measure(dict(message)) for message in alike]
        assert [one.view for one in found] == [view(message) for message in alike]
        assert [one.tokens for one in found] == [count_view(one.view, characters) for one in found]
        assert [one.parts for one in found] == alike


def test_a_field_nobody_reads_does_not_cost_another_count() -> None:
    """Clients stamp messages with times and ids that are not sent."""
    spy = _Spy()
    counts = MessageCounts(spy)
    spy.asked.clear()
    stamped = [{"role": "user", "content": "same words", "at": at} for at in range(5)]
    found = [counts.measure(message) for message in stamped]
    assert spy.asked == ["same words"]
    assert [one.parts["at"] for one in found] == list(range(5))


def test_what_is_held_on_to_counts_and_not_only_what_is_said() -> None:
    """Screenshots say nothing and are most of what there is to remember."""
    counts = MessageCounts(characters, max_characters=100_000)
    for at in range(50):
        source = {"type": "base64", "media_type": "image/png", "data": f"{at:04}{'A' * 20_000}"}
        counts.measure({"role": "user", "content": [{"type": "image", "source": source}]})
        arguments = "x" * 20_000
        call = {"id": str(at), "function": {"name": "write", "arguments": arguments}}
        counts.measure({"role": "assistant", "content": None, "tool_calls": [call]})
    assert len(counts._by_key) <= 5  # pyright: ignore[reportPrivateUsage] - the bound itself


class _Function(BaseModel):
    name: str
    arguments: str


class _Call(BaseModel, extra="allow"):
    id: str
    function: _Function


def test_an_object_that_changes_inside_a_message_is_counted_anew() -> None:
    """Clients build a call up while it streams, and the message holds the object itself."""
    call = _Call.model_validate(
        {"id": "c1", "index": 0, "function": {"name": "w", "arguments": ""}}
    )
    block: UserDict[str, Any] = UserDict(type="text", text="short")
    history: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": [block]},
    ]
    counts = MessageCounts(characters)
    before = counts.measure_all(history)
    assert [one.tokens for one in counts.measure_all(history)] == [one.tokens for one in before]
    call.function.arguments = '{"text": "longer by far"}'
    block["text"] = "longer by far"
    after = counts.measure_all(history)
    fresh = MessageCounts(characters).measure_all(history)
    assert [one.tokens for one in after] == [one.tokens for one in fresh]
    assert all(a.tokens > b.tokens for a, b in zip(after, before, strict=True))


def test_whether_a_result_failed_is_part_of_what_was_read() -> None:
    """Two runs that differ in nothing else leave different facts behind."""
    counts = MessageCounts(characters)
    for failed in (False, True):
        history = [Message(f"m{at}", "user") for at in range(20)]
        result = Message("done", "tool", tool_call_id="c", metadata={"is_error": failed})
        assert counts.measure_all([*history, result])[-1].view.results[0].is_error is failed
