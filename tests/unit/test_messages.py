"""The neutral message value."""

from __future__ import annotations

import pickle
from typing import Any, cast

import pytest

from muntin.errors import ConfigurationError
from muntin.messages.message import Message, ToolCall


def test_a_message_is_made_as_the_reference_documents_make_it() -> None:
    """Their examples are what users type first."""
    assert Message("hi", "user") == Message(content="hi", role="user")
    assert Message("hi", "user").to_dict() == {"role": "user", "content": "hi"}


@pytest.mark.parametrize("role", ["", "User", "developer", "function", "narrator"])
def test_an_unknown_role_is_refused_by_name(role: str) -> None:
    """A role nobody knows would be sent and refused by the provider, far from the mistake."""
    with pytest.raises(ConfigurationError, match="system, user, assistant, tool"):
        Message("hi", cast("Any", role))
    with pytest.raises(ValueError, match="role"):
        Message("hi", cast("Any", role))


@pytest.mark.parametrize("content", [None, 7, b"bytes"])
def test_content_that_is_neither_text_nor_blocks_is_refused(content: object) -> None:
    """`None` rendered as the text "None" is a lie the model reads."""
    with pytest.raises(ConfigurationError, match="text or a list of blocks"):
        Message(cast("Any", content), "user")


def test_a_tool_round_is_written_as_chat_completions() -> None:
    call = ToolCall("c1", "look", '{"at": 1}')
    asked = Message("", "assistant", tool_calls=[call])
    told = Message("a door", "tool", tool_call_id="c1", name="look")
    assert asked.to_dict()["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    ]
    assert told.to_dict() == {
        "role": "tool", "content": "a door", "name": "look", "tool_call_id": "c1"
    }  # fmt: skip


def test_a_message_is_a_value() -> None:
    """A message that changes under a cache makes the cache wrong."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "hi"}]
    message = Message(blocks, "user")
    blocks.append({"type": "text", "text": "changed"})
    assert len(message.content) == 1
    assert hash(message) == hash(Message([{"type": "text", "text": "hi"}], "user"))
    assert pickle.loads(pickle.dumps(message)) == message
    with pytest.raises(AttributeError):
        message.role = "system"  # pyright: ignore[reportAttributeAccessIssue] - that is the test


def test_arguments_that_are_not_json_are_given_as_they_are() -> None:
    assert ToolCall("c", "f", '{"a": [1]}').parsed == {"a": [1]}
    assert ToolCall("c", "f", "{broken").parsed == "{broken"
