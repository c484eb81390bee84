# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# `create_agent` and its checkpoints have parts without types.
"""Cases: what breaks long runs of agents anywhere, held against the middleware.

The kinds are those of `unit/test_cases_*.py`. What `test_middleware.py` and `test_known_reports.py`
show in full is not repeated here: giants, batches, disorder, overhead, recaps, thinking, caching.
The property is `test_any_run_is_sent_whole_or_cut_soundly`.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_agents import TASK, call, calls, prose, result, rounds, says_task, tool
from langchain_muntin import (
    ContextWindowMiddleware,
    compact_messages,
)
from langchain_muntin.testing import StrictChatModel
from muntin import ConfigurationError, ContextWindowExceeded, counter_for
from muntin.testing import check_request

if TYPE_CHECKING:
    from conftest import EntryPoint

LIMIT: Any = {"recursion_limit": 500}


def agent_of(model: StrictChatModel, *more: Any, answer: Any = None, **knobs: Any) -> Any:
    """Make an agent with one tool and the middleware."""
    return create_agent(
        model,
        tools=[tool(answer or (lambda key: prose(200, len(key))))],
        middleware=[*more, ContextWindowMiddleware(**knobs)],
        checkpointer=InMemorySaver(),
    )


# --- pairs ---------------------------------------------------------------------------------------


def test_a_call_that_waits_for_a_person_finds_its_answer_after_the_cut(
    entry_point: EntryPoint,
) -> None:
    """The call was summarised away while the person thought, and the answer found no call."""
    model = StrictChatModel(window=3000, replies=[call("c1"), "Booked."])
    agent = agent_of(
        model, HumanInTheLoopMiddleware(interrupt_on={"look_up": True}), answer=str.lower
    )
    config: Any = {"configurable": {"thread_id": "t"}, **LIMIT}
    talk = [HumanMessage(prose(60, at)) for at in range(60)]
    paused = entry_point(
        agent.invoke, agent.ainvoke, {"messages": [*talk, HumanMessage(TASK)]}, config
    )
    assert paused["__interrupt__"]
    decision = Command(resume={"decisions": [{"type": "approve"}]})
    done = entry_point(agent.invoke, agent.ainvoke, decision, config)

    assert model.refused == []
    assert done["messages"][-1].text == "Booked."
    last = model.sent[-1].messages
    assert [message.type for message in last[-3:]] == ["human", "ai", "tool"]
    assert last[-1].text == "c1"


def test_a_run_that_was_paused_is_sent_once_when_it_goes_on(entry_point: EntryPoint) -> None:
    """The paused run came back as history, and its call twice, the first one unpaired."""
    model = StrictChatModel(window=8000, replies=[calls("c1", "c2"), "Both."])
    agent = agent_of(
        model, HumanInTheLoopMiddleware(interrupt_on={"look_up": True}), answer=str.lower
    )
    config: Any = {"configurable": {"thread_id": "t"}, **LIMIT}
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, config)
    decision = Command(resume={"decisions": [{"type": "approve"}, {"type": "approve"}]})
    entry_point(agent.invoke, agent.ainvoke, decision, config)

    sent = model.sent[-1].messages
    made = [one["id"] for message in sent for one in getattr(message, "tool_calls", [])]
    assert made == ["c1", "c2"]
    assert sum(message.type == "tool" for message in sent) == 2
    assert sum(TASK in message.text for message in sent) == 1


def test_an_answer_that_comes_ten_turns_late_is_sent_behind_its_call(
    entry_point: EntryPoint,
) -> None:
    """Between them people went on talking; a provider takes nothing between the two."""
    model = StrictChatModel(window=2500)
    history: list[BaseMessage] = [HumanMessage("Book it."), call("confirm")]
    for at in range(20):
        history += [HumanMessage(prose(40, at)), AIMessage(prose(40, 100 + at))]
    late = [*history, result("confirm", "Yes, do."), HumanMessage(TASK)]
    for messages in ([*history, HumanMessage(TASK)], late):
        agent: Any = create_agent(model, tools=[], middleware=[ContextWindowMiddleware()])
        entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, LIMIT)
        assert model.refused == []
        assert says_task(model.sent[-1].messages)


# --- windows and thresholds ----------------------------------------------------------------------


def test_the_answer_is_written_into_the_same_window(entry_point: EntryPoint) -> None:
    """A limit on the input alone fires after the server has refused."""
    model = StrictChatModel(window=8000, max_tokens=4000, replies=rounds(30))
    agent = agent_of(model)
    config: Any = {"configurable": {"thread_id": "t"}, **LIMIT}
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, config)

    assert model.refused == []
    assert 2500 < max(request.tokens for request in model.sent) <= 4000


@pytest.mark.parametrize("window", [1_000_000, 200_000])
def test_a_large_window_is_used_and_many_messages_are_no_reason(
    window: int, entry_point: EntryPoint
) -> None:
    """A hard-coded 128,000, or a cap on the number of messages, cut what would have fitted."""
    model = StrictChatModel(window=window)
    talk: list[BaseMessage] = [HumanMessage(prose(12_000, at)) for at in range(15)]
    talk += [HumanMessage("short") for _ in range(200)]
    if window < 1_000_000:
        talk = talk[5:]
    agent: Any = create_agent(model, tools=[], middleware=[ContextWindowMiddleware()])
    entry_point(agent.invoke, agent.ainvoke, {"messages": [*talk, HumanMessage(TASK)]}, LIMIT)

    assert len(model.sent[0].messages) == len(talk) + 1
    assert compact_messages([*talk, HumanMessage(TASK)], model=model) == [
        *talk, HumanMessage(TASK)
    ]  # fmt: skip


def test_usage_from_before_a_cut_does_not_trigger_the_next_one(entry_point: EntryPoint) -> None:
    """A total of 68,000 stands in an old answer's metadata; the conversation is 300 tokens."""
    usage: Any = {"input_tokens": 68_000, "output_tokens": 10, "total_tokens": 68_010}
    history = [HumanMessage("Go."), AIMessage("So.", usage_metadata=usage), HumanMessage(TASK)]
    model = StrictChatModel(window=60_000)
    agent: Any = create_agent(model, tools=[], middleware=[ContextWindowMiddleware()])
    entry_point(agent.invoke, agent.ainvoke, {"messages": history}, LIMIT)

    assert [message.text for message in model.sent[0].messages] == ["Go.", "So.", TASK]


