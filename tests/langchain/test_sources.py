# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""Retrievers, runnables, stores and histories as sources, through both entry points."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from langchain_muntin import ChatHistorySource, RetrieverSource, RunnableSource, StoreSource
from langchain_muntin.sources import source_of, sources_of
from langchain_worlds import LIBRARY, BM25Retriever, library_store
from muntin import (
    AsyncSourceError,
    CallableSource,
    Candidate,
    ConfigurationError,
    ContextSource,
    Scope,
    SourceError,
)

if TYPE_CHECKING:
    from conftest import EntryPoint


def fetched(entry_point: EntryPoint, source: ContextSource, *given: Any) -> list[Candidate]:
    found: Any = entry_point(source.fetch, source.afetch, *given)
    return list(found)


def test_a_vector_store_is_a_source(entry_point: EntryPoint) -> None:
    """The retriever most people have has to work as it is."""
    source = RetrieverSource("rag", library_store().as_retriever(search_kwargs={"k": 2}))

    assert {one.id for one in fetched(entry_point, source, "meals per day")} == {"d0", "d5"}


def test_a_sync_retriever_is_a_source_in_both_entry_points(entry_point: EntryPoint) -> None:
    """A retriever without an async method must not block the loop, nor be given a scope."""
    source = RetrieverSource("rag", BM25Retriever(documents=LIBRARY, k=1))

    assert [one.id for one in fetched(entry_point, source, "taxis", Scope(user="ada"))] == ["d3"]


def test_a_runnable_is_a_source(entry_point: EntryPoint) -> None:
    """A retriever is often the end of a chain that rewrites the question."""
    rewrite = RunnableLambda(lambda question: f"{question} receipt tips")
    source = RunnableSource("rag", rewrite | BM25Retriever(documents=LIBRARY, k=1))

    assert [one.id for one in fetched(entry_point, source, "taxis")] == ["d3"]


def test_a_runnable_that_returns_nothing_readable_is_named(entry_point: EntryPoint) -> None:
    """A chain that ends in a dict is a mistake of wiring, and should be called one."""
    source = RunnableSource("rag", RunnableLambda(lambda question: {"docs": []}))

    with pytest.raises(SourceError, match="source 'rag' holds dict"):
        fetched(entry_point, source, "taxis")


def test_a_store_is_a_source(entry_point: EntryPoint) -> None:
    """What an agent remembers across threads is a source like any other."""
    memory = pytest.importorskip("langgraph.store.memory")
    store = memory.InMemoryStore()
    store.put(("memories", "ada"), "diet", {"text": "Ada is a vegetarian."})
    store.put(("memories", "ada"), "raw", {"likes": ["tea"]})
    store.put(("memories", "bob"), "diet", {"text": "Bob eats anything."})
    source = StoreSource("memory", store, ("memories", "{user}"))
    found = fetched(entry_point, source, "lunch?", Scope(user="ada"))

    assert {one.content for one in found} == {"Ada is a vegetarian.", '{"likes":["tea"]}'}
    by_function = StoreSource("memory", store, lambda scope: ("memories", "bob"), text="text")
    assert [one.id for one in fetched(entry_point, by_function, "lunch?")] == ["diet"]


def test_a_store_asks_for_nobody_in_particular_only_when_told_to(entry_point: EntryPoint) -> None:
    """A missing user must not become everybody's memories."""
    memory = pytest.importorskip("langgraph.store.memory")
    source = StoreSource("memory", memory.InMemoryStore(), ("memories", "{user}"))

    with pytest.raises(SourceError, match="needs a scope with 'user'"):
        fetched(entry_point, source, "lunch?", Scope(agent="a"))


def test_an_earlier_conversation_is_a_source(entry_point: EntryPoint) -> None:
    """Tool rounds and system messages of another thread say nothing to this one."""
    call: Any = {"name": "look", "args": {}, "id": "c1"}
    talk: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("I moved to Oslo."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("ok", tool_call_id="c1"),
        AIMessage("Noted."),
    ]

    class Kept:
        messages = talk

        async def aget_messages(self) -> list[BaseMessage]:
            return talk

    for history in (talk, Kept(), lambda: talk):
        found = fetched(entry_point, ChatHistorySource("memory", history), "where?")
        assert [one.content for one in found] == ["assistant: Noted.", "user: I moved to Oslo."]
    assert len(fetched(entry_point, ChatHistorySource("memory", talk, last=1), "where?")) == 1
    with pytest.raises(SourceError, match="needs messages"):
        fetched(entry_point, ChatHistorySource("memory", ["x"]), "where?")


def test_a_conversation_may_be_fetched_by_an_async_function(entry_point: EntryPoint) -> None:
    """Conversations lie in databases, and their clients are async."""

    async def fetch() -> list[BaseMessage]:
        return [HumanMessage("I moved to Oslo.")]

    source = ChatHistorySource("memory", fetch)
    if entry_point.name == "sync":
        with pytest.raises(AsyncSourceError, match="use the async door"):
            fetched(entry_point, source, "where?")
    else:
        assert [one.content for one in fetched(entry_point, source, "where?")] == [
            "user: I moved to Oslo."
        ]


def test_the_three_ways_to_give_a_source_and_values_are_told_apart(entry_point: EntryPoint) -> None:
    """What stands under a name says itself what it is."""
    retriever = BM25Retriever(documents=LIBRARY, k=1)
    runnable = RunnableLambda(lambda question: ["x"])
    ours = CallableSource("rag", lambda question: ["x"])

    async def later(question: str) -> list[Document]:
        return [Document("x")]

    assert isinstance(source_of("rag", retriever), RetrieverSource)
    assert isinstance(source_of("rag", runnable), RunnableSource)
    assert source_of("rag", ours) is ours
    assert [
        one.content for one in fetched(entry_point, source_of("rag", [Document("x")]), "q")
    ] == ["x"]
    by_function = source_of("rag", lambda question: Document(question))
    assert [one.content for one in fetched(entry_point, by_function, "q")] == ["q"]
    assert [one.content for one in asyncio.run(source_of("rag", later).afetch("q"))] == ["x"]
    with pytest.raises(ConfigurationError, match="named 'rag' is given as 'memory'"):
        source_of("memory", ours)


@pytest.mark.parametrize("knob", [{"timeout": 0}, {"on_error": "ignore"}], ids=str)
def test_a_knob_out_of_range_is_refused_where_it_is_given(knob: dict[str, Any]) -> None:
    """A misspelt `on_error` found out when a source fails is found out in production."""
    retriever = BM25Retriever(documents=LIBRARY, k=1)
    makers = (
        lambda: RetrieverSource("rag", retriever, **knob),
        lambda: RunnableSource("rag", retriever, **knob),
        lambda: StoreSource("rag", **knob),
    )
    for make in makers:
        with pytest.raises(ConfigurationError, match=next(iter(knob))):
            make()


def test_a_function_may_take_the_scope(entry_point: EntryPoint) -> None:
    """Wrapping a function for LangChain must not hide its second parameter."""
    source = source_of("memory", lambda question, scope: [f"{scope.user}: {question}"])

    assert fetched(entry_point, source, "hi", Scope(user="ada"))[0].content == "ada: hi"


def test_a_list_of_sources_holds_sources() -> None:
    """A bare retriever in a list has no name, so no quota."""
    ours = CallableSource("rag", lambda question: ["x"])

    assert sources_of([ours]) == sources_of(ours) == (ours,)
    with pytest.raises(ConfigurationError, match="use a mapping of name"):
        sources_of([BM25Retriever(documents=LIBRARY)])
