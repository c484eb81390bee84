"""Each validator refuses what its provider refuses, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from muntin.adapting import refusal_of
from muntin.testing import (
    BoundThinking,
    RequestRefused,
    check_alternating,
    check_anthropic,
    check_gemini,
    check_mistral,
    check_openai_chat,
    check_openai_responses,
)

Check = Callable[[Mapping[str, Any]], None]
Dict = dict[str, Any]


def refusal(check: Callable[..., None], body: Dict, **how: Any) -> str:
    with pytest.raises(RequestRefused) as caught:
        check(body, **how)
    assert caught.value.status == 400
    return caught.value.code


# --- OpenAI chat ---------------------------------------------------------------------------------


def said(role: str, content: Any = "Where is it?", **more: Any) -> Dict:
    return {"role": role, "content": content, **more}


def calling(*ids: str, arguments: Any = "{}", content: Any = None) -> Dict:
    made = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": arguments}}
        for one in ids
    ]
    return said("assistant", content, tool_calls=made)


def back(call_id: str, content: Any = "In depot 4.") -> Dict:
    return said("tool", content, tool_call_id=call_id)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    "messages",
    [
        [said("user")],
        [said("system", ""), said("user", "")],
        [said("system")],
        [said("assistant", "Hello."), said("user")],
        [said("user"), said("user"), said("assistant", "")],
        [said("user"), said("system"), said("user"), said("developer")],
        [said("user"), calling("a", "b"), back("b"), back("a"), said("user")],
        [said("user"), calling("a", content=""), back("a", ""), calling("a"), back("a")],
        [
            said("user"),
            calling("a", arguments="{broken"),
            back("a", [{"type": "text", "text": ""}]),
        ],
        [said("user", [{"type": "text", "text": "What is it?"}, IMAGE])],
        [said("user", name="Ada_L"), {"role": "assistant", "refusal": "No."}],
    ],
)
def test_openai_chat_accepts_what_it_accepts(messages: list[Dict]) -> None:
    """A double that refuses more than the provider reports faults that are none."""
    check_openai_chat({"model": "m", "messages": messages})


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([], "no_messages"),
        ([said("human")], "role"),
        ([said("user", None)], "empty_content"),
        ([said("user", [])], "empty_content"),
        ([said("user"), said("assistant", None)], "empty_content"),
        ([said("user"), said("assistant", "Yes.", tool_calls=[])], "field"),
        ([said("user"), calling("a" * 41), back("a" * 41)], "call_id"),
        ([said("user"), calling("a", "a"), back("a")], "repeated_call"),
        ([said("user"), calling("a", arguments={}), back("a")], "arguments"),
        ([said("user"), calling("a")], "unanswered_call"),
        ([said("user"), calling("a"), said("user"), back("a")], "unanswered_call"),
        ([said("user"), back("a")], "orphan_result"),
        ([said("user"), calling("a"), back("a"), back("a")], "orphan_result"),
        ([said("user", name="Ada L")], "name"),
        ([said("user", [{"type": "tool_use", "id": "a"}])], "part_type"),
        ([said("user"), said("assistant", [IMAGE])], "part_type"),
        ([said("user"), calling("a"), back("a", [IMAGE])], "part_type"),
        ([said("user"), calling("a"), back("a", None)], "empty_content"),
        ([said("user", [{"type": "image_url", "image_url": {"url": "AAAA"}}])], "field"),
    ],
)
def test_openai_chat_refuses_what_it_refuses(messages: list[Dict], code: str) -> None:
    """Each of these ends a run with a 400."""
    assert refusal(check_openai_chat, {"messages": messages}) == code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"tools": []}, "field"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "name"),
        ({"tool_choice": "auto"}, "field"),
    ],
)
def test_openai_chat_refuses_broken_tools(more: Dict, code: str) -> None:
    """An empty list of tools is refused, absent tools are not."""
    assert refusal(check_openai_chat, {"messages": [said("user")], **more}) == code


# --- OpenAI Responses ----------------------------------------------------------------------------


def item(kind: str, **more: Any) -> Dict:
    return {"type": kind, **more}


def made(call_id: str, **more: Any) -> Dict:
    return item("function_call", call_id=call_id, name="look", arguments="{}", **more)


def output(call_id: str, value: Any = "In depot 4.") -> Dict:
    return item("function_call_output", call_id=call_id, output=value)


THOUGHT = item("reasoning", id="rs_1", summary=[])
WROTE = item("message", role="assistant", content=[{"type": "output_text", "text": "Here."}])


@pytest.mark.parametrize(
    "given",
    [
        "Where is it?",
        [said("user"), WROTE, said("developer", "")],
        [said("user"), made("a"), made("b"), said("user"), output("b"), output("a")],
        [said("user"), THOUGHT, made("a", id="fc_1"), output("a")],
        [said("user"), item("compaction", encrypted_content="x"), said("user")],
        [said("user", [{"type": "input_image", "image_url": "data:image/png;base64,AA"}])],
        [said("user"), item("additional_tools", role="developer", tools=[])],
    ],
)
def test_responses_accept_what_they_accept(given: Any) -> None:
    """Outputs need not follow their calls directly there."""
    check_openai_responses({"input": given}, issued={"fc_1": "rs_1"})


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([], "no_messages"),
        ([said("tool")], "role"),
        ([item("tool_result")], "part_type"),
        ([said("user", [{"type": "text", "text": "x"}])], "part_type"),
        ([said("assistant", [{"type": "input_text", "text": "x"}])], "part_type"),
        ([said("user", None)], "empty_content"),
        ([said("user"), made("a")], "unanswered_call"),
        ([said("user"), output("a")], "orphan_result"),
        ([said("user"), output("a"), made("a")], "orphan_result"),
        ([said("user"), made("a"), made("a"), output("a")], "repeated_call"),
        ([said("user"), made("a", id="call_1"), output("a")], "call_id"),
        ([said("user"), made("a" * 65), output("a" * 65)], "call_id"),
        ([said("user"), {**made("a"), "arguments": 1}, output("a")], "arguments"),
        ([said("user"), THOUGHT], "reasoning_pair"),
        ([said("user"), THOUGHT, said("user")], "reasoning_pair"),
        ([said("user"), made("a", id="fc_1"), output("a")], "reasoning_pair"),
    ],
)
def test_responses_refuse_what_they_refuse(given: Any, code: str) -> None:
    """Pairs go by id, and reasoning stays with what it was written for."""
    assert refusal(check_openai_responses, {"input": given}, issued={"fc_1": "rs_1"}) == code


# --- Anthropic -----------------------------------------------------------------------------------


def use(*ids: str, thought: bool = False, arguments: Any = None) -> Dict:
    blocks: list[Dict] = [{"type": "thinking", "thinking": "", "signature": "s"}] if thought else []
    blocks += [
        {
            "type": "tool_use",
            "id": one,
            "name": "look",
            "input": {} if arguments is None else arguments,
        }
        for one in ids
    ]
    return said("assistant", blocks)


def results(*ids: str, before: tuple[Dict, ...] = (), content: Any = "In depot 4.") -> Dict:
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": content} for one in ids]
    return said("user", [*before, *blocks])


TEXT = {"type": "text", "text": "And now?"}
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    "messages",
    [
        [said("user")],
        [said("user"), said("user"), said("assistant", "Yes"), said("assistant", "No")],
        [said("user"), said("assistant", "")],
        [said("user"), use("a", "b"), results("b", "a"), said("assistant", "Here.")],
        [said("user"), use("a", "b"), results("a"), results("b")],
        [said("user"), use("a"), said("user", [results("a")["content"][0], TEXT])],
        [said("user"), use("a"), results("a", content="")],
        [said("user"), use("a"), results("a", content=[])],
        [said("user", [{**TEXT, **MARK}] * 4)],
        [said("user"), use("a", thought=True), results("a")],
    ],
)
def test_anthropic_accepts_what_it_accepts(messages: list[Dict]) -> None:
    """Messages of one role are joined there, and empty results are fine."""
    check_anthropic({"max_tokens": 100, "system": "", "messages": messages})


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([], "no_messages"),
        ([said("assistant", "Hello."), said("user")], "first_message"),
        ([said("system"), said("user")], "system_position"),
        ([said("tool")], "role"),
        ([said("user", "")], "empty_content"),
        ([said("user", " \n")], "empty_content"),
        ([said("user", []), said("user")], "empty_content"),
        ([said("user", [{"type": "text", "text": ""}])], "empty_content"),
        ([said("user"), said("assistant", ""), said("user")], "empty_content"),
        ([said("user"), said("assistant", "Here: ")], "last_message"),
        ([said("user"), use("a")], "unanswered_call"),
        ([said("user"), use("a", "b"), results("a")], "unanswered_call"),
        ([said("user"), use("a"), said("user"), use("b"), results("b")], "unanswered_call"),
        ([said("user"), results("a")], "orphan_result"),
        ([said("user"), use("a"), results("a", before=(TEXT,))], "result_order"),
        ([said("user"), use("a"), results("a", "a")], "repeated_call"),
        ([said("user"), use("a", "a"), results("a")], "repeated_call"),
        ([said("user"), use("a"), results("a"), use("a"), results("a")], "repeated_call"),
        ([said("user"), use("a.b"), results("a.b")], "call_id"),
        ([said("user"), use("a", arguments="{}"), results("a")], "arguments"),
        ([said("user", [{"type": "input_text", "text": "x"}])], "part_type"),
        ([said("user", use("a")["content"])], "part_type"),
        ([said("user"), said("assistant", [{"type": "thinking", "thinking": "x"}])],
         "missing_signature"),
        ([said("user", [{**TEXT, **MARK}] * 5)], "cache_marks"),
    ],
)  # fmt: skip
def test_anthropic_refuses_what_it_refuses(messages: list[Dict], code: str) -> None:
    """Each of these ends a run with a 400."""
    assert refusal(check_anthropic, {"max_tokens": 100, "messages": messages}) == code


def test_anthropic_demands_thinking_in_an_open_round_only() -> None:
    """A cut that takes the thinking of the round in flight ends the run."""
    body: Dict = {"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 1024}}

    check_anthropic({**body, "messages": [said("user"), use("a", thought=True), results("a")]})
    closed = [said("user"), use("a"), results("a"), said("assistant", "Here."), said("user")]
    check_anthropic({**body, "messages": closed})
    open_round = {**body, "messages": closed[:3]}
    assert refusal(check_anthropic, open_round) == "missing_thinking"


@pytest.mark.parametrize("place", [2, 3])
def test_a_system_message_in_mid_thread_has_its_place(place: int) -> None:
    """It follows a user turn and precedes an assistant turn, on models that take it at all."""
    messages = [said("user"), said("assistant", "Yes."), said("user")]
    messages.insert(place, said("system"))
    body = {"max_tokens": 100, "messages": messages}

    assert refusal(check_anthropic, body) == "system_position"
    if place == 3:
        check_anthropic(body, mid_system=True)
    else:
        assert refusal(check_anthropic, body, mid_system=True) == "system_position"


@pytest.mark.parametrize("change", ["system", "tools", "first message"])
def test_signed_thinking_is_bound_to_what_stands_before_it(change: str) -> None:
    """A note in place of old turns makes every later signature invalid."""
    bound = BoundThinking()
    asked: Dict = {"max_tokens": 9, "system": "Be brief.", "tools": [{"name": "look"}],
                   "messages": [said("user")]}  # fmt: skip
    answer = said("assistant", [bound.sign(asked, "Hm."), TEXT])
    later: Dict = {**asked, "messages": [*asked["messages"], answer, said("user")]}
    marked = said("user", [{"type": "text", "text": "Where is it?", **MARK}])

    bound.check(later)
    bound.check({**later, "messages": [marked, *later["messages"][1:]]})
    changed = {
        "system": {**later, "system": "Be long."},
        "tools": {**later, "tools": [{"name": "look"}, {"name": "read"}]},
        "first message": {**later, "messages": [said("user", "A note."), *later["messages"][1:]]},
    }[change]
    with pytest.raises(RequestRefused) as caught:
        bound.check(changed)
    read = refusal_of(ValueError(caught.value.problem))
    assert read is not None
    assert read.kind == "thinking"


# --- Gemini --------------------------------------------------------------------------------------


def parts(role: str, *given: Dict) -> Dict:
    return {"role": role, "parts": list(given)}


def fc(name: str = "look", **more: Any) -> Dict:
    return {"functionCall": {"name": name, "args": {}}, **more}


def fr(name: str = "look") -> Dict:
    return {"functionResponse": {"name": name, "response": {"result": "In depot 4."}}}


ASK = parts("user", {"text": "Where is it?"})
SIGNED = {"thoughtSignature": "sig"}


@pytest.mark.parametrize(
    "contents",
    [
        [ASK, ASK, parts("model", {"text": "Here."})],
        [ASK, parts("model", fc(**SIGNED), fc()), parts("user", fr(), fr())],
        [ASK, parts("model", fc(**SIGNED)), parts("function", fr()), parts("model", fc(**SIGNED)),
         parts("user", fr()), parts("model", {"text": "", **SIGNED})],
        [ASK, parts("model", fc()), parts("user", fr()), parts("model", {"text": "Here."}), ASK],
        [parts("user", {"inline_data": {"mime_type": "image/png", "data": "AA"}})],
    ],
)  # fmt: skip
def test_gemini_accepts_what_it_accepts(contents: list[Dict]) -> None:
    """Signatures of older turns are not demanded, nor more than one for parallel calls."""
    check_gemini({"contents": contents}, model="gemini-3.1-pro")


@pytest.mark.parametrize(
    ("contents", "code"),
    [
        ([], "no_messages"),
        ([parts("assistant", {"text": "x"})], "role"),
        ([parts("user")], "empty_content"),
        ([parts("user", {"text": ""})], "empty_content"),
        ([parts("user", {"functionCall": {"name": "", "args": {}}})], "name"),
        ([ASK, parts("model", fc(**SIGNED))], "unanswered_call"),
        ([ASK, parts("model", fc(**SIGNED)), ASK], "unanswered_call"),
        ([ASK, parts("user", fr())], "orphan_result"),
        ([ASK, parts("model", fc(**SIGNED), fc()), parts("user", fr())], "result_count"),
        ([parts("model", fc(**SIGNED)), parts("user", fr())], "first_message"),
        ([ASK, parts("model", fc()), parts("user", fr())], "missing_signature"),
        ([ASK, parts("model", fc(thoughtSignature="other")), parts("user", fr())],
         "thinking_bound"),
    ],
)  # fmt: skip
def test_gemini_refuses_what_it_refuses(contents: list[Dict], code: str) -> None:
    """Each of these ends a run with a 400."""
    how = {"model": "gemini-3.1-pro", "issued": {"sig"}}
    assert refusal(check_gemini, {"contents": contents}, **how) == code


def test_gemini_2_demands_no_signatures() -> None:
    """Refusing there would report faults that are none."""
    check_gemini({"contents": [ASK, parts("model", fc()), parts("user", fr())]}, model="gemini-2.5")


# --- alternation ---------------------------------------------------------------------------------


def test_gemma_refuses_every_system_message() -> None:
    """Its template raises instead of joining the text to the first user message."""
    body = {"messages": [said("system"), said("user")]}

    check_alternating(body)
    assert refusal(check_alternating, body, system="refused") == "system_position"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([said("user"), said("assistant", "")], "empty_content"),
        ([said("user"), said("assistant", "Yes.")], "last_message"),
        ([said("user"), calling("call_1"), back("call_1")], "call_id"),
        ([said("user"), calling("abcdefghi"), said("user")], "result_count"),
        ([said("user"), calling("abcdefghi")], "result_count"),
        ([said("user"), back("abcdefghi")], "orphan_result"),
    ],
)
def test_mistral_refuses_what_it_refuses(messages: list[Dict], code: str) -> None:
    """Its API counts responses, and takes ids of nine characters only."""
    check_mistral({"messages": [said("user"), calling("abcdefghi"), back("abcdefghi")]})
    assert refusal(check_mistral, {"messages": messages}) == code
