# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# `create_agent` and graphs have parts without types.
"""How full the window is, when it is compacted, and who may read what."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from langchain_agents import (
    TASK,
    call,
    calls,
    prose,
    result,
    rounds,
    says_task,
    shared_prefix,
    tool,
)
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from muntin import ConfigurationError, ContextWindowExceeded, ToolResultStore
from muntin.adapting import ToolRule

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import EntryPoint

LIMIT: Any = {"recursion_limit": 500}


def talk(count: int, tokens: int = 60) -> list[Any]:
    """Make a conversation of so many turns."""
    return [
        message
        for at in range(count)
        for message in (HumanMessage(prose(tokens, at)), AIMessage(prose(tokens, 900 + at)))
    ]


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, **LIMIT}


# --- how full the window is ----------------------------------------------------------------------


def test_every_request_of_every_thread_has_an_account(entry_point: EntryPoint) -> None:
    """Before the first cut nothing was known, and two users saw each other's report."""
    middleware = ContextWindowMiddleware()
    model = StrictChatModel(window=8000)
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    for name, turns in (("ada", 2), ("bo", 30)):
        given = {"messages": [*talk(turns), HumanMessage(f"I am {name}")]}
        entry_point(agent.invoke, agent.ainvoke, given, thread(name))
    ada, bo = middleware.report("ada"), middleware.report("bo")

    assert ada is not None
    assert bo is not None
    assert middleware.report("nobody") is None
    assert middleware.last_report is None  # several threads: say which
    assert (ada.used, bo.used) == tuple(request.tokens for request in model.sent)
    for account in (ada, bo):
        assert sum(account.parts.values()) == account.used <= account.budget
        assert account.report.used == account.used
        assert account.report.window == 8000
        assert account.report.budget + account.report.reserve + account.report.outside == 8000
        assert 0 <= account.reducible < account.used
        json.dumps(account.to_dict())
    assert bo.full > ada.full
    assert "I am ada" not in str(bo.report.decisions)


def test_accounts_reach_callbacks_and_the_custom_stream(entry_point: EntryPoint) -> None:
    """A bar in a front end needs the figures while the agent runs."""
    heard: list[Any] = []

    class Listener(BaseCallbackHandler):
        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            if name == "muntin.request":
                heard.append(data)

    model = StrictChatModel(window=8000, replies=rounds(3))
    agent: Any = create_agent(
        model, tools=[tool(lambda key: key)], middleware=[ContextWindowMiddleware()]
    )
    given = {"messages": [("user", TASK)]}
    config: Any = {**LIMIT, "callbacks": [Listener()]}

    async def streamed() -> list[Any]:
        return [part async for part in agent.astream(given, config, stream_mode="custom")]

    if entry_point.name == "sync":
        seen = list(agent.stream(given, config, stream_mode="custom"))
    else:
        seen = asyncio.run(streamed())

    assert [one["type"] for one in seen] == ["muntin.request"] * 4
    for one, request in zip(seen, model.sent, strict=True):
        assert one["used"] == pytest.approx(request.tokens, abs=10)
    assert [one["used"] for one in heard] == [one["used"] for one in seen]


def test_the_model_can_be_told_without_breaking_the_prompt_cache(entry_point: EntryPoint) -> None:
    """A line in the middle of a conversation that changes each step is a cache miss each step."""
    model = StrictChatModel(window=8000, replies=rounds(5))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(300))],
        middleware=[ContextWindowMiddleware(tell_model=True)],
    )
    done = entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, LIMIT)

    for request in model.sent:
        assert request.messages[-1].text.startswith("Context window: ")
        assert request.tokens <= 4000
    for before, after in pairwise(model.sent):
        assert shared_prefix(before.messages[:-1], after.messages) == 1
    assert not any("Context window: " in message.text for message in done["messages"])


