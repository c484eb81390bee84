"""Nothing is lost on the way into the core and back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("langchain_core")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_muntin import candidate_of, document_of, from_muntin, to_muntin
from langchain_muntin._values.documents import candidates_of
from muntin import Candidate, ConfigurationError, Message, SourceError
from muntin.messages.message import ToolCall
from muntin.messages.shapes import view

USAGE: Any = {
    "input_tokens": 90, "output_tokens": 9, "total_tokens": 99,
    "input_token_details": {"cache_read": 40},
}  # fmt: skip
CALL: Any = {"name": "look", "args": {"at": "entry_point", "n": 1}, "id": "c1", "type": "tool_call"}
IMAGE = {"type": "image", "url": "https://example.org/door.png"}


class Marked(HumanMessage):
    """A message class of an application."""

    colour: str = "red"


MESSAGES: tuple[BaseMessage, ...] = (
    SystemMessage("Be brief.", id="s"),
    HumanMessage("Hi", name="ada", additional_kwargs={"draft": 1}),
    HumanMessage([{"type": "text", "text": "See."}, IMAGE]),
    Marked(content="Hi", colour="blue"),
    AIMessage("Hello", id="a", usage_metadata=USAGE, response_metadata={"model": "m"}),
    AIMessage("", tool_calls=[CALL]),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": CALL["args"]},
        ],
        tool_calls=[CALL],
    ),
    AIMessage("", invalid_tool_calls=[{"name": "look", "args": "{", "id": "c2", "error": "no"}]),
    AIMessage([
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "doors"}},
        {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": "x"},
        {"type": "non_standard", "value": {"type": "citation", "at": 4}},
    ]),
    AIMessageChunk(content="Hello"),
    ToolMessage("4", tool_call_id="c1", name="look", artifact={"rows": [1]}, status="error"),
    ToolMessage([{"type": "text", "text": "4"}, IMAGE], tool_call_id="c1"),
    FunctionMessage(name="look", content="4"),
    ChatMessage(role="developer", content="Be brief."),
)  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_comes_back_as_it_was(message: BaseMessage) -> None:
    """A converter that drops an id, usage or artifact breaks whoever reads it downstream."""
    before = copy.deepcopy(message)
    back = from_muntin(to_muntin(message))

    assert type(back) is type(message)
    assert back == message == before
    assert back.model_dump() == message.model_dump()


@pytest.mark.parametrize("message", MESSAGES[:8], ids=lambda m: type(m).__name__)
def test_a_message_reads_the_same_in_both_worlds(message: BaseMessage) -> None:
    """Decisions made about the neutral value have to hold for the original."""
    one, other = view(message), view(to_muntin(message))

    assert (one.role, one.text, one.results) == (other.role, other.text, other.results)
    if not getattr(message, "invalid_tool_calls", None):
        assert one.calls == other.calls


def test_what_was_changed_in_between_stays_changed() -> None:
    """A conversion back must not undo an edit."""
    neutral = to_muntin(AIMessage("Long.", id="a", tool_calls=[CALL], usage_metadata=USAGE))
    renamed = ToolCall("c1", "look_up", '{"at": "gate"}')
    back = from_muntin(replace(neutral, content="Short.", tool_calls=(renamed,), pinned=True))

    assert isinstance(back, AIMessage)
    assert back.text == "Short."
    assert back.tool_calls == [
        {"name": "look_up", "args": {"at": "gate"}, "id": "c1", "type": "tool_call"}
    ]
    assert (back.id, back.usage_metadata) == ("a", USAGE)
    assert view(back).pinned


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Message("x", "system"), SystemMessage),
        (Message("x", "user", pinned=True), HumanMessage),
        (Message("x", "assistant", tool_calls=[ToolCall("c1", "look", '{"a": 1}')]), AIMessage),
        (Message("x", "tool", tool_call_id="c1"), ToolMessage),
    ],
)
def test_a_message_that_never_was_one_becomes_one(message: Message, kind: type) -> None:
    """Messages of the core go into LangChain chains as well."""
    made = from_muntin(message)

    assert type(made) is kind
    assert view(made).role == message.role
    assert view(made).pinned == message.pinned
    assert [call.name for call in view(made).calls] == [call.name for call in message.tool_calls]
    assert not view(made).injected


@pytest.mark.parametrize("arguments", ["{", "[1]"])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    """LangChain holds arguments as a dict: half a JSON text cannot become one."""
    message = Message("", "assistant", tool_calls=[ToolCall("c1", "look", arguments)])

    with pytest.raises(ConfigurationError, match="arguments of call 'c1'"):
        from_muntin(message)


@given(
    st.text(),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
    st.none() | st.text(min_size=1),
)
def test_any_text_and_any_arguments_come_back(
    text: str, args: dict[str, Any], message_id: str | None
) -> None:
    """Odd text and empty dicts are where round trips break."""
    message = AIMessage(text, id=message_id, tool_calls=[{**CALL, "args": args}])

    assert from_muntin(to_muntin(message)) == message


# --- documents -----------------------------------------------------------------------------------


def test_a_document_comes_back_as_the_very_object() -> None:
    """Whoever compares documents by identity must find them again."""
    document = Document("Meals.", id="d1", metadata={"page": 3, "relevance_score": 0.5})
    candidate = candidate_of(document)

    assert document_of(candidate) is document
    assert (candidate.score, candidate.id, candidate.metadata["page"]) == (0.5, "d1", 3)
    assert document.metadata == {"page": 3, "relevance_score": 0.5}


def test_a_shortened_document_keeps_its_id_and_metadata() -> None:
    """A citation has to lead to the source, whatever was cut."""
    document = Document("Meals and hotels.", id="d1", metadata={"page": 3})
    short = document_of(replace(candidate_of(document), content="Meals"))

    assert (short.page_content, short.id, short.metadata) == ("Meals", "d1", {"page": 3})
    assert document.page_content == "Meals and hotels."


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (None, None),
        (0, 0.0),
        (True, None),
        ("0.9", None),
        (float("nan"), None),
        (float("inf"), None),
        (np.float32(0.5), 0.5),
    ],
)
def test_only_a_number_is_a_score(given: object, score: float | None) -> None:
    """Rerankers write all sorts of things; NaN as a score makes the order a matter of luck."""
    assert candidate_of(Document("x", metadata={"relevance_score": given})).score == score


def test_a_score_may_be_anywhere() -> None:
    """Not every reranker keeps to the convention."""
    document = Document("x", metadata={"rank": {"value": 0.4}, "other": 0.7})

    assert candidate_of(document, score="other").score == 0.7
    assert candidate_of(document, score=lambda d: d.metadata["rank"]["value"]).score == 0.4


def test_a_candidate_that_never_was_a_document_becomes_one() -> None:
    """A retriever over functions and stores returns documents all the same."""
    made = document_of(Candidate("Ada is a vegetarian.", 0.4, "memory", "m1", metadata={"a": 1}))

    assert (made.id, made.page_content) == ("m1", "Ada is a vegetarian.")
    assert made.metadata == {"a": 1, "source_name": "memory", "relevance_score": 0.4}


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        (None, []),
        ("one", ["one"]),
        (["one", Candidate("two")], ["one", "two"]),
        (Document("one"), ["one"]),
        ((Document("one"), Document("two")), ["one", "two"]),
        ([(Document("one"), 0.4)], ["one"]),
        (HumanMessage("one"), ["user: one"]),
        ((part for part in ["one", "two"]), ["one", "two"]),
    ],
)
def test_a_source_may_hold_many_things(value: object, contents: list[str]) -> None:
    """Retrievers, stores and functions all return something else."""
    assert [candidate.content for candidate in candidates_of(value, name="rag")] == contents


def test_a_score_beside_a_document_is_its_score() -> None:
    """`similarity_search_with_relevance_scores` returns pairs."""
    (candidate,) = candidates_of(
        [(Document("x", metadata={"relevance_score": 0.1}), 0.4)], name="r"
    )

    assert candidate.score == 0.4


@pytest.mark.parametrize("value", [4, b"x", {"page_content": "x"}, [4], [None], [("x", 0.4)]])
def test_anything_else_is_an_error_that_names_the_source(value: object) -> None:
    """A list of the wrong things must not silently become an empty context."""
    with pytest.raises(SourceError, match=r"source 'rag' holds .*: give documents"):
        candidates_of(value, name="rag")
