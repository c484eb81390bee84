"""What the core reads in a LangChain message, and what it leaves as it is when it changes one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_muntin._shapes import MARK, SHAPE
from muntin import ConfigurationError, count_message, count_messages, fit_messages, repair
from muntin.messages.message import ToolCall
from muntin.messages.shapes import shape_of, view

CALL = {"name": "look", "args": {"at": "door"}, "id": "c1", "type": "tool_call"}
BLOB = "iVBORw0KGgo" * 40_000


def test_the_core_finds_the_shape_by_itself() -> None:
    """Users hand LangChain messages to `fit_messages` without registering anything."""
    assert shape_of(HumanMessage("Hi")) is SHAPE
    assert shape_of(AIMessageChunk(content="Hi")) is SHAPE


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (SystemMessage("x"), "system"),
        (HumanMessage("x"), "user"),
        (AIMessage("x"), "assistant"),
        (ToolMessage("x", tool_call_id="c1"), "tool"),
        (FunctionMessage(name="look", content="x"), "tool"),
        (ChatMessage(role="developer", content="x"), "system"),
        (ChatMessage(role="anything", content="x"), "user"),
        (HumanMessage([{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]), "tool"),
    ],
)
def test_every_kind_of_message_has_its_role(message: BaseMessage, role: str) -> None:
    """A role read wrongly cuts the wrong message."""
    assert view(message).role == role


def test_an_order_to_remove_is_no_message() -> None:
    """`RemoveMessage` belongs into a state update; sent to a model it is an error."""
    with pytest.raises(ConfigurationError, match="RemoveMessage"):
        view(RemoveMessage(id="1"))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "door"}},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"door"}'},
        {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "door"}},
        {"type": "non_standard", "value": {"type": "tool_use", "id": "c1", "name": "look",
                                           "input": {"at": "door"}}},
    ],
    ids=lambda block: block["type"],
)  # fmt: skip
def test_a_call_that_stands_twice_is_one_call(block: dict[str, Any]) -> None:
    """Calls live in `.tool_calls` and in the content: twice counted, they fold too early."""
    twice = AIMessage([{"type": "text", "text": "Let me look."}, block], tool_calls=[CALL])
    once = AIMessage("Let me look.", tool_calls=[CALL])
    only_block = AIMessage([{"type": "text", "text": "Let me look."}, block])

    assert view(twice).calls == (ToolCall("c1", "look", '{"at":"door"}'),)
    assert count_message(twice) == count_message(once) == count_message(only_block)


def test_a_call_is_counted_as_the_json_that_is_sent() -> None:
    """A Python repr of nested arguments counts quotes and `None`s nobody is charged for."""
    nested = {"filter": {"status": ["open", "late"], "owner": None}, "limit": 5}
    message = AIMessage("", tool_calls=[{**CALL, "args": nested}])

    assert view(message).calls[0].arguments == (
        '{"filter":{"owner":null,"status":["open","late"]},"limit":5}'
    )


def test_a_malformed_call_counts_and_is_answered_by_its_message() -> None:
    """Providers are sent malformed calls, too; the error message that follows belongs to one."""
    broken = {"name": "look", "args": '{"at": "do' * 50, "id": "c1", "error": None}
    message = AIMessage("", invalid_tool_calls=[broken])
    history = [HumanMessage("Look."), message, ToolMessage("bad JSON", tool_call_id="c1")]

    assert count_message(message) > 100
    assert not repair(history).changed


def test_a_malformed_call_in_the_content_is_not_counted_again() -> None:
    """Standard blocks repeat malformed calls, as they do sound ones."""
    broken = {"name": "look", "args": '{"at": "do', "id": "c1", "error": None}
    block = {**broken, "type": "invalid_tool_call"}
    once = AIMessage("", invalid_tool_calls=[broken])

    assert count_message(AIMessage([block], invalid_tool_calls=[broken])) == count_message(once)


def test_function_calls_of_old_providers_pair_by_name() -> None:
    """Stored conversations of the first protocol have no call ids."""
    asks = AIMessage(
        "", additional_kwargs={"function_call": {"name": "look", "arguments": '{"at": "door"}'}}
    )
    history = [HumanMessage("Look."), asks, FunctionMessage(name="look", content="Shut.")]

    assert not repair(history).changed
    answered = repair([*history[:2], HumanMessage("Well?")])
    assert isinstance(answered[2], FunctionMessage)


STANDARD: list[dict[str, Any]] = [
    {"type": "text", "text": "A door."},
    {"type": "text-plain", "text": "A door.", "mime_type": "text/plain", "source_type": "text"},
    {"type": "reasoning", "reasoning": "It may be shut."},
    {"type": "image", "url": "https://example.org/door.png"},
    {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
    {"type": "video", "url": "https://example.org/door.mp4"},
    {"type": "file", "base64": "AAAA", "mime_type": "application/pdf"},
    {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "doors"}},
    {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": "doors"},
    {"type": "refusal", "refusal": "I cannot open it."},
    {"type": "non_standard", "value": {"type": "text", "text": "A door."}},
]


@pytest.mark.parametrize("block", STANDARD, ids=lambda block: block["type"])
def test_every_standard_block_is_known(block: dict[str, Any]) -> None:
    """An unknown block warns and is charged as JSON, which is a guess."""
    message = AIMessage([block])

    assert view(message).unknown == ()
    assert count_message(message) > 4


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BLOB}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{BLOB}"},
        {"type": "image", "base64": BLOB, "mime_type": "image/png"},
        {"type": "file", "base64": BLOB, "mime_type": "application/pdf"},
        {"type": "audio", "base64": BLOB, "mime_type": "audio/wav"},
    ],
    ids=["image_url", "input_image", "image", "file", "audio"],
)
def test_media_cost_what_media_cost(block: dict[str, Any]) -> None:
    """Base64 counted as text inflates a message a hundredfold and trims everything else away."""
    assert count_message(HumanMessage([{"type": "text", "text": "See."}, block])) < 45_000
    text = HumanMessage("What is this?")
    fitted = fit_messages([HumanMessage([block]), AIMessage("A door."), text], budget=60_000)
    assert not fitted.changed


def test_sealed_reasoning_is_not_text() -> None:
    """Encrypted reasoning costs what the provider says it costs, never its characters."""
    thought: dict[str, Any] = {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "gAAAA" * 4000,
    }
    sealed = AIMessage([thought, {"type": "text", "text": "Open it."}])

    assert count_message(sealed) == count_message(AIMessage("Open it."))
    assert view(sealed).signed


def test_reasoning_kept_beside_the_content_counts() -> None:
    """Some packages keep it in `additional_kwargs` and send it again."""
    beside = AIMessage("Open it.", additional_kwargs={"reasoning_content": "It may be shut. " * 9})

    assert count_message(beside) > count_message(AIMessage("Open it.")) + 20


def test_what_is_never_sent_never_counts() -> None:
    """Artifacts, metadata and usage are for the program, not for the model."""
    bare = ToolMessage("4", tool_call_id="c1")
    rich = ToolMessage("4", tool_call_id="c1", artifact={"rows": "x" * 9999})
    told = AIMessage("4", response_metadata={"headers": "x" * 9999})

    assert count_message(bare) == count_message(rich)
    assert count_message(told) == count_message(AIMessage("4"))


def test_a_changed_copy_keeps_everything_else() -> None:
    """A shortened result that lost its id or artifact breaks the graph it came from."""
    given = ToolMessage(
        "long " * 50, tool_call_id="c1", id="m1", name="look", artifact={"rows": 4}, status="error"
    )
    before = copy.deepcopy(given)
    short = SHAPE.with_results(given, {"c1": "short"})

    assert given == before
    assert short.content == "short"
    assert short.model_copy(update={"content": given.content}) == given


@pytest.mark.parametrize("is_anthropic", [False, True])
def test_a_picture_in_a_result_stays_unless_it_is_told_to_go(*, is_anthropic: bool) -> None:
    """A picture that goes with the words that were cut is lost without a mark."""
    picture = {"type": "image", "source_type": "base64", "data": "QUJD" * 200}
    wrapped = {"type": "non_standard", "value": {"type": "text", "text": "more words"}}
    blocks: list[Any] = [{"type": "text", "text": "words"}, wrapped, picture]
    given: Any = ToolMessage(blocks, tool_call_id="c1")
    if is_anthropic:
        given = HumanMessage([{"type": "tool_result", "tool_use_id": "c1", "content": blocks}])
    (read,) = view(given).results
    assert len(read.media) == 1
    (kept,) = view(SHAPE.with_results(given, {"c1": "cut"})).results
    (bare,) = view(SHAPE.with_results(given, {"c1": "cut"}, bare={"c1"})).results
    assert (kept.text, kept.media) == ("cut", read.media)
    assert (bare.text, bare.media) == ("cut", ())


def test_another_text_leaves_the_other_blocks_alone() -> None:
    """Tool use and images around a text must survive an edit of the text."""
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "door"}}
    usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    given = AIMessage(["Let me \ud800look.", use], tool_calls=[CALL], id="m1", usage_metadata=usage)
    (cleaned,) = fit_messages([given], budget=1000).messages

    assert cleaned.content == ["Let me \ufffdlook.", use]
    assert (cleaned.tool_calls, cleaned.id, cleaned.usage_metadata) == ([CALL], "m1", usage)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_notes_say_that_no_person_wrote_them(role: Any) -> None:
    """A frontend hides them, and a later fit does not take one for the user's question."""
    note = SHAPE.note("Earlier: nothing.", role)

    assert view(note).role == role
    assert view(note).injected
    assert not view(note).is_user_turn
    assert note.additional_kwargs["lc_source"] == "muntin"


def test_a_tool_cannot_say_a_note() -> None:
    """A tool message without a call is refused by every provider."""
    with pytest.raises(ConfigurationError, match="not by 'tool'"):
        SHAPE.note("x", "tool")


def test_a_pinned_message_stays() -> None:
    """What the caller pins has to survive every cut."""
    pinned = HumanMessage("My name is Ada.", additional_kwargs={MARK: "pinned"})
    talk: list[BaseMessage] = [pinned]
    for at in range(60):
        talk += [HumanMessage(f"Question {at}?"), AIMessage(f"Answer {at}, at some length.")]

    fitted = fit_messages(talk, budget=300)

    assert fitted.changed
    assert pinned in fitted.messages
    assert count_messages(fitted.messages) <= 300