# --- when it is compacted ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "keep"),
    [
        (900, 500),
        (("tokens", 900), ("tokens", 500)),
        (0.11, 0.06),
        (("messages", 20), ("messages", 6)),
    ],
    ids=str,
)
def test_trigger_and_keep_are_two_numbers(entry_point: EntryPoint, trigger: Any, keep: Any) -> None:
    """A request that fits may still cost more than somebody wants to pay."""
    model = StrictChatModel(window=8000)
    middleware = ContextWindowMiddleware(trigger=trigger, keep=keep)
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    given: list[Any] = [HumanMessage("Hi"), AIMessage("Hello.")]
    for turn in range(14):
        question = HumanMessage(f"Turn {turn}: {prose(80, turn)}")
        messages = {"messages": [*given, question]}
        entry_point(agent.invoke, agent.ainvoke, messages, thread("t"))
        given = []
    sizes = [request.tokens for request in model.sent]

    assert max(sizes) < 1300
    falls = sum(after < before for before, after in pairwise(sizes))
    assert 1 <= falls <= 5


@pytest.mark.parametrize(
    "wrong", [0, -1, 1.5, True, "300", ("share", 0.5), ("tokens", 0.5), (1, 2, 3)]
)
@pytest.mark.parametrize("name", ["trigger", "keep"])
def test_a_limit_of_no_kind_is_refused(name: str, wrong: Any) -> None:
    """A trigger that never fires is found out when the window is full."""
    with pytest.raises(ConfigurationError, match=name):
        ContextWindowMiddleware(**{name: wrong})


def test_a_conversation_is_compacted_when_somebody_asks(entry_point: EntryPoint) -> None:
    """Before a long task people want to free the window themselves."""
    model = StrictChatModel(window=100_000)
    middleware = ContextWindowMiddleware()
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    entry_point(
        agent.invoke, agent.ainvoke, {"messages": [*talk(30), HumanMessage("a")]}, thread("t")
    )
    entry_point(
        agent.invoke, agent.ainvoke, {"messages": [*talk(30), HumanMessage("a")]}, thread("u")
    )
    middleware.compact_now("t")
    entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage("b")]}, thread("t"))
    entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage("b")]}, thread("u"))
    entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage("c")]}, thread("t"))
    first, _, compacted, other, after = (request.tokens for request in model.sent)

    assert compacted <= first / 2
    assert other > first
    assert compacted < after < first


def test_the_agent_can_ask_for_a_compaction(entry_point: EntryPoint) -> None:
    """A model that knows it begins something new knows best when the old may go."""
    ask = AIMessage("", tool_calls=[{"name": "compact_conversation", "args": {}, "id": "x"}])
    model = StrictChatModel(window=100_000, replies=[ask, "Done."])
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware(compact_tool=True)], checkpointer=InMemorySaver()
    )
    entry_point(
        agent.invoke, agent.ainvoke, {"messages": [*talk(30), HumanMessage(TASK)]}, thread("t")
    )
    first, second = (request.tokens for request in model.sent)

    assert second < first / 2 + 100
    assert says_task(model.sent[1].messages)


def test_a_hook_sees_changes_and_refuses_a_compaction(entry_point: EntryPoint) -> None:
    """Some teams must log, keep or approve what leaves a prompt."""
    seen: list[Any] = []

    def keep_third(plan: Any) -> Any:
        seen.append(plan)
        return replace(plan, keep_whole=plan.keep_whole | {2})

    model = StrictChatModel(window=4000)
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware(before_compaction=keep_third)]
    )
    messages = [*talk(40), HumanMessage(TASK)]
    entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, LIMIT)

    assert [plan.reason for plan in seen] == ["over_budget"]
    assert seen[0].tokens > seen[0].budget >= seen[0].keep
    assert messages[2].text in [message.text for message in model.sent[0].messages]
    refusing: Any = create_agent(
        model, middleware=[ContextWindowMiddleware(before_compaction=lambda plan: None)]
    )
    with pytest.raises(ContextWindowExceeded, match="before_compaction refused"):
        entry_point(refusing.invoke, refusing.ainvoke, {"messages": messages}, LIMIT)
    wrong: Any = create_agent(
        model,
        middleware=[ContextWindowMiddleware(before_compaction=lambda plan: "yes")],  # pyright: ignore[reportArgumentType] - that is the test
    )
    with pytest.raises(ConfigurationError, match="must return a RequestPlan"):
        entry_point(wrong.invoke, wrong.ainvoke, {"messages": messages}, LIMIT)


