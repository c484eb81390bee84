# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Graphs and runnables are typed by the state, which only the graph knows.
"""Fitting as a step of a chain, a node of a graph, a hook, and behind an old chat history."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

import itertools

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from langchain_agents import TASK, call, prose, result, rounds, says_task, shared_prefix, tool
from langchain_muntin import (
    CompactingChatMessageHistory,
    ModelSummarizer,
    compact_messages,
    context_window_node,
)
from langchain_muntin.testing import StrictChatModel
from muntin import (
    AgentState,
    ConfigurationError,
    ContextWindowExceeded,
    HistoryCompactor,
    count_messages,
    counter_for,
)
from muntin.runtime.flow import SummaryRequest
from muntin.testing import check_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint

COUNT = counter_for(None)
TALK: list[BaseMessage] = [
    SystemMessage("Be brief."),
    *(
        message
        for at in range(60)
        for message in (
            HumanMessage(f"Where is order A-{at}?"),
            AIMessage(f"Order A-{at} is on its way."),
        )
    ),
    HumanMessage(TASK),
]


# --- compact_messages ----------------------------------------------------------------------------


def test_it_can_be_called_and_curried(entry_point: EntryPoint) -> None:
    """People use `trim_messages` both ways."""
    step = compact_messages(budget=400)
    kept: list[BaseMessage] = entry_point(step.invoke, step.ainvoke, TALK)

    assert kept == compact_messages(TALK, budget=400)
    assert count_messages(kept, counter=COUNT) <= 400
    assert (kept[0], kept[-1]) == (TALK[0], TALK[-1])


def test_it_stands_in_a_chain(entry_point: EntryPoint) -> None:
    """Between a prompt and a model, it takes what prompts give."""
    model = StrictChatModel(window=1000, replies=["In March."])
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be brief."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    chain = prompt | compact_messages(model=model) | model
    reply = entry_point(chain.invoke, chain.ainvoke, {"history": TALK[1:], "question": TASK})

    assert reply.text == "In March."
    assert says_task(model.sent[0].messages)


def test_no_budget_leaves_a_broken_pair_or_nothing() -> None:
    """`trim_messages` breaks pairs at most budgets, and may return the system message alone."""
    history = [
        SystemMessage("Be brief."),
        HumanMessage("Look."),
        call("a"),
        result("a", prose(60)),
        AIMessage("Done."),
        HumanMessage(TASK),
    ]
    whole = count_messages(history, counter=COUNT)
    sendable = 0
    for budget in range(1, whole + 1):
        kept: list[BaseMessage] | None = None
        with contextlib.suppress(ContextWindowExceeded):
            kept = compact_messages(history, budget=budget)
        if kept is None:
            continue
        sendable += 1
        assert check_request(kept, counter=COUNT) <= budget
        assert says_task(kept)

    assert sendable > whole / 2


def test_every_message_is_counted_once() -> None:
    """A count of thousands of messages per step is what makes trimming slow."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return len(text.split())

    compact_messages(TALK, budget=100_000, counter=counter)
    first = len(counted)
    compact_messages([*TALK, AIMessage("Yes.")], budget=100_000, counter=counter)

    assert first <= 2 * len(TALK)
    assert len(counted) - first <= 2


def test_it_wants_to_know_how_much() -> None:
    """Without a number there is nothing to fit into."""
    with pytest.raises(ConfigurationError, match="give budget="):
        compact_messages(TALK)
    with pytest.raises(ConfigurationError, match="is unknown"):
        compact_messages(TALK, model=StrictChatModel(says_window=False))
    with pytest.raises(ConfigurationError, match="give a model"):
        context_window_node()


# --- nodes ---------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    llm_input_messages: list[Any]
    muntin_decision: dict[str, Any] | None


def graph(model: StrictChatModel, **more: Any) -> Any:
    made = StateGraph(State)
    made.add_node("fit", context_window_node(model, **more))

    def talk(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["llm_input_messages"])]}  # pyright: ignore[reportTypedDictNotRequiredAccess] - the node before wrote it

    made.add_node("talk", talk)
    made.add_edge(START, "fit")
    made.add_edge("fit", "talk")
    return made.compile(checkpointer=InMemorySaver())


