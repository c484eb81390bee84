"""What messages, tools and media cost."""

from __future__ import annotations

from typing import Any

import pytest

from muntin.counting.message_counts import count_message, count_messages
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.messages.message import Message, ToolCall

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