def test_rules_per_tool_cap_results_or_keep_them_whole(entry_point: EntryPoint) -> None:
    """A policy text must stay whole; search results may be short."""
    policy = "Never refund twice. " * 60

    def answer(key: str) -> str:
        return policy if key == "c0_0" else prose(2000, int(key[1:-2]))

    model = StrictChatModel(window=8000, replies=rounds(8))
    rules = {"look_up": ToolRule(max_tokens=300)}
    agent: Any = create_agent(
        model, tools=[tool(answer)], middleware=[ContextWindowMiddleware(tool_rules=rules)]
    )
    done = entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, LIMIT)
    sizes = [len(m.text) for m in done["messages"] if isinstance(m, ToolMessage)]
    assert max(sizes) < 1500

    whole = StrictChatModel(window=6000)
    kept: Any = create_agent(
        whole,
        middleware=[ContextWindowMiddleware(tool_rules={"look_up": ToolRule(keep=True)})],
    )
    messages = [
        HumanMessage(TASK),
        call("a"),
        result("a", policy),
        *talk(60),
        HumanMessage("Go on"),
    ]
    entry_point(kept.invoke, kept.ainvoke, {"messages": messages}, LIMIT)
    assert policy in [message.text for message in whole.sent[0].messages]
    for wrong in ({"look_up": 300}, ["look_up"], {1: ToolRule()}):
        with pytest.raises(ConfigurationError, match="tool_rules"):
            ContextWindowMiddleware(tool_rules=wrong)  # pyright: ignore[reportArgumentType] - that is the test
    with pytest.raises(ConfigurationError, match="got both"):
        ToolRule(max_tokens=5, keep=True)


def test_results_of_a_tool_can_go_before_everything_else(entry_point: EntryPoint) -> None:
    """A listing of files can be made again; a page of a contract and the talk about it cannot."""
    listing = calls("l", name="list_files")
    messages = [
        HumanMessage(TASK),
        listing,
        ToolMessage(prose(3000, 1), tool_call_id="l", name="list_files"),
        call("a"),
        result("a", prose(900, 2)),
        *talk(4),
        HumanMessage("Go on."),
    ]
    sent: dict[bool, list[Any]] = {}
    for first in (False, True):
        model = StrictChatModel(window=8000)
        middleware = ContextWindowMiddleware(
            budget=2600, tool_rules={"list_files": ToolRule(first=first)}
        )
        agent: Any = create_agent(model, middleware=[middleware], tools=[tool(str.upper)])
        entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, LIMIT)
        sent[first] = model.sent[0].messages
        assert model.sent[0].tokens <= 2600
        account = middleware.report("")
        assert account is not None
        assert any("go first were shortened" in n for n in account.outgoing.notes) == first
    texts = [message.text for message in sent[True]]

    assert len(sent[True]) == len(messages)
    assert len(texts[2]) < 400
    assert "read_tool_result(id=" in texts[2] or "id=tr_" in texts[2]
    assert texts[3:] == [message.text for message in messages[3:]]
    assert [message.text for message in sent[False]] != texts
    with pytest.raises(ConfigurationError, match="keep=True or first=True"):
        ToolRule(keep=True, first=True)


# --- who may read what ---------------------------------------------------------------------------


def _reads(key: str) -> AIMessage:
    wanted = {"id": key}
    return AIMessage("", tool_calls=[{"name": "read_tool_result", "args": wanted, "id": "r1"}])


def test_an_original_is_read_only_in_its_own_conversation(entry_point: EntryPoint) -> None:
    """Ids are hashes: one that leaked would open another user's result."""
    store = ToolResultStore.in_memory()
    secret = "the code is 4711\n" + prose(60_000)

    def model_of(replies: list[Any]) -> StrictChatModel:
        return StrictChatModel(window=8000, replies=replies)

    def agent_of(model: StrictChatModel) -> Any:
        return create_agent(
            model,
            tools=[tool(lambda key: secret)],
            middleware=[ContextWindowMiddleware(store=store)],
        )

    first = agent_of(model_of([call("c1"), "Done."]))
    done = entry_point(first.invoke, first.ainvoke, {"messages": [("user", TASK)]}, LIMIT)
    text = done["messages"][2].text
    key = text.partition("read_tool_result(id=")[2].partition(")")[0]
    assert key in store

    other = agent_of(model_of([_reads(key), "No."]))
    refused = entry_point(other.invoke, other.ainvoke, {"messages": [("user", "Hi")]}, LIMIT)
    assert "4711" not in str(refused["messages"])
    assert refused["messages"][2].status == "error"
    again = agent_of(model_of([_reads(key), "Yes."]))
    allowed = entry_point(
        again.invoke, again.ainvoke, {"messages": [*done["messages"], HumanMessage("?")]}, LIMIT
    )
    assert "4711" in allowed["messages"][-2].text


