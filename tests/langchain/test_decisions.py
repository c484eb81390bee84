# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# `create_agent` has parts without types.
"""What is sent of a conversation, and how long a decision about it holds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, dynamic_prompt
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_agents import TASK, call, prose, result, rounds, shared_prefix, tool
from langchain_muntin import ContextWindowMiddleware, compact_messages, context_window_node
from langchain_muntin.testing import StrictChatModel
from muntin import AgentState, count_messages
from muntin.adapting import held
from strategies import any_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint

TALK: list[BaseMessage] = [
    message
    for at in range(40)
    for message in (
        HumanMessage(prose(60, at), id=f"h{at}"),
        AIMessage(prose(60, 100 + at), id=f"a{at}"),
    )
]
ASKED = HumanMessage(TASK, id="asked")


def by_an_agent(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Send a conversation through the middleware, its first message as the system prompt."""
    model = StrictChatModel(window=window)
    first: Any = messages[0]
    agent: Any = create_agent(model, system_prompt=first, middleware=[ContextWindowMiddleware()])
    agent.invoke({"messages": messages[1:]})
    return model.sent[0].messages


def by_a_node(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Write what to send with the node."""
    return context_window_node(window=window).invoke({"messages": messages})["llm_input_messages"]


def by_a_step(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Compact as a step of a chain."""
    return compact_messages(messages, window=window)


WAYS = pytest.mark.parametrize("way", [by_an_agent, by_a_node, by_a_step])


@WAYS
@pytest.mark.parametrize("window", [2000, 100_000], ids=["decided", "fits"])
@settings(max_examples=8)
@given(texts=st.lists(any_text.map("so {}\ud83d".format), min_size=4, max_size=4))
def test_whatever_is_sent_can_be_written_as_utf_8(
    way: Callable[[list[BaseMessage], int], list[BaseMessage]], window: int, texts: list[str]
) -> None:
    """Half a character in one message makes every later request of the thread fail."""
    first, asked, found, answer = texts
    talk = [HumanMessage(asked), call("c1"), result("c1", found), AIMessage(answer)]
    sent = way([SystemMessage(first), *TALK, *talk, ASKED], window)

    json.dumps([message.content for message in sent], ensure_ascii=False).encode()
    assert sent[0].type == "system"
    assert sent[-1].text == TASK


# --- how long a decision holds -------------------------------------------------------------------


def decided(**more: Any) -> tuple[Any, dict[str, Any]]:
    """Make a node, and what it wrote about a conversation that was too long."""
    node = context_window_node(budget=2000, **more)
    return node, node.invoke({"messages": [*TALK, ASKED]})


def test_every_change_of_a_covered_message_ends_a_decision() -> None:
    """A message that was edited or pinned since would go on being left out."""
    old = TALK[20]
    node, written = decided()
    decision = written["muntin_decision"]
    assert old not in written["llm_input_messages"]
    for change in (
        {"content": "Something else altogether."},
        {"additional_kwargs": {"muntin": "pinned"}},
        {"name": "ada"},
        {"id": "other"},
    ):
        new = old.model_copy(update=change)
        talk = [new if message is old else message for message in [*TALK, ASKED]]
        assert held(talk, decision) is None
        again = node.invoke({"messages": talk, "muntin_decision": decision})
        assert again == node.invoke({"messages": talk})
    pinned = old.model_copy(update={"additional_kwargs": {"muntin": "pinned"}})
    talk = [pinned if message is old else message for message in [*TALK, ASKED]]
    again = node.invoke({"messages": talk, "muntin_decision": decision})
    assert pinned in again["llm_input_messages"]


def test_a_system_prompt_that_changes_with_every_call_ends_no_decision(
    entry_point: EntryPoint,
) -> None:
    """A time or a user's name in it would cost a recap and the prompt cache at each step."""
    asked: list[str] = []

    def recap(text: str, instruction: str) -> str:
        asked.append(text)
        return "They talked about invoices."

    @dynamic_prompt
    def prompt(request: Any) -> str:
        return f"Be brief. There are {len(request.messages)} messages."

    model = StrictChatModel(window=6000, replies=rounds(12))
    middleware: list[Any] = [prompt, ContextWindowMiddleware(summarizer=recap)]
    look_up = tool(lambda key: prose(500, int(key[1:-2])))
    agent: Any = create_agent(model, tools=[look_up], middleware=middleware)
    entry_point(
        agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, {"recursion_limit": 99}
    )
    behind = [request.messages[1:] for request in model.sent]
    told = [request.messages[0].text for request in model.sent]

    assert told == [f"Be brief. There are {1 + 2 * at} messages." for at in range(13)]
    broken = sum(shared_prefix(a, b) < 1 for a, b in pairwise(behind))
    assert 1 <= len(asked) <= broken <= 4


def test_a_call_to_a_small_model_costs_a_large_one_nothing(entry_point: EntryPoint) -> None:
    """One step by a small model would shrink the thread for good."""
    large = StrictChatModel(window=100_000)
    small = StrictChatModel(window=3000, model_name="cl100k_base")
    turn: list[StrictChatModel] = []

    class Pick(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model=turn[-1]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(model=turn[-1]))

    agent: Any = create_agent(
        large, middleware=[Pick(), ContextWindowMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    given: list[Any] = [*TALK]
    for model in (large, small, large, small, large):
        turn.append(model)
        question = HumanMessage(f"Well, number {len(turn)}?")
        entry_point(agent.invoke, agent.ainvoke, {"messages": [*given, question]}, config)
        given = []

    assert [len(request.messages) for request in large.sent] == [81, 85, 89]
    first, second = (request.messages for request in small.sent)
    assert len(first) < 30
    assert shared_prefix(first, second) == 1


def test_a_state_that_changed_replaces_the_one_a_decision_put_back() -> None:
    """A goal that was dropped would be pursued until the next decision."""
    goals = iter(["Ship ONE", "Ship ONE", "Ship TWO", "Ship TWO", "", "word " * 4000])
    node, written = decided(
        restate=lambda state: AgentState(goal=next(goals))  # pyright: ignore[reportUnknownLambdaType] - any state
    )
    talk: list[BaseMessage] = [*TALK, ASKED]
    sent, told = [written["llm_input_messages"]], list[str]()
    for turn in range(5):
        talk += [AIMessage("Yes."), HumanMessage(f"And {turn}?")]
        decision = written["muntin_decision"]
        written = node.invoke({"messages": talk, "muntin_decision": decision})
        sent.append(written["llm_input_messages"])
    for messages in sent:
        blocks = [message.text for message in messages if "<agent-state" in message.text]
        told.append(" ".join("ONE" if "ONE" in b else "TWO" if "TWO" in b else b for b in blocks))

    assert told[:5] == ["ONE", "ONE", "TWO", "TWO", ""]
    assert len(told[5]) < 2000
    assert shared_prefix(sent[0], sent[1]) == shared_prefix(sent[2], sent[3]) == 1
    assert all(count_messages(messages) <= 2000 for messages in sent)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 1},
        {"version": 2},
        {"version": 3},
        {"tokens": None},
        {"covered": "4"},
        {"covered": 10_000},
        {"covered": -1},
        {"digest": "another"},
        {"send": None},
        {"send": ["a text"]},
        {"send": [[0]]},
        {"send": [[5, 4]]},
        {"send": [[0, 10_000]]},
        {"budget": None},
        {"state": None},
    ],
)
def test_what_is_no_decision_is_not_one(wrong: dict[str, Any]) -> None:
    """State written by an older version, or by hand, must not end a thread."""
    node, written = decided()
    good = written["muntin_decision"]
    assert held([*TALK, ASKED], good) is not None
    bad = wrong if len(wrong) == 1 and "version" in wrong else {**good, **wrong}
    state = {"messages": [*TALK, ASKED], "muntin_decision": bad}
    assert node.invoke(state) == written
    others: list[Any] = [7, "text", [bad], {}]
    assert all(held([*TALK, ASKED], other) is None for other in others)
