"""What messages, tools and media cost."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest

from counters import characters
from muntin.counters import AnchoredCounter
from muntin.exact import TiktokenCounter
from muntin.message_tokens import MessageCounts, count_message, count_messages, count_view
from muntin.messages import Message, ToolCall
from muntin.shapes import view
from muntin.tokens import count_tokens

# The example of the cookbook that publishes the formula, with the counts the API itself gave.
JARGON = [
    ("system", None, "You are a helpful, pattern-following assistant that translates corporate "
     "jargon into plain English."),
    ("system", "example_user", "New synergies will help drive top-line growth."),
    ("system", "example_assistant", "Things working well together will increase revenue."),
    ("system", "example_user", "Let's circle back when we have more bandwidth to touch base on "
     "opportunities for increased leverage."),
    ("system", "example_assistant",
     "Let's talk later when we're less busy about how to do better."),
    ("user", None, "This late pivot means we don't have time to boil the ocean for the client "
     "deliverable."),
]  # fmt: skip
WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}
WEATHER = [
    {"role": "system",
     "content": "You are a helpful assistant that can answer to questions about the weather."},
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "expected"), [("o200k_base", 124), ("cl100k_base", 129)])
def test_text_messages_cost_what_the_provider_says(encoding: str, expected: int) -> None:
    """A ledger that is a little off overruns a full window."""
    messages = [
        {"role": role, "content": text, **({"name": name} if name else {})}
        for role, name, text in JARGON
    ]
    assert count_messages(messages, counter=TiktokenCounter(encoding)) == expected


@pytest.mark.parametrize(("encoding", "expected"), [("o200k_base", 101), ("cl100k_base", 105)])
def test_tools_cost_what_the_provider_says(encoding: str, expected: int) -> None:
    """Forty tools are easily the largest part of a prompt."""
    assert count_messages(WEATHER, [WEATHER_TOOL], counter=TiktokenCounter(encoding)) == expected


def test_key_order_never_changes_a_count() -> None:
    function = WEATHER_TOOL["function"]
    assert isinstance(function, dict)
    shuffled = {"function": dict(reversed(function.items())), "type": "function"}
    assert count_messages([], [shuffled]) == count_messages([], [WEATHER_TOOL])


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"name": "f", "parameters": {"properties": {"a": {"anyOf": [{"type": "string"}] * 90}}}},
        "a tool nobody can read",
    ],
)
def test_no_tool_is_free(tool: Any) -> None:
    """A hundred tools that counted as nothing are how windows overflow."""
    assert count_messages([], [tool]) > count_messages([])


def test_a_large_nested_schema_is_not_cheap() -> None:
    deep = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(200)}}
    flat = {"name": "f", "parameters": {"type": "object", "properties": {"a": deep}}}
    assert count_messages([], [flat]) > 500


def test_a_call_is_charged_once_and_the_same_in_every_shape() -> None:
    """What lives in a field and in a block is sent once."""
    block = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x" * 400}}
    call = {"id": "c1", "type": "function",
            "function": {"name": "look", "arguments": '{"at":"' + "x" * 400 + '"}'}}  # fmt: skip
    once = count_message({"role": "assistant", "content": [block]})
    assert count_message({"role": "assistant", "content": [block], "tool_calls": [call]}) == once
    assert count_message({"role": "assistant", "content": None, "tool_calls": [call]}) == once
    made = ToolCall("c1", "look", '{"at":"' + "x" * 400 + '"}')
    assert count_message(Message("", "assistant", tool_calls=[made])) == once
    assert once > 100


def test_reasoning_is_charged_and_its_encrypted_blob_is_not() -> None:
    item = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "a" * 80}]}
    assert count_message(item) == 4 + 20
    assert count_message({**item, "encrypted_content": "Z" * 20_000}) == count_message(item)


@pytest.mark.parametrize(
    ("block", "least", "most"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}},
         85, 2_000),
        ({"type": "image_url", "image_url": {"url": "https://x/y", "detail": "low"}}, 85, 85),
        ({"type": "input_image", "image_url": "data:image/png;base64," + "A" * 400_000}, 85, 2_000),
        ({"type": "image", "source": {"type": "base64", "data": "A" * 400_000}}, 85, 2_000),
        ({"type": "file", "file": {"file_data": "A" * 400_000}}, 1_000, 20_000),
        ({"type": "document", "source": {"type": "base64", "data": "A" * 400_000}}, 1_000, 20_000),
        ({"type": "input_audio", "input_audio": {"data": "A" * 400_000}}, 100, 20_000),
        ({"type": "video", "base64": "A" * 400_000}, 200, 20_000),
    ],
)  # fmt: skip
def test_media_cost_what_the_table_says_and_never_their_base64(
    block: dict[str, Any], least: int, most: int
) -> None:
    """One photo counted as text is a million tokens: everything else is thrown out for it."""
    assert least <= count_message({"role": "user", "content": [block]}) - 4 <= most


def test_base64_inside_text_is_text() -> None:
    """The model reads it character for character, so it is charged that way."""
    assert count_message({"role": "user", "content": "A" * 400_000}) > 90_000


def test_an_unknown_block_costs_its_json_and_says_so_once() -> None:
    message = {"role": "user", "content": [{"type": "hologram", "about": "x" * 400}]}
    with pytest.warns(UserWarning, match="hologram"):
        assert count_message(message) > 100
    assert count_message(message) > 100  # remembered: no second warning, which would be an error


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": None},
        {"role": "assistant"},
        {"role": "user", "content": []},
        {"role": "user", "content": [""]},
        {"role": "user", "content": "<|endoftext|> \ud83d \x00"},
    ],
)
def test_counting_never_raises_on_odd_content(message: Any) -> None:
    assert count_message(message, counter=TiktokenCounter("o200k_base")) >= 4


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
    stamped = [{"role": "user", "content": "same words", "at": at} for at in range(5)]
    found = [counts.measure(message) for message in stamped]
    assert spy.asked == ["same words"]
    assert [one.parts["at"] for one in found] == list(range(5))