def test_the_reading_tool_is_offered_where_a_marker_names_an_id(entry_point: EntryPoint) -> None:
    """A tool selector removed the very tool that a marker told the model to use."""

    class Filter(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(
                request.override(tools=[t for t in request.tools if t.name == "look_up"])
            )

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            tools = [t for t in request.tools if t.name == "look_up"]
            return await handler(request.override(tools=tools))

    model = StrictChatModel(window=8000, replies=rounds(2))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(60_000))],
        middleware=[Filter(), ContextWindowMiddleware()],
    )
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, LIMIT)
    offered = [
        {one["function"]["name"] for one in request.tools if "function" in one}
        for request in model.sent
    ]

    assert offered[0] == {"look_up"}
    assert offered[1] == offered[2] == {"look_up", "read_tool_result"}


# --- what is kept --------------------------------------------------------------------------------


def test_an_agent_inside_a_graph_finds_its_decision_again(entry_point: EntryPoint) -> None:
    """As a node its private state is new each turn: nine recaps for five turns."""
    asked: list[str] = []

    def recap(text: str, instruction: str) -> str:
        asked.append(text)
        return "They talked about ledgers and vendors."

    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]

    model = StrictChatModel(window=6000)
    agent: Any = create_agent(model, middleware=[ContextWindowMiddleware(summarizer=recap)])
    graph = StateGraph(State)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    given: list[Any] = talk(40)
    for turn in range(5):
        entry_point(
            compiled.invoke,
            compiled.ainvoke,
            {"messages": [*given, HumanMessage(f"And {turn}?")]},
            thread("t"),
        )
        given = []
    sent = [request.messages for request in model.sent]

    assert len(asked) == 1
    assert all(shared_prefix(a, b) == 1 for a, b in pairwise(sent))


@pytest.mark.parametrize("mode", ["values", "updates", "debug", "checkpoints", "tasks"])
def test_nothing_private_is_in_outputs_streams_or_checkpoints(
    entry_point: EntryPoint, mode: Any
) -> None:
    """A decision of 18 KB was written into every checkpoint and shown in front ends."""
    model = StrictChatModel(window=6000, replies=rounds(14))
    saver = InMemorySaver()
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(600, int(key[1:-2])))],
        middleware=[ContextWindowMiddleware()],
        checkpointer=saver,
    )
    given = {"messages": [("user", TASK)]}

    async def streamed() -> list[Any]:
        parts = agent.astream(given, thread("t"), stream_mode=mode)
        return [part async for part in parts]

    if entry_point.name == "sync":
        parts = list(agent.stream(given, thread("t"), stream_mode=mode))
    else:
        parts = asyncio.run(streamed())
    sent = [request.messages for request in model.sent]

    assert model.refused == []
    assert any(shared_prefix(a, b) < 1 for a, b in pairwise(sent))  # decisions were made
    assert len(parts) > 14
    assert not any("muntin_" in str(part) for part in parts)
    assert list(agent.get_state(thread("t")).values) == ["messages"]
    written = [name for one in saver.list(thread("t")) for _, name, _ in one.pending_writes or ()]
    assert not any(name.startswith("muntin") for name in written)


def test_another_process_goes_on_with_the_decision_and_the_ratio_in_the_store(
    entry_point: EntryPoint, tmp_path: Path
) -> None:
    """Without them a second worker pays for the recap again and overruns the window once more."""
    asked: list[str] = []

    def recap(text: str, instruction: str) -> str:
        asked.append(text)
        return "They went through the ledgers."

    saver = InMemorySaver()
    models = [StrictChatModel(window=6000, scale=1.3) for _ in range(4)]
    for turn, model in enumerate(models):
        middleware = ContextWindowMiddleware(
            summarizer=recap, store=ToolResultStore.sqlite(tmp_path / "store.db")
        )
        agent: Any = create_agent(model, middleware=[middleware], checkpointer=saver)
        given = [] if turn else talk(40)
        messages = {"messages": [*given, HumanMessage(f"And {turn}?")]}
        entry_point(agent.invoke, agent.ainvoke, messages, thread("t"))
    sent = [model.sent[0].messages for model in models]

    assert all(model.refused == [] for model in models)
    assert len(asked) == 1
    assert all(shared_prefix(a, b) == 1 for a, b in pairwise(sent))


