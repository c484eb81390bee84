# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# `create_agent` and chains have parts without types.
"""What teams do around agents and chains: pickles, notebooks, traces, moving from other classes."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver

from langchain_agents import TASK, fact, prose, rounds, tool
from langchain_muntin import (
    AssembledRetriever,
    BudgetCompressor,
    ContextAssembler,
    ContextWindowMiddleware,
    compact_messages,
)
from langchain_muntin.testing import StrictChatModel
from langchain_worlds import WordEmbeddings
from muntin import (
    CallableSource,
    ConfigurationError,
    ContextBuilder,
    ContextConfig,
    HistoryCompactor,
    ToolResultStore,
    fit_messages,
)

if TYPE_CHECKING:
    from conftest import EntryPoint

LIMIT: Any = {"recursion_limit": 500}
CHAT: list[Any] = [
    message
    for at in range(30)
    for message in (HumanMessage(prose(40, at)), AIMessage(prose(40, 900 + at)))
]


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, **LIMIT}


def recap(text: str, instruction: str) -> str:
    return "They went through the ledgers."


# --- pickles -------------------------------------------------------------------------------------


def test_a_compactor_in_a_pickle_remembers_its_recaps() -> None:
    """A worker that starts without them pays for every recap again."""
    compactor = HistoryCompactor(recap, trigger_tokens=500, keep_recent=2)
    short = compactor.compact(CHAT)
    back = pickle.loads(pickle.dumps(compactor))

    assert [m.text for m in back.compact(CHAT)] == [m.text for m in short]
    assert back.last_outcome.reason == "reused"
    assert back.last_outcome.model_calls == 0


def test_a_store_in_memory_in_a_pickle_is_a_copy_with_its_limits() -> None:
    """A middleware travels to a worker with the originals its marks name."""
    store = ToolResultStore.in_memory(max_bytes=1000, max_age=100)
    first = store.put("the first")
    back = pickle.loads(pickle.dumps(store))
    assert first is not None
    second = back.put("the second")

    assert back.get(first) == "the first"
    assert second in back
    assert second not in store
    assert (back.records.max_bytes, back.records.max_age) == (1000, 100)
    version = back.records.put("a", b"one", expected=None)
    assert back.records.put("a", b"two", expected=version) != version


def test_a_fit_and_a_middleware_with_a_store_can_be_pickled(entry_point: EntryPoint) -> None:
    """Clusters move them between processes."""
    fitted = fit_messages(CHAT, budget=600)
    back = pickle.loads(pickle.dumps(fitted))
    assert (back.messages, back.report.used) == (fitted.messages, fitted.report.used)

    store = ToolResultStore.in_memory()
    key = store.put("kept")
    assert key is not None
    again = pickle.loads(pickle.dumps(ContextWindowMiddleware(window=8000, store=store)))
    assert again.store.get(key) == "kept"
    agent: Any = create_agent(StrictChatModel(window=8000), middleware=[again])
    assert entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]})["messages"]


# --- notebooks and traces ------------------------------------------------------------------------


def test_prompt_context_and_fit_show_their_report_in_a_notebook() -> None:
    """The last line of a cell is what people look at."""
    builder = ContextBuilder(ContextConfig(max_tokens=400))
    sources = [CallableSource("rag", lambda question: ["Letters weigh 80 grams."])]
    shown: list[Any] = [
        fit_messages(CHAT, budget=600),
        builder.assemble("letters?", sources=sources),
        ContextAssembler(window=4000, sources=sources).invoke("letters?"),
    ]
    for one in shown:
        assert one._repr_html_() == one.report._repr_html_()
        assert "</table>" in one._repr_html_()


def test_reports_are_in_the_trace_of_a_run(entry_point: EntryPoint) -> None:
    """Traces keep custom events: who looks at a bad answer finds why a passage was not there."""
    seen: dict[str, list[Any]] = {}

    class Tracer(BaseCallbackHandler):
        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            assert kwargs["run_id"]
            seen.setdefault(name, []).append(data)

    config: Any = {**LIMIT, "callbacks": [Tracer()]}
    assembler = ContextAssembler(window=4000, sources={"rag": lambda question: ["80 grams."]})
    entry_point(assembler.invoke, assembler.ainvoke, "letters?", config)
    model = StrictChatModel(window=6000, replies=rounds(10))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(600, int(key[1:-2])))],
        middleware=[ContextWindowMiddleware()],
    )
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, config)

    assert [one["kind"] for one in seen["muntin.assembly"]] == ["context"]
    assert len(seen["muntin.request"]) == 11
    assert seen["muntin.decision"]
    assert all(one["decisions"] for one in seen["muntin.decision"])


# --- counters of messages ------------------------------------------------------------------------

MODEL = StrictChatModel(window=8000)
COUNTERS: dict[str, Any] = {
    "LangChain's estimate": count_tokens_approximately,
    "a method of the model": MODEL.get_num_tokens_from_messages,
    "the other method": MODEL.get_num_tokens,
    "the model": MODEL,
    "a name": "gpt-4o",
    "a sum over messages": lambda messages: sum(len(m.content) for m in messages),
    "of one message": lambda message: len(message.content),
}
ENTRY_POINTS: dict[str, Any] = {
    "compact_messages": lambda counter: compact_messages(CHAT, budget=6000, counter=counter),
    "curried": lambda counter: compact_messages(budget=6000, counter=counter).invoke(CHAT),
    "middleware": lambda counter: create_agent(
        MODEL, middleware=[ContextWindowMiddleware(window=9000, reserve=0, counter=counter)]
    ).invoke({"messages": [*CHAT, HumanMessage("?")]}),
    "assembler": lambda counter: ContextAssembler(budget=6000, counter=counter).invoke(
        [*CHAT, HumanMessage("?")]
    ),
    "retriever": lambda counter: AssembledRetriever(
        sources={"rag": lambda question: [Document("a b")]}, budget=6000, counter=counter
    ).invoke("?"),
    "compressor": lambda counter: BudgetCompressor(budget=6000, counter=counter).compress_documents(
        [Document("a b")], "?"
    ),
}


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("counter", COUNTERS)
def test_every_counter_people_have_counts_at_every_entry_point(counter: str, entry: str) -> None:
    """A counter of messages that is given a text fails, or keeps 2 of 11 messages in silence."""
    assert ENTRY_POINTS[entry](COUNTERS[counter])


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize(
    "wrong",
    [{}, 7, lambda: 3, lambda text: "many"],
    ids=["a dict", "a number", "no argument", "a text"],
)
def test_what_does_not_count_is_refused_by_name(wrong: Any, entry: str) -> None:
    """It fails at the first request otherwise, far from where it was given."""
    with pytest.raises(ConfigurationError, match="counter"):
        ENTRY_POINTS[entry](wrong)


# --- chains and what people had before -----------------------------------------------------------


def test_a_class_or_a_prompt_without_a_question_in_a_chain_says_what_to_do() -> None:
    """`prompt | ContextAssembler` is one of the first things people type."""
    prompt = ChatPromptTemplate.from_messages([("human", "{question}")])
    chain: Any = prompt | ContextAssembler
    with pytest.raises(ConfigurationError, match=r"write prompt \| ContextAssembler\(model=model"):
        chain.invoke({"question": "letters?"})
    only_system = ChatPromptTemplate.from_messages([("system", "Use this: {context}")])
    with pytest.raises(ConfigurationError, match=r"Leave \{context\} out of it"):
        (only_system | ContextAssembler(window=4000)).invoke({"context": "80 grams."})


@pytest.mark.parametrize(
    "given",
    [
        {"window": 8000, "budget": 4000},
        {"budget": 4000},
        {"window": 8000, "max_tokens": 4000},
    ],
    ids=str,
)
def test_a_budget_is_an_int_at_every_entry_point(given: dict[str, Any]) -> None:
    """An int for a configuration was an AttributeError at the first call."""
    model = StrictChatModel(window=8000)
    agent: Any = create_agent(model, middleware=[ContextWindowMiddleware(**given)])
    agent.invoke({"messages": [*CHAT * 4, HumanMessage("?")]}, LIMIT)
    assert model.sent[0].tokens <= 4000
    assert ContextAssembler(**given).invoke([*CHAT * 4, HumanMessage("?")]).report.used <= 4000
    with pytest.raises(ConfigurationError, match=r"give \{.name.: source"):
        AssembledRetriever(sources=lambda question: ["a"])


def test_every_text_is_embedded_once(entry_point: EntryPoint) -> None:
    """Passages come again with every question, and each costs a request."""
    embedded: list[str] = []

    class Counting(WordEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            embedded.extend(texts)
            return super().embed_documents(texts)

    passages = [Document(prose(30, at)) for at in range(20)]
    makers: list[Any] = [
        ContextAssembler(window=4000, sources={"a": lambda _: passages}, embeddings=Counting()),
        AssembledRetriever(sources={"a": lambda _: passages}, budget=900, embeddings=Counting()),
    ]
    for made in makers:
        embedded.clear()
        for question in ("which ledger?", "which vendor?", "which ledger?"):
            entry_point(made.invoke, made.ainvoke, question)
        assert sorted(embedded) == sorted(one.page_content for one in passages)


def test_a_page_and_a_source_reach_the_model() -> None:
    """Citations need them, and metadata never reached the prompt."""
    from muntin import Layout

    documents = [Document("Letters weigh 80 grams.", metadata={"title": "Rules", "page": 7})]
    chain: Any = {
        "rag": RunnableLambda(lambda _: documents),
        "question": RunnablePassthrough(),
    } | ContextAssembler(window=4000, layout=Layout(item="{content} [{title}, p. {page}]"))

    assert "Letters weigh 80 grams. [Rules, p. 7]" in chain.invoke("letters?").to_string()


# --- what is stored ------------------------------------------------------------------------------


def test_a_checkpoint_stops_growing_over_forty_rounds() -> None:
    """Forty rounds on a checkpointer stored 22.7 MB, because every step writes all messages."""

    def sizes(*, trim: bool) -> list[int]:
        saver = InMemorySaver()
        model = StrictChatModel(window=8000, replies=rounds(40))
        agent: Any = create_agent(
            model,
            tools=[tool(lambda key: f"{prose(500, int(key[1:-2]))}\n{fact(int(key[1:-2]))}")],
            middleware=[ContextWindowMiddleware(trim_state=trim)],
            checkpointer=saver,
        )
        agent.invoke({"messages": [("user", TASK)]}, thread("t"))
        states = [one.values["messages"] for one in agent.get_state_history(thread("t"))]
        return [sum(len(message.text) for message in state) for state in reversed(states) if state]

    grown, trimmed = sizes(trim=False), sizes(trim=True)
    middle, end = len(trimmed) // 2, len(trimmed)

    assert max(grown) == grown[-1] > 1.8 * grown[middle]
    assert max(trimmed[middle:end]) <= 1.1 * max(trimmed[:middle])
    assert max(trimmed) < max(grown) / 2
