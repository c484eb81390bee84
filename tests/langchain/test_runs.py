# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""What runs around us reaches what runs inside: pauses of a graph, its store, a run's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from langchain_agents import prose
from langchain_muntin import (
    AssembledRetriever,
    ContextAssembler,
    RunnableSource,
    StoreSource,
    compact_messages,
)
from langchain_muntin.testing import StrictChatModel
from muntin import CallableSource, ContextBuilder, ContextConfig, ContextSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint


class Asking(ContextSource):
    """Ask a person, as a source of one's own does."""

    name = "rag"

    def fetch(self, query: str, scope: Any = None) -> list[Any]:
        return ask(query)


def ask(query: Any) -> Any:
    return [interrupt("Which book?")]


async def aask(query: Any) -> Any:
    return [interrupt("Which book?")]


def in_graph(plain: Callable[[Any], str], twin: Any, entry_point: EntryPoint) -> Any:
    """Run a function as the only node of a graph, pause, answer, and return both states."""

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(plain(state["messages"]))]}

    async def anode(state: Any) -> Any:
        return {"messages": [AIMessage(await twin(state["messages"]))]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node if entry_point.name == "sync" else anode)
    graph.add_edge(START, "node")
    made: Any = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    paused = entry_point(made.invoke, made.ainvoke, {"messages": [HumanMessage("meals?")]}, config)
    done = entry_point(made.invoke, made.ainvoke, Command(resume="The red one."), config)
    return paused, done["messages"][-1].text


PAUSING: dict[str, Any] = {
    "a function": {"rag": ask},
    "a runnable": {"rag": RunnableLambda(ask, afunc=aask)},
    "a source that may be left out": [CallableSource("rag", ask, on_error="skip")],
    "a source of one's own": [Asking()],
    "a source with a timeout": [
        RunnableSource("rag", RunnableLambda(ask, afunc=aask), timeout=60, on_error="skip")
    ],
    "one among several": {"memory": lambda query: ["Ada is here."], "rag": ask},
    "beside one that fails later": [
        CallableSource("rag", ask, on_error="skip"),
        CallableSource("web", lambda query: 1 / 0, on_error="skip"),
    ],
}


@pytest.mark.parametrize("sources", PAUSING.values(), ids=PAUSING)
def test_a_source_may_pause_the_graph_it_runs_in(entry_point: EntryPoint, sources: Any) -> None:
    """A question to a person that is taken for a failure is never asked."""
    assembler = ContextAssembler(window=8000, sources=sources)

    async def twin(messages: Any) -> str:
        return (await assembler.ainvoke(messages)).messages[0].text

    paused, text = in_graph(
        lambda given: assembler.invoke(given).messages[0].text, twin, entry_point
    )
    assert [one.value for one in paused["__interrupt__"]] == ["Which book?"]
    assert "The red one." in text


def test_a_retriever_and_a_builder_let_a_pause_through(entry_point: EntryPoint) -> None:
    """Whichever entry point of ours stands between a graph and a source."""
    retriever = AssembledRetriever(sources={"rag": ask})
    builder = ContextBuilder(ContextConfig(max_tokens=4000))
    sources = [CallableSource("rag", ask, on_error="skip")]

    async def retrieved(messages: Any) -> str:
        return (await retriever.ainvoke("meals?"))[0].page_content

    async def built(messages: Any) -> str:
        return await builder.abuild("meals?", sources=sources)

    for plain, twin in (
        (lambda _: retriever.invoke("meals?")[0].page_content, retrieved),
        (lambda _: builder.build("meals?", sources=sources), built),
    ):
        paused, text = in_graph(plain, twin, entry_point)
        assert paused["__interrupt__"]
        assert "The red one." in text


def test_a_summariser_may_pause_the_graph_it_runs_in(entry_point: EntryPoint) -> None:
    """A recap that a person has to approve is not one that failed."""
    writer = StrictChatModel(window=8000, replies=lambda _: interrupt("May I?"))
    talk = [HumanMessage(prose(60, at)) for at in range(40)]
    short = compact_messages(budget=900, summarizer=writer)

    async def twin(messages: Any) -> str:
        return "".join(one.text for one in await short.ainvoke([*talk, *messages]))

    paused, text = in_graph(
        lambda given: "".join(one.text for one in short.invoke([*talk, *given])), twin, entry_point
    )
    assert paused["__interrupt__"]
    assert "The red one." in text


# --- the configuration of a run ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["retriever", "assembler", "one in the other"])
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: RunnablePassthrough() | one])
def test_sources_see_the_configuration_of_the_run(
    entry_point: EntryPoint, kind: str, wrap: Callable[[Any], Any]
) -> None:
    """A source that cannot see for whom it is asked looks up everybody's."""
    seen: list[Any] = []

    def look_up(query: str, config: RunnableConfig) -> list[str]:
        seen.append((config.get("configurable"), config.get("metadata", {}).get("trip")))
        return [query]

    sources = {"rag": RunnableLambda(look_up)}
    retriever = AssembledRetriever(sources=sources)
    chain = {
        "retriever": retriever,
        "assembler": ContextAssembler(window=8000, sources=sources),
        "one in the other": ContextAssembler(window=8000, sources={"rag": retriever}),
    }[kind]
    config: Any = {"configurable": {"user": "ada"}, "metadata": {"trip": "7"}}
    made = wrap(chain)
    entry_point(made.invoke, made.ainvoke, "meals?", config)

    assert [(dict(told)["user"], trip) for told, trip in seen] == [("ada", "7")]


def test_a_retriever_in_a_node_finds_the_store_of_the_graph(entry_point: EntryPoint) -> None:
    """Memories live in the store of the graph that runs."""
    store = InMemoryStore()
    store.put(("memories",), "diet", {"text": "Ada is a vegetarian."})
    retriever = AssembledRetriever(sources=[StoreSource("memory", None, ("memories",))])

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(retriever.invoke("lunch?")[0].page_content)]}

    async def anode(state: Any) -> Any:
        return {"messages": [AIMessage((await retriever.ainvoke("lunch?"))[0].page_content)]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node if entry_point.name == "sync" else anode)
    graph.add_edge(START, "node")
    made: Any = graph.compile(store=store)
    done = entry_point(made.invoke, made.ainvoke, {"messages": [HumanMessage("x")]})

    assert done["messages"][-1].text == "Ada is a vegetarian."
