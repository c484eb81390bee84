"""Roles are arranged as a model family demands, and nothing of the conversation is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import Message
from muntin.messages import ToolCall, arrange_roles, role_rules, view
from muntin.testing import check_alternating, check_anthropic

PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def call(identifier: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    called = {"id": identifier, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def result(identifier: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": f"result {identifier}"}


@st.composite
def talks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Conversations with messages of every role in every order, pairs intact."""
    out: list[dict[str, Any]] = []
    for at in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(("system", "user", "assistant", "picture", "round")))
        if kind == "round":
            out += [call(f"c{at}"), result(f"c{at}")]
        elif kind == "picture":
            out.append({"role": "user", "content": [{"type": "text", "text": f"text {at}"}, PNG]})
        else:
            out.append({"role": kind, "content": f"text {at}"})
    return out


@given(talks())
def test_every_conversation_alternates_and_keeps_its_texts(talk: list[dict[str, Any]]) -> None:
    """A template that demands alternation refuses the whole request for one message too many."""
    arranged = arrange_roles(talk, alternate=True, system="first")

    check_alternating({"messages": arranged})
    texts = "\n".join(
        one.text + "".join(r.text for r in one.results) for one in map(view, arranged)
    )
    for message in map(view, talk):
        assert message.text in texts
        assert all(held.text in texts for held in message.results)
    pictures = sum(len(view(message).media) for message in talk)
    assert sum(len(view(message).media) for message in arranged) == pictures
    assert arrange_roles(arranged, alternate=True, system="first") is arranged


@given(talks(), st.sampled_from(("placed", "first")))
def test_a_system_message_is_where_it_is_accepted(talk: list[dict[str, Any]], place: Any) -> None:
    """Anthropic refuses a request with a system message in a wrong place."""
    arranged = arrange_roles(talk, system=place)

    roles = [one["role"] for one in arranged]
    lead = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
    for at, role in enumerate(roles[lead:], lead):
        if role == "system":
            assert place == "placed"
            assert roles[at - 1] in ("user", "tool")
            assert [*roles, "assistant"][at + 1] == "assistant"


def test_a_placed_system_message_passes_the_validator() -> None:
    """What the rule allows has to be what the provider allows."""
    talk = [{"role": "user", "content": "Hello"}, {"role": "system", "content": "Be brief."},
            {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "So?"}]  # fmt: skip

    assert arrange_roles(talk, system="placed") is talk
    check_anthropic({"max_tokens": 9, "messages": talk}, mid_system=True)


@pytest.mark.parametrize(
    ("name", "alternate", "system"),
    [
        ("mistral-7b-instruct", True, "first"), ("google/gemma-3-27b-it", True, "first"),
        ("llama-2-13b-chat", True, "first"), ("llama2:13b", True, "first"),
        ("claude-sonnet-4-5", False, "first"), ("claude-opus-4-8", False, "placed"),
        ("claude-opus-5-20260901", False, "placed"), ("claude-sonnet-5", False, "first"),
        ("claude-sonnet-5-5", False, "placed"), ("gemini-3.1-pro", False, "first"),
        ("gpt-4o", False, "anywhere"), ("llama-3.1-8b", False, "anywhere"),
        ("our-own-model", False, "anywhere"),
    ],
)  # fmt: skip
def test_the_rules_follow_from_the_name(name: str, *, alternate: bool, system: str) -> None:
    """A rule that has to be configured is forgotten by most."""
    rules = role_rules(name)

    assert (rules.alternate, rules.system) == (alternate, system)


def test_every_shape_is_arranged_in_its_own_form() -> None:
    """A message of another form would be refused by the client that takes the list."""
    made = arrange_roles([Message("One."), Message("Two.")], alternate=True)
    parts = arrange_roles(
        [
            {"role": "user", "parts": [{"text": "One."}]},
            {"role": "user", "parts": [{"text": "Two."}]},
        ],
        alternate=True,
    )

    assert made == [Message("One.\n\nTwo.")]
    assert parts == [{"role": "user", "parts": [{"text": "One.\n\nTwo."}]}]


def test_an_interrupted_round_is_followed_by_an_answer() -> None:
    """The user spoke before the model read its results: both user messages stay apart."""
    talk = [Message("Look."), Message("", "assistant", tool_calls=(ToolCall("c", "look", "{}"),)),
            Message("It is there.", "tool", tool_call_id="c"), Message("Never mind.")]  # fmt: skip

    assert [one.role for one in arrange_roles(talk, alternate=True)] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