def test_overhead_that_fills_the_window_is_said_and_not_looped(entry_point: EntryPoint) -> None:
    """Schemas of 50,000 tokens never shrink: compacting again changes nothing."""
    model = StrictChatModel(window=16_000)
    heavy = tool(lambda key: key)
    heavy.description = "Look something up. " + prose(15_000)
    agent: Any = create_agent(model, tools=[heavy], middleware=[ContextWindowMiddleware()])

    with pytest.raises(ContextWindowExceeded, match="tools and framing"):
        entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, LIMIT)
    assert model.sent == []
    assert model.refused == []


def test_a_window_smaller_than_its_reserve_is_refused() -> None:
    """A budget of nothing means that everything must be compacted, always."""
    wrong: dict[str, Any]
    for wrong in ({"max_tokens": 0}, {"target": 0.0}, {"max_result_tokens": 0}):
        with pytest.raises(ConfigurationError):
            ContextWindowMiddleware(**wrong)


# --- media, order --------------------------------------------------------------------------------


def photo(at: int) -> HumanMessage:
    data = base64.b64encode(bytes([at]) * 300_000).decode()
    url = {"url": f"data:image/png;base64,{data}"}
    return HumanMessage(
        [{"type": "text", "text": f"photo {at}"}, {"type": "image_url", "image_url": url}]
    )


def test_a_new_chat_with_a_photo_is_sent_and_forty_old_ones_are_not(
    entry_point: EntryPoint,
) -> None:
    """Base64 counted as text empties the first request; kept in the history, it fills them all."""
    model = StrictChatModel(window=8000)
    agent: Any = create_agent(model, tools=[], middleware=[ContextWindowMiddleware()])
    entry_point(agent.invoke, agent.ainvoke, {"messages": [photo(1)]}, LIMIT)
    assert [message.content for message in model.sent[0].messages] == [photo(1).content]

    album: list[BaseMessage] = []
    for at in range(40):
        album += [photo(at), AIMessage(f"Photo {at} is nice.")]
    entry_point(agent.invoke, agent.ainvoke, {"messages": [*album, HumanMessage(TASK)]}, LIMIT)
    pictures = sum("image_url" in str(m.content)[:400] for m in model.sent[-1].messages)
    assert model.refused == []
    assert 0 < pictures < 15


def test_the_order_of_tools_does_not_move_what_is_sent(entry_point: EntryPoint) -> None:
    """Tools out of a set come in another order in each process."""
    sent: list[Any] = []
    for order in (1, -1):
        model = StrictChatModel(window=3000)
        tools = [tool(lambda key: key) for _ in range(6)]
        for at, one in enumerate(tools):
            one.name = f"tool_{at}"
        middleware = [ContextWindowMiddleware(read_back=False)]
        agent: Any = create_agent(model, tools=tools[::order], middleware=middleware)
        talk = [HumanMessage(prose(60, at)) for at in range(60)]
        entry_point(agent.invoke, agent.ainvoke, {"messages": [*talk, HumanMessage(TASK)]}, LIMIT)
        sent.append([message.text for message in model.sent[0].messages])

    assert sent[0] == sent[1]


# --- the property --------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 400)), min_size=1, max_size=8),
    window=st.integers(700, 6000),
)
def test_any_run_is_sent_whole_or_cut_soundly(sizes: list[tuple[int, int]], window: int) -> None:
    """The property: any number of parallel calls, any results, any window; or an error before."""
    history: list[BaseMessage] = [HumanMessage(TASK)]
    for at, (batch, tokens) in enumerate(sizes):
        ids = [f"c{at}_{part}" for part in range(batch)]
        history += [calls(*ids), *(result(one, prose(tokens, at)) for one in ids)]
    model = StrictChatModel(window=window)
    agent: Any = create_agent(
        model, tools=[], middleware=[ContextWindowMiddleware(read_back=False)]
    )
    try:
        agent.invoke({"messages": history}, LIMIT)
    except ContextWindowExceeded:
        assert model.sent == []
        return
    assert model.refused == []
    assert says_task(model.sent[0].messages)
    check_request(model.sent[0].messages, window=window, counter=counter_for("o200k_base"))


def test_requests_only_grow_between_two_decisions(entry_point: EntryPoint) -> None:
    """What was cleared stays cleared, and nothing before it moves."""
    model = StrictChatModel(window=6000, replies=rounds(25))
    agent = agent_of(model)
    config: Any = {"configurable": {"thread_id": "t"}, **LIMIT}
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, config)
    grown = [
        after.messages[: len(before.messages)] == before.messages
        for before, after in pairwise(model.sent)
    ]
    assert sum(grown) >= len(grown) * 0.7