def test_a_node_leaves_the_history_alone(entry_point: EntryPoint) -> None:
    """What is sent is written beside the conversation, never over it."""
    model = StrictChatModel(window=1000)
    compiled = graph(model)
    config: Any = {"configurable": {"thread_id": "t1"}}
    done = entry_point(compiled.invoke, compiled.ainvoke, {"messages": TALK}, config)

    assert len(done["messages"]) == len(TALK) + 1
    assert model.refused == []
    assert says_task(model.sent[0].messages)


def test_requests_of_a_node_only_grow_between_decisions(entry_point: EntryPoint) -> None:
    """The decision is in the state, so the prompt cache holds over many turns."""
    model = StrictChatModel(window=2000)
    compiled = graph(model, system_prompt="Be brief.")
    config: Any = {"configurable": {"thread_id": "t1"}}
    entry_point(compiled.invoke, compiled.ainvoke, {"messages": TALK[1:]}, config)
    for at in range(6):
        entry_point(
            compiled.invoke, compiled.ainvoke, {"messages": [("user", f"And {at}?")]}, config
        )
    sent = [request.messages for request in model.sent]

    assert model.refused == []
    assert sent[0][0].text == "Be brief."
    assert all(shared_prefix(a, b) == 1 for a, b in itertools.pairwise(sent))


