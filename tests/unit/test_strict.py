"""A double that lets through what a provider refuses makes every other test worthless."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, cast

import pytest

from muntin.errors import ConfigurationError
from muntin.testing import RequestOverflow, RequestRefused, check_request, words_counter

if TYPE_CHECKING:
    from muntin.testing import Provider


def user(text: str = "Look.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(*ids: str) -> dict[str, Any]:
    made = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, text: str = "A door.") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def refusal(messages: list[dict[str, Any]], **how: Any) -> str:
    with pytest.raises(RequestRefused) as caught:
        check_request(messages, **how)
    return caught.value.code


NOTHING: dict[str, Any] = {"role": "assistant", "content": []}


def test_a_sound_conversation_passes_and_is_counted() -> None:
    """What is right must not be refused, or the double proves nothing."""
    history = [user(), calls("a", "b"), result("b"), result("a"), user("And now?")]

    assert check_request(history, window=1000) > 0


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([user(), result("a")], "orphan_result"),
        ([user(), calls("a"), result("b")], "orphan_result"),
        ([user(), calls("a"), result("a"), result("a")], "orphan_result"),
        ([user(), calls("a"), user()], "unanswered_call"),
        ([user(), calls("a", "b"), result("a"), user()], "unanswered_call"),
        ([user(), calls("a"), calls("b"), result("a"), result("b")], "unanswered_call"),
        ([user(), calls("a")], "unanswered_call"),
        ([user(), calls("a", "a"), result("a")], "repeated_call"),
        ([user(), {"role": "assistant", "content": None}, user()], "empty_content"),
        ([user(), NOTHING, user()], "empty_content"),
        ([], "no_messages"),
    ],
)
def test_what_every_provider_refuses_is_refused(messages: list[dict[str, Any]], code: str) -> None:
    """Each of these ends a run with an error of the provider."""
    assert refusal(messages) == code


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([user(" \n")], "empty_content"),
        ([user(""), user()], "empty_content"),
        ([user(), {"role": "assistant", "content": ""}, user()], "empty_content"),
        ([{"role": "system", "content": "Be brief."}], "no_messages"),
        ([user(), {"role": "system", "content": "New rules."}, user()], "system_position"),
        ([{"role": "assistant", "content": "Hello."}, user()], "first_message"),
    ],
)
def test_the_stricter_provider_refuses_more(messages: list[dict[str, Any]], code: str) -> None:
    """What one provider takes, another does not."""
    assert check_request(messages, provider="openai")
    assert refusal(messages, provider="anthropic") == code


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_empty_system_prompt_is_accepted(provider: Provider) -> None:
    """Deepagents sends one; a double that refuses it reports faults that are none."""
    assert check_request([{"role": "system", "content": ""}, user()], provider=provider)


SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([SYSTEM, user(), calls("a"), result("a"), user()], "alternation"),
        ([user(), user()], "alternation"),
        ([SYSTEM, {"role": "assistant", "content": "Hello."}, user()], "alternation"),
        ([user(), {"role": "assistant", "content": "Yes."}, SYSTEM, user()], "system_position"),
    ],
)
def test_a_template_with_alternating_roles_refuses_more(
    messages: list[dict[str, Any]], code: str
) -> None:
    """Templates of Mistral, Gemma and Llama 2 raise on two messages of one role."""
    assert check_request(messages, provider="openai")
    assert refusal(messages, provider="alternating") == code
    answered = [SYSTEM, user(), calls("a"), result("a"), {"role": "assistant", "content": "Yes."}]
    assert check_request([*answered, user()], provider="alternating")


def test_a_request_over_the_window_says_by_how_much() -> None:
    """The room for the answer counts, as it does with the providers that ask for it."""
    history = [user("one two three")]
    tokens = check_request(history, counter=words_counter)

    assert check_request(history, window=tokens + 5, max_output=5, counter=words_counter)
    with pytest.raises(RequestOverflow, match="maximum context length is") as caught:
        check_request(history, window=tokens + 4, max_output=5, counter=words_counter)
    assert (caught.value.needed, caught.value.max_output) == (tokens, 5)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_a_tool_round_in_flight_opens_with_its_thinking() -> None:
    """Providers with extended thinking refuse a round whose thinking was cut away."""
    use: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    back: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": "A door."}],
    }
    whole: list[dict[str, Any]] = [user(), {"role": "assistant", "content": [thought, use]}, back]
    cut: list[dict[str, Any]] = [user(), {"role": "assistant", "content": [use]}, back]

    assert check_request(whole, provider="anthropic", thinking=True)
    assert refusal(cut, provider="anthropic", thinking=True) == "missing_thinking"
    assert check_request([*cut, {"role": "assistant", "content": "Done."}, user()], thinking=True)


def test_responses_items_may_make_their_calls_one_after_the_other() -> None:
    """Parallel calls are items of their own there, and their results come behind all of them."""

    def made(call_id: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}

    def back(call_id: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": "A door."}

    assert check_request([user(), made("a"), made("b"), back("a"), back("b")])
    assert refusal([user(), made("a"), made("b"), back("a")]) == "unanswered_call"


def test_an_unknown_provider_is_an_error_of_the_caller() -> None:
    """A misspelt provider would check nothing of what was meant."""
    with pytest.raises(ConfigurationError, match="provider is one of"):
        check_request([user()], provider=cast("Provider", "openay"))