def test_a_record_is_written_only_when_a_decision_or_a_ratio_changes(
    entry_point: EntryPoint,
) -> None:
    """A write for every step is a round trip to the database for every step."""
    store = ToolResultStore.in_memory()
    written: list[str] = []
    write = store.records.write

    def counted(key: str, *rest: Any) -> str:
        if key.startswith("thread_"):
            written.append(key)
        return write(key, *rest)

    store.records.write = counted  # pyright: ignore[reportAttributeAccessIssue] - counts the writes
    model = StrictChatModel(window=8000, replies=rounds(30))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(500, int(key[1:-2])))],
        middleware=[ContextWindowMiddleware(store=store)],
        checkpointer=InMemorySaver(),
    )
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))
    decided = sum(shared_prefix(a.messages, b.messages) < 1 for a, b in pairwise(model.sent))

    assert len(model.sent) == 31
    assert 1 <= decided <= len(written) <= decided + 1


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_what_was_mended_is_in_the_account(entry_point: EntryPoint, provider: Any) -> None:
    """A thread that was stored broken is sent sound, and nobody was told."""
    model = StrictChatModel(window=8000, provider=provider)
    middleware = ContextWindowMiddleware(read_back=False)
    agent: Any = create_agent(model, middleware=[middleware])
    broken = [
        HumanMessage(TASK),
        calls("a", "b"),
        result("a", "1"),
        HumanMessage(""),
        AIMessage(""),
        result("gone", "from an older version"),
        HumanMessage("Go on."),
    ]
    entry_point(agent.invoke, agent.ainvoke, {"messages": broken}, LIMIT)
    account = middleware.report("")

    assert model.refused == []
    assert account is not None
    assert any("repaired:" in note for note in account.report.notes)
    assert any("without content" in note for note in account.report.notes)


def test_the_stored_state_can_be_trimmed_and_read_back(entry_point: EntryPoint) -> None:
    """Forty rounds made a checkpoint of 22.7 MB, written again at every step."""

    def run(*, trim: bool) -> tuple[list[Any], StrictChatModel, ContextWindowMiddleware]:
        model = StrictChatModel(window=8000, replies=[*rounds(40), "Bye."])
        middleware = ContextWindowMiddleware(trim_state=trim)
        agent: Any = create_agent(
            model,
            tools=[tool(lambda key: prose(500, int(key[1:-2])))],
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))
        entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", "Thanks.")]}, thread("t"))
        return agent.get_state(thread("t")).values["messages"], model, middleware

    whole, plain, _ = run(trim=False)
    kept, model, middleware = run(trim=True)

    assert model.refused == []
    assert len(kept) < len(whole) / 2
    assert all(says_task(request.messages) for request in model.sent[:40])
    assert len(model.sent) == len(plain.sent) == 42

    def decisions(sent: Any) -> int:
        texts = [[message.text for message in request.messages] for request in sent.sent]
        return sum(after[: len(before)] != before for before, after in pairwise(texts))

    assert decisions(model) <= decisions(plain) + 3
    back = middleware.archived(kept)
    assert [message.text for message in back] == [message.text for message in whole]


def test_a_middleware_can_be_pickled() -> None:
    """Workers of a cluster get it that way."""
    middleware = ContextWindowMiddleware(window=8000, trigger=0.5, budget=3000)
    agent: Any = create_agent(StrictChatModel(window=8000), middleware=[middleware])
    agent.invoke({"messages": [*talk(50), HumanMessage(TASK)]}, LIMIT)
    back = pickle.loads(pickle.dumps(middleware))
    model = StrictChatModel(window=8000)
    again: Any = create_agent(model, middleware=[back])
    again.invoke({"messages": [*talk(50), HumanMessage(TASK)]}, LIMIT)

    assert model.sent[0].tokens <= 3000