def test_the_node_is_a_hook_before_the_model(entry_point: EntryPoint) -> None:
    """Agents of LangGraph's first kind take it as their `pre_model_hook`."""
    prebuilt: Any = importlib.import_module("langgraph.prebuilt")

    model = StrictChatModel(window=8000, replies=rounds(14))
    look_up = tool(lambda key: prose(700, len(key) + int(key[1:-2])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and still there
        agent: Any = prebuilt.create_react_agent(
            model, [look_up], pre_model_hook=context_window_node(model.bind_tools([look_up]))
        )
    given = {"messages": [("user", TASK)]}
    done = entry_point(agent.invoke, agent.ainvoke, given, {"recursion_limit": 200})

    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent)
    assert len(done["messages"]) == 1 + 14 * 2 + 1


def test_a_state_that_is_an_object_can_be_read() -> None:
    """Graphs over pydantic models and dataclasses hand nodes objects."""

    class Held:
        messages = TALK

    made = context_window_node(budget=1000, restate=lambda state: AgentState(goal="Find it"))
    written = made.invoke(Held())

    assert written["llm_input_messages"][-1].text == TASK
    assert "Find it" in "".join(m.text for m in written["llm_input_messages"])
    assert written["muntin_decision"]["covered"] == len(TALK) - 1  # all but the system message


def test_a_state_without_messages_is_an_error_that_names_the_key() -> None:
    """A misspelt key would be told of as a type nobody gave."""
    node = context_window_node(budget=1000, messages_key="talk")

    with pytest.raises(ConfigurationError, match="no messages under 'talk'"):
        node.invoke({"messages": TALK})


def test_an_answer_as_large_as_the_window_is_an_error_that_says_so() -> None:
    """What is too large then is not the conversation."""
    model = StrictChatModel(window=8000).bind(max_tokens=8000)

    with pytest.raises(ConfigurationError, match="8000 tokens are asked for the answer"):
        compact_messages(TALK, model=model)


def test_what_a_node_writes_can_be_told_from_answers_in_a_stream() -> None:
    """A recap on the user's screen is one nobody asked for."""
    compiled = graph(StrictChatModel(window=1000, replies=["In March."]), system_prompt="Brief.")
    config: Any = {"configurable": {"thread_id": "t1"}}
    parts = list(compiled.stream({"messages": TALK}, config, stream_mode="messages"))
    shown = [part.text for part, about in parts if about["langgraph_node"] != "fit"]

    assert "".join(shown) == "In March."


# --- the old ways --------------------------------------------------------------------------------


class Kept(BaseChatMessageHistory):
    """A history as applications write it."""

    def __init__(self) -> None:
        self.messages = []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.messages.extend(messages)

    def clear(self) -> None:
        self.messages.clear()


def reading(entry_point: EntryPoint, history: BaseChatMessageHistory) -> list[BaseMessage]:
    """Read a history through one of its two entry points."""
    return entry_point(lambda: history.messages, history.aget_messages)


def test_a_history_reads_short_and_keeps_everything(entry_point: EntryPoint) -> None:
    """Reading compacts; what is stored stays stored."""
    writer = StrictChatModel(window=4000, replies=["Many orders are on their way."])
    short = CompactingChatMessageHistory(
        Kept(), summarizer=writer, keep_recent=2, trigger_tokens=200
    )
    entry_point(short.add_messages, short.aadd_messages, TALK[1:])
    messages = reading(entry_point, short)

    assert messages[0].text == "[Recap] Many orders are on their way."
    assert messages[-1].text == TASK
    assert len(short.inner.messages) == len(TALK) - 1
    assert short.last_outcome is not None
    assert len(writer.sent) == 1
    entry_point(short.clear, short.aclear)
    assert short.inner.messages == []


def test_a_failing_recap_loses_nothing(entry_point: EntryPoint) -> None:
    """Then the whole history is read, and the next reading tries again."""

    def fails(text: str, instruction: str) -> str:
        raise TimeoutError("no answer")

    compactor = HistoryCompactor(fails, keep_recent=2, trigger_tokens=200)
    short = CompactingChatMessageHistory(Kept(), compactor=compactor)
    short.add_messages(TALK[1:])
    assert reading(entry_point, short) == TALK[1:]


@pytest.mark.parametrize(
    "knobs",
    [{"trigger_tokens": 200}, {"summarizer": print}, {"summarizer": print, "keep_recent": 1}],
)
def test_a_knob_beside_a_compactor_is_an_error(knobs: dict[str, Any]) -> None:
    """A knob that is taken and not obeyed is looked for in the wrong place."""
    with pytest.raises(ConfigurationError, match=", ".join(knobs)):
        CompactingChatMessageHistory(Kept(), compactor=HistoryCompactor(), **knobs)


def test_a_chain_with_message_history_takes_it() -> None:
    """The wrapper that existing chains use has not gone away yet."""
    from langchain_core.runnables.history import RunnableWithMessageHistory

    model = StrictChatModel(window=2000, replies=["Yes."])
    short = CompactingChatMessageHistory(Kept(), keep_recent=2, trigger_tokens=200)
    short.add_messages(TALK[1:-1])
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{q}")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated in favour of LangGraph's persistence
        chain = RunnableWithMessageHistory(
            prompt | model,
            lambda: short,
            input_messages_key="q",
            history_messages_key="history",
            history_factory_config=[],
        )
        chain.invoke({"q": TASK})

    assert len(model.sent[0].messages) < 8
    assert short.inner.messages[-2].text == TASK


def test_a_summariser_never_exceeds_its_window(entry_point: EntryPoint) -> None:
    """The text it is given may be a hundred times its window."""
    writer = StrictChatModel(window=2000, max_tokens=200, replies=["Short."])
    summarizer = ModelSummarizer(writer)
    request = SummaryRequest(text=prose(20_000), instruction="Shorten.", max_tokens=100)

    assert entry_point(summarizer.answer, summarizer.aanswer, request) == "Short."
    one_word = SummaryRequest(text="x" * 60_000, instruction="Shorten.", max_tokens=100)
    assert entry_point(summarizer.answer, summarizer.aanswer, one_word) == "Short."
    assert writer.refused == []
    assert summarizer.context_window == 2000
    assert ModelSummarizer(StrictChatModel(says_window=False)).context_window is None
    with pytest.raises(ConfigurationError, match="max_input_tokens"):
        ModelSummarizer(writer, max_input_tokens=0)
