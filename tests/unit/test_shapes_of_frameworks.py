"""Conversations of Pydantic AI, the OpenAI Agents SDK and the Vercel AI SDK."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import pytest

from muntin import ContextWindowExceeded, count_messages, fit_messages
from muntin.counting.tokens import count_tokens
from muntin.messages import pairing_problems, repair, shape_of, view
from muntin.testing import check_openai_responses

LONG = "The parcel left the depot at nine and reached the harbour by noon. " * 6


def vercel_ui() -> list[Any]:
    """Write UI messages of version 5: calls and outputs are in one part."""
    chat: list[Any] = []
    for at in range(6):
        done = {"type": "tool-lookUp", "toolCallId": f"c{at}", "state": "output-available",
                "input": {"parcel": at}, "output": {"text": LONG}}  # fmt: skip
        chat += [
            {"id": f"u{at}", "role": "user", "parts": [{"type": "text", "text": f"Parcel {at}?"}]},
            {"id": f"a{at}", "role": "assistant",
             "parts": [{"type": "step-start"}, done, {"type": "text", "text": LONG}]},
        ]  # fmt: skip
    return [*chat, {"id": "u", "role": "user", "parts": [{"type": "text", "text": "And now?"}]}]


def vercel_ui_4() -> list[Any]:
    """Write UI messages of version 4: the text twice, and invocations beside it."""
    chat: list[Any] = []
    for at in range(6):
        done = {"state": "result", "toolCallId": f"c{at}", "toolName": "lookUp",
                "args": {"parcel": at}, "result": LONG}  # fmt: skip
        chat += [
            {"id": f"u{at}", "role": "user", "content": f"Parcel {at}?",
             "parts": [{"type": "text", "text": f"Parcel {at}?"}]},
            {"id": f"a{at}", "role": "assistant", "content": LONG, "toolInvocations": [done]},
        ]  # fmt: skip
    return [*chat, {"id": "u", "role": "user", "content": "And now?"}]


def vercel_model() -> list[Any]:
    """Write model messages: `tool-call` and `tool-result` blocks."""
    chat: list[Any] = [{"role": "system", "content": "Be brief."}]
    for at in range(6):
        call = {"type": "tool-call", "toolCallId": f"c{at}", "toolName": "lookUp",
                "input": {"parcel": at}}  # fmt: skip
        result = {"type": "tool-result", "toolCallId": f"c{at}", "toolName": "lookUp",
                  "output": {"type": "text", "value": LONG}}  # fmt: skip
        chat += [
            {"role": "user", "content": [{"type": "text", "text": f"Parcel {at}?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
            {"role": "tool", "content": [result]},
            {"role": "assistant", "content": LONG},
        ]
    return [*chat, {"role": "user", "content": "And now?"}]


def agents_items() -> list[Any]:
    """Write the input items of the OpenAI Agents SDK: Responses items."""
    chat: list[Any] = []
    for at in range(6):
        chat += [
            {"role": "user", "content": f"Parcel {at}?"},
            {"type": "reasoning", "id": f"rs_{at}", "summary": []},
            {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "look_up",
             "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": f"c{at}", "output": LONG},
            {"type": "message", "role": "assistant", "id": f"msg_{at}", "status": "completed",
             "content": [{"type": "output_text", "text": LONG, "annotations": []}]},
        ]  # fmt: skip
    return [*chat, {"role": "user", "content": "And now?"}]


def pydantic_ai() -> list[Any]:
    """Write model messages of Pydantic AI."""
    made: Any = pytest.importorskip("pydantic_ai.messages")
    chat: list[Any] = []
    for at in range(6):
        first = [made.SystemPromptPart("Be brief.")] if at == 0 else []
        call = made.ToolCallPart("look_up", {"parcel": at}, tool_call_id=f"c{at}")
        result = made.ToolReturnPart(tool_name="look_up", content=LONG, tool_call_id=f"c{at}")
        chat += [
            made.ModelRequest([*first, made.UserPromptPart(f"Parcel {at}?")]),
            made.ModelResponse([made.ThinkingPart("Hm."), made.TextPart("I look."), call]),
            made.ModelRequest([result]),
            made.ModelResponse([made.TextPart(LONG)]),
        ]
    return [*chat, made.ModelRequest([made.UserPromptPart("And now?")])]


CHATS: dict[str, Any] = {
    "vercel": vercel_model,
    "vercel-ui": vercel_ui,
    "vercel-ui-4": vercel_ui_4,
    "openai-responses": agents_items,
    "pydantic-ai": pydantic_ai,
}


@pytest.mark.parametrize("name", CHATS)
def test_a_conversation_of_a_framework_is_fitted_in_its_own_shape(name: str) -> None:
    """Read as something else, its results cost nothing and its question is lost."""
    chat = CHATS[name]()
    before = copy.deepcopy(chat)
    whole = count_messages(chat)
    assert whole > 12 * len(LONG) // 5
    cut = 0
    for budget in range(60, whole + 60, 97):
        try:
            fitted = fit_messages(chat, budget=budget, counter=count_tokens)
        except ContextWindowExceeded:
            continue
        cut += fitted.changed
        assert count_messages(fitted.messages) <= budget
        assert fitted.messages[-1] is chat[-1]
        assert not pairing_problems([view(message) for message in fitted.messages])
        if name == "openai-responses":
            check_openai_responses({"input": fitted.messages})
    assert cut
    assert chat == before
    assert fit_messages(chat, budget=whole, counter=count_tokens).messages is chat


@pytest.mark.parametrize("name", CHATS)
def test_a_message_of_a_framework_is_changed_without_loss(name: str) -> None:
    """Fields that are not understood pass through untouched."""
    for message in CHATS[name]():
        shape, read = shape_of(message), view(message)
        if read.text:
            assert view(shape.with_text(message, read.text)).text == read.text
            changed = view(shape.with_text(message, "Short."))
            assert changed == read._replace(text="Short.")
        for result in read.results:
            same = shape.with_results(message, {result.call_id: result.text})
            assert view(same).results == read.results
            short = shape.with_results(message, {result.call_id: "Short."})
            assert view(short) == read._replace(results=(result._replace(text="Short."),))
    shape = shape_of(CHATS[name]()[-1])
    for role in ("user", "assistant", "system"):
        note: Any = shape.note("A note.", role)
        assert (view(note).role, view(note).text) == (role, "A note.")
        assert shape.note("A note.", role) == note


@pytest.mark.parametrize("name", ["vercel", "openai-responses", "pydantic-ai"])
def test_a_lost_result_is_answered_in_the_shape_of_the_framework(name: str) -> None:
    """One cancelled call makes every later request of the thread fail."""
    chat = CHATS[name]()
    lost = next(at for at, message in enumerate(chat) if view(message).results)
    del chat[lost]
    mended = repair(chat)

    assert mended.answered == ("c0",)
    assert not pairing_problems([view(message) for message in mended])
    assert list(repair(mended)) == list(mended)


def test_an_open_tool_part_of_a_user_interface_is_a_call() -> None:
    """Its output comes later, in the same part."""
    part = {"type": "tool-lookUp", "toolCallId": "c1", "state": "input-available",
            "input": {"parcel": 1}}  # fmt: skip
    read = view({"id": "a", "role": "assistant", "parts": [part]})

    assert [(call.id, call.name) for call in read.calls] == [("c1", "lookUp")]
    assert not read.server


@pytest.mark.parametrize(
    "part",
    [
        {"type": "data-weather", "data": {"text": LONG}},
        {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c", "state": "output-error",
         "input": {}, "errorText": LONG},
        {"type": "reasoning", "text": LONG},
    ],
)  # fmt: skip
def test_every_part_of_a_user_interface_is_charged(part: dict[str, Any]) -> None:
    """A part that counts 0 tokens is sent all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tokens = count_messages([{"id": "a", "role": "assistant", "parts": [part]}])

    assert tokens > len(LONG) // 5


@pytest.mark.parametrize("budget", [400, 900, 5000])
def test_instructions_are_charged_once(budget: int) -> None:
    """Every request of Pydantic AI holds them, and a request without them in the count overruns."""
    made: Any = pytest.importorskip("pydantic_ai.messages")
    plain = pydantic_ai()
    told = "Answer in one sentence. " * 20
    given = [
        replace(message, instructions=told) if isinstance(message, made.ModelRequest) else message
        for message in plain
    ]
    cost = count_tokens(told) + 4

    assert count_messages(given) == count_messages(plain) + cost
    report = fit_messages(given, budget=budget, counter=count_tokens).report
    assert report.fixed["instructions"] == cost
    assert report.used <= budget
    assert "instructions" not in fit_messages(plain, budget=budget).report.fixed
