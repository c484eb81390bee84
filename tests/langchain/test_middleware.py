# pyright: reportPrivateUsage=false, reportUnknownVariableType=false
# What was learned of a model is private, and `create_agent` has parts without types.
"""Agents that run long and meet giants: nothing refused, nothing lost, the task still there."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from langchain_agents import (
    TASK,
    call,
    calls,
    fact,
    prose,
    result,
    rounds,
    says_task,
    shared_prefix,
    tool,
)
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin._values.models import ModelFacts
from langchain_muntin.testing import BadRequestError, StrictChatModel
from muntin import ConfigurationError, ContextWindowExceeded, ToolResultStore
from muntin.testing import FailingSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import EntryPoint

SYSTEM = "You audit payments and answer briefly."
LIMIT = {"recursion_limit": 500}


def run(
    entry_point: EntryPoint,
    model: StrictChatModel,
    middleware: AgentMiddleware[Any, Any, Any] | list[AgentMiddleware[Any, Any, Any]],
    *,
    answer: Callable[[str], str] = lambda key: key,
    messages: Any = (("user", TASK),),
    config: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Run one agent to its end."""
    agent: Any = create_agent(
        model,
        tools=more.pop("tools", [tool(answer)]),
        system_prompt=SYSTEM,
        middleware=middleware if isinstance(middleware, list) else [middleware],
        **more,
    )
    return entry_point(
        agent.invoke, agent.ainvoke, {"messages": list(messages)}, {**LIMIT, **(config or {})}
    )


def decisions(model: StrictChatModel) -> int:
    """Count the requests that do not begin with the one before."""
    sent = [request.messages for request in model.sent]
    return sum(shared_prefix(a, b) < 1 for a, b in pairwise(sent))


# --- the scenarios -------------------------------------------------------------------------------


def test_giant_results_are_stored_shortened_and_can_be_read_back(entry_point: EntryPoint) -> None:
    """One log file must neither end the run nor be gone."""
    giant = prose(60_000) + "\n" + fact(1)
    model = StrictChatModel(window=8000, replies=rounds(2))
    middleware = ContextWindowMiddleware()
    done = run(entry_point, model, middleware, answer=lambda key: f"{key}\n{giant}")
    first: Any = done["messages"][2]

    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent)
    assert fact(1) in first.text
    marker = first.text.partition("read_tool_result(id=")[2].partition(")")[0]
    assert middleware.store.get(marker) == f"c0_0\n{giant}"
    assert [one.name for one in middleware.tools] == ["read_tool_result"]
    read: Any = middleware.tools[0].invoke({"id": marker, "pattern": "payment id"})
    assert fact(1) in read


def test_the_model_can_read_the_rest_by_itself(entry_point: EntryPoint) -> None:
    """The tool is offered, its schema is charged, and its answers are not shortened again."""
    giant = prose(60_000) + "\nthe code is 4711\n" + prose(60_000, 1)
    asked: list[AIMessage] = []

    def reply(messages: list[BaseMessage]) -> AIMessage | str:
        last = messages[-1]
        if isinstance(last, HumanMessage):
            return call("c1")
        if "read_tool_result(id=" in last.text:
            key = last.text.partition("read_tool_result(id=")[2].partition(")")[0]
            wanted: Any = {"id": key, "pattern": "the code is"}
            asked.append(
                AIMessage("", tool_calls=[{"name": "read_tool_result", "args": wanted, "id": "c2"}])
            )
            return asked[-1]
        return last.text

    model = StrictChatModel(window=8000, replies=reply)
    done = run(entry_point, model, ContextWindowMiddleware(), answer=lambda key: giant)

    assert len(asked) == 1
    assert "the code is 4711" in done["messages"][-1].text


def test_twenty_parallel_results_share_the_window(entry_point: EntryPoint) -> None:
    """Each is small enough alone; together they are six times the window."""
    model = StrictChatModel(window=16_000, replies=rounds(2, at_once=20))
    done = run(
        entry_point,
        model,
        ContextWindowMiddleware(),
        answer=lambda key: prose(4000, len(key)) + f"\n{key}: {fact(1)}",
    )

    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent)
    assert len(done["messages"]) == 1 + 2 * 21 + 1


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "history",
    [
        [call("a"), call("b"), result("a", prose(900)), result("b", prose(900, 1))],
        [call("a"), HumanMessage("Are you there?"), result("a", prose(900))],
        [calls("a", "b"), result("a", "1"), HumanMessage("Well?"), result("b", prose(900))],
        [call("a"), HumanMessage("Never mind.")],
        [result("zz", "from an older version"), AIMessage("Hm.")],
        [call("a"), result("a", "1"), result("a", "1 again")],
    ],
    ids=["interleaved", "human between", "late", "unanswered", "orphan", "twice"],
)
@pytest.mark.parametrize("window", [8000, 1200])
def test_a_history_in_disorder_is_sent_in_order(
    entry_point: EntryPoint, history: list[BaseMessage], provider: Any, window: int
) -> None:
    """Such threads are stored everywhere, and every later request of theirs fails."""
    model = StrictChatModel(window=window, provider=provider)
    given = [HumanMessage(TASK), *history, HumanMessage("Go on.")]
    done = run(entry_point, model, ContextWindowMiddleware(read_back=False), messages=given)

    assert model.refused == []
    assert [message.text for message in done["messages"][:-1]] == [m.text for m in given]


def test_sixty_rounds_in_a_window_of_twenty(entry_point: EntryPoint) -> None:
    """Long runs are where everything goes wrong at once."""
    model = StrictChatModel(window=32_000, replies=rounds(60))
    middleware = ContextWindowMiddleware()
    done = run(
        entry_point, model, middleware, answer=lambda key: prose(1500, len(key) + int(key[1:-2]))
    )

    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent)
    assert len(done["messages"]) == 1 + 60 * 2 + 1
    assert all(m.text.count("\n") > 90 for m in done["messages"] if m.type == "tool")
    # Between two decisions, every request only grows at its end.
    assert decisions(model) <= 12
    assert middleware.last_report is not None
    assert middleware.last_report.budget < 28_000


@pytest.mark.parametrize("fails", [False, True])
def test_each_decision_asks_for_at_most_one_recap(entry_point: EntryPoint, fails: bool) -> None:  # noqa: FBT001 - drawn by pytest
    """A recap costs a call; one that fails must cost neither the run nor a call at each step."""
    asked: list[str] = []

    def recap(text: str, instruction: str) -> str:
        asked.append(text)
        if fails:
            raise TimeoutError("no answer")
        return "The invoices were looked through one by one."

    model = StrictChatModel(window=16_000, replies=rounds(30))
    done = run(
        entry_point,
        model,
        ContextWindowMiddleware(summarizer=recap),
        answer=lambda key: prose(900, len(key) + int(key[1:-2])),
    )

    assert model.refused == []
    assert 1 <= len(asked) <= decisions(model)
    assert all(says_task(request.messages) for request in model.sent)
    assert done["messages"][-1].text == "PAY-7000 and PAY-7001."
    told = any("looked through one by one" in m.text for m in model.sent[-1].messages)
    assert told != fails


def test_a_model_as_summariser_stays_off_the_screen_and_in_its_window(
    entry_point: EntryPoint,
) -> None:
    """Tokens of a recap must not stream to the user, and its prompt must not overflow."""
    writer = StrictChatModel(window=3000, replies=["All was looked through."])
    model = StrictChatModel(window=16_000, replies=rounds(30))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(900, len(key) + int(key[1:-2])))],
        middleware=[ContextWindowMiddleware(summarizer=writer)],
    )
    given = {"messages": [("user", TASK)]}

    async def streamed() -> list[str]:
        parts = agent.astream(given, LIMIT, stream_mode="messages")
        return [part.text async for part, _ in parts if part.type.startswith("AI")]

    if entry_point.name == "sync":
        stream = agent.stream(given, LIMIT, stream_mode="messages")
        seen = [part.text for part, _ in stream if part.type.startswith("AI")]
    else:
        seen = asyncio.run(streamed())

    assert len(writer.sent) >= 1
    assert writer.refused == model.refused == []
    assert "All was looked through." not in "".join(seen)
    assert "PAY-7000" in "".join(seen)


def test_a_resumed_thread_goes_on_where_it_was(tmp_path: Path) -> None:
    """Decisions live in the checkpoint: another process sends the same bytes again."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    config = {"configurable": {"thread_id": "t1"}, **LIMIT}
    first = StrictChatModel(window=8000, replies=rounds(20))
    store = ToolResultStore.sqlite(tmp_path / "results.db")
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        agent: Any = create_agent(
            first,
            tools=[tool(lambda key: prose(600, len(key) + int(key[1:-2])))],
            middleware=[ContextWindowMiddleware(store=store)],
            checkpointer=saver,
        )
        agent.invoke({"messages": [("user", TASK)]}, config)
    last = first.sent[-1].messages

    second = StrictChatModel(window=8000, replies=["Both in March."])
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        agent = create_agent(
            second,
            tools=[tool(lambda key: key)],
            middleware=[ContextWindowMiddleware(store=store)],
            checkpointer=saver,
        )
        done = agent.invoke({"messages": [("user", "When?")]}, config)
    assert first.refused == second.refused == []
    assert [m.text for m in second.sent[0].messages[: len(last)]] == [m.text for m in last]
    assert second.sent[0].messages[-1].text == "When?"
    assert len(done["messages"]) == 1 + 40 + 1 + 2
    assert list(done) == ["messages"]


def test_a_resumed_thread_goes_on_in_the_async_entry_point_too(tmp_path: Path) -> None:
    """The async saver is another implementation."""
    aio = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
    config = {"configurable": {"thread_id": "t1"}, **LIMIT}
    model = StrictChatModel(window=8000, replies=rounds(20))

    async def both() -> dict[str, Any]:
        async with aio.AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            agent: Any = create_agent(
                model,
                tools=[tool(lambda key: prose(600, len(key) + int(key[1:-2])))],
                middleware=[ContextWindowMiddleware()],
                checkpointer=saver,
            )
            await agent.ainvoke({"messages": [("user", TASK)]}, config)
            return await agent.ainvoke({"messages": [("user", "When?")]}, config)

    done = asyncio.run(both())
    before, after = model.sent[-2].messages, model.sent[-1].messages

    assert model.refused == []
    assert shared_prefix(before, after) == 1
    assert len(done["messages"]) == 1 + 40 + 1 + 2


# --- what counts ---------------------------------------------------------------------------------


def test_system_prompt_and_tools_count() -> None:
    """A trigger that does not see them fires after the window is full."""

    def big(key: str) -> str:
        return key

    tools = [
        StructuredTool.from_function(big, name=f"tool_{n}", description=prose(200, n))
        for n in range(10)
    ]
    model = StrictChatModel(window=8000, replies=["Done."])
    talk = [m for at in range(20) for m in (HumanMessage(prose(90, at)), AIMessage("Yes."))]
    agent: Any = create_agent(
        model,
        tools=tools,
        system_prompt=prose(1000),
        middleware=[ContextWindowMiddleware()],
    )
    agent.invoke({"messages": [*talk, HumanMessage(TASK)]})

    assert model.refused == []
    assert says_task(model.sent[0].messages)


def test_what_cannot_fit_is_a_typed_error_before_anything_is_sent(entry_point: EntryPoint) -> None:
    """Better to name what is too large than to let the provider say so."""
    model = StrictChatModel(window=1000)

    with pytest.raises(ContextWindowExceeded) as caught:
        run(entry_point, model, ContextWindowMiddleware(), messages=[HumanMessage(prose(2000))])
    assert "newest user message" in caught.value.parts
    assert model.sent == []


class Answer(BaseModel):
    """The two payments."""

    first: str
    second: str


def test_the_schema_of_the_answer_counts(entry_point: EntryPoint) -> None:
    """A structured answer costs its schema, as a tool or as a response format."""
    schema = type("Answer", (Answer,), {"__doc__": "The two payments. " + prose(500)})
    answer = AIMessage(
        "",
        tool_calls=[{"name": schema.__name__, "args": {"first": "1", "second": "2"}, "id": "x"}],
    )
    talk = [HumanMessage(prose(60, at)) for at in range(60)]
    for strategy, reply in (
        (ToolStrategy(schema), answer),
        (ProviderStrategy(schema), AIMessage('{"first": "1", "second": "2"}')),
    ):
        model = StrictChatModel(window=3000, replies=[reply])
        done = run(
            entry_point,
            model,
            ContextWindowMiddleware(),
            messages=[*talk, HumanMessage(TASK)],
            response_format=strategy,
        )
        assert model.refused == []
        assert done["structured_response"].first == "1"


def test_an_unknown_window_is_an_error_that_says_what_to_give(entry_point: EntryPoint) -> None:
    """An assumed window of 170,000 never triggers where 64,000 are there."""
    model = StrictChatModel(says_window=False)

    with pytest.raises(ConfigurationError, match="the context window of 'o200k_base' is unknown"):
        run(entry_point, model, ContextWindowMiddleware())
    assert run(entry_point, model, ContextWindowMiddleware(window=8000))["messages"]
    for wrong in ({"target": 0.0}, {"max_tokens": 0}, {"max_result_tokens": 0}):
        with pytest.raises(ConfigurationError):
            ContextWindowMiddleware(**wrong)  # pyright: ignore[reportArgumentType] - one of each


def test_usage_corrects_the_count(entry_point: EntryPoint) -> None:
    """A vocabulary that needs a third more tokens overruns a window counted with another."""
    model = StrictChatModel(window=8000, max_tokens=500, scale=1.3, replies=rounds(30))
    middleware = ContextWindowMiddleware()
    run(entry_point, model, middleware, answer=lambda key: prose(500, len(key) + int(key[1:-2])))

    assert model.refused == []
    assert max(request.tokens for request in model.sent) > 6000
    assert middleware._keeper.lessons.ratio("o200k_base") == pytest.approx(1.3, abs=0.02)


def test_usage_without_cached_tokens_does_not_double_the_budget(entry_point: EntryPoint) -> None:
    """Some providers leave cached tokens out of what they report."""
    model = StrictChatModel(window=8000, scale=1.0, replies=["Done."])
    middleware = ContextWindowMiddleware()
    usage: Any = {"input_tokens": 40, "output_tokens": 1, "total_tokens": 41}
    desk = middleware._keeper.facts(ModelFacts.of(model))
    middleware._keeper.lessons.learn(desk, 4000, usage["input_tokens"])

    assert middleware._keeper.facts(ModelFacts.of(model)).budget == 5000


def test_one_smaller_request_after_a_refusal_for_its_size(entry_point: EntryPoint) -> None:
    """Where the count is wrong and nothing was learned yet, one retry saves the run."""
    model = StrictChatModel(window=8000, max_tokens=500, scale=1.6)
    talk = [HumanMessage(prose(60, at)) for at in range(110)]
    done = run(entry_point, model, ContextWindowMiddleware(), messages=[*talk, HumanMessage(TASK)])

    assert len(model.refused) == 1
    assert len(model.sent) == 1
    assert done["messages"][-1].text == "OK."


def test_a_second_refusal_is_raised(entry_point: EntryPoint) -> None:
    """One retry, not a loop."""
    model = StrictChatModel(window=600, max_tokens=100)
    middleware = ContextWindowMiddleware(window=8000, budget=8000)
    talk = [HumanMessage(prose(60, at)) for at in range(20)]

    with pytest.raises(BadRequestError):
        run(entry_point, model, middleware, messages=[*talk, HumanMessage(prose(700))])
    assert len(model.refused) <= 2


def test_other_errors_pass_through_at_once(entry_point: EntryPoint) -> None:
    """A rate limit is not a reason to cut a conversation."""
    model = StrictChatModel(replies=[BadRequestError("rate limit: too many tokens per minute")])

    with pytest.raises(BadRequestError, match="rate limit"):
        run(entry_point, model, ContextWindowMiddleware())
    assert len(model.sent) == 1


# --- others in the same agent --------------------------------------------------------------------


def test_a_todo_list_survives(entry_point: EntryPoint) -> None:
    """A plan made forty rounds ago is still the plan."""
    todos: Any = [{"content": "Compare both payment ids", "status": "in_progress"}]
    plan = AIMessage("", tool_calls=[{"name": "write_todos", "args": {"todos": todos}, "id": "p"}])
    model = StrictChatModel(window=12_000, replies=[plan, *rounds(30)])
    run(
        entry_point,
        model,
        [TodoListMiddleware(), ContextWindowMiddleware()],
        answer=lambda key: prose(500, len(key) + int(key[1:-2])),
    )

    assert model.refused == []
    assert any(
        "<agent-state" in message.text and "[CURRENT] Compare both payment ids" in message.text
        for message in model.sent[-1].messages
    )


def test_a_tool_that_returns_a_command_is_capped_too(entry_point: EntryPoint) -> None:
    """Tools that update the state bring their message along in the update."""

    def look_up(key: str) -> Command[Any]:
        """Look something up by its key."""
        message = ToolMessage(prose(60_000), tool_call_id="c0_0", name="look_up")
        return Command(update={"messages": [message]})

    model = StrictChatModel(window=8000, replies=rounds(1))
    done = run(
        entry_point,
        model,
        ContextWindowMiddleware(),
        tools=[StructuredTool.from_function(look_up)],
    )

    assert model.refused == []
    assert len(done["messages"][2].text) < 8000


def test_an_image_in_a_result_stays() -> None:
    """Shortening is about text."""
    from langchain_muntin._agents.tool_results import capped
    from muntin.adapting import ResultCap

    image = {"type": "image", "url": "https://example.org/door.png"}
    given = ToolMessage([{"type": "text", "text": prose(900)}, image], tool_call_id="c1")
    cap = ResultCap(max_tokens=100, store=ToolResultStore.in_memory(), prompts=None, budget=None)
    short = capped(given, cap, None)

    assert short.content[1] == image
    assert len(short.content[0]["text"]) < 600
    assert capped(short, cap, None) is short
    assert capped("something else", cap, None) == "something else"


@pytest.mark.parametrize("read_back", [False, True])
def test_two_of_them_stand_in_one_agent_by_two_names(
    entry_point: EntryPoint,
    read_back: bool,  # noqa: FBT001 - parametrised
) -> None:
    """LangChain refuses two middleware of one name, and a state two values for one key."""
    store = ToolResultStore.in_memory()
    outer = ContextWindowMiddleware(budget=6000, store=store)
    inner = ContextWindowMiddleware(
        budget=3000, store=store, read_back=read_back, name="the inner one"
    )
    model = StrictChatModel(window=12_000, replies=rounds(12))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(700, int(key[1:-2])))],
        middleware=[outer, inner],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "t1"}, **LIMIT}
    done = entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, config)

    assert (outer.name, inner.name) == ("ContextWindowMiddleware", "the inner one")
    assert model.refused == []
    assert max(request.tokens for request in model.sent) <= 3000
    assert list(done) == ["messages"]


def test_a_message_edited_in_the_state_is_sent_as_it_is_now() -> None:
    """A decision about a message that was changed since holds no longer."""
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t1"}, **LIMIT}
    model = StrictChatModel(window=6000, replies=[*rounds(12), "And now?"])
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(500, len(key) + int(key[1:-2])))],
        middleware=[ContextWindowMiddleware()],
        checkpointer=saver,
    )
    done = agent.invoke({"messages": [HumanMessage(TASK, id="task")]}, config)
    assert any(message.text.startswith("[Earlier") for message in model.sent[-1].messages)
    edited = TASK.replace("INV-20417", "INV-99999")
    agent.update_state(config, {"messages": [HumanMessage(edited, id="task")]})
    agent.invoke({"messages": [("user", "Again, please.")]}, config)
    texts = [message.text for message in model.sent[-1].messages]

    assert edited in texts
    assert TASK not in texts
    assert len(done["messages"]) == 26


def test_listeners_are_told_of_decisions(entry_point: EntryPoint) -> None:
    """A trace shows when a conversation was folded, and why each message went."""

    class Listener(BaseCallbackHandler):
        def __init__(self) -> None:
            self.reports: list[Any] = []

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            if name == "muntin.decision":
                self.reports.append(data)

    listener = Listener()
    model = StrictChatModel(window=6000, replies=rounds(12))
    run(
        entry_point,
        model,
        ContextWindowMiddleware(),
        answer=lambda key: prose(500, len(key) + int(key[1:-2])),
        config={"callbacks": [listener]},
    )

    assert len(listener.reports) == decisions(model) >= 1
    assert listener.reports[0]["kind"] == "conversation"


def test_a_failing_summariser_object_is_asked_once_per_decision(entry_point: EntryPoint) -> None:
    """Whatever kind of summariser fails."""
    failing = FailingSummarizer()
    model = StrictChatModel(window=6000, replies=rounds(12))
    run(
        entry_point,
        model,
        ContextWindowMiddleware(summarizer=failing),
        answer=lambda key: prose(500, len(key) + int(key[1:-2])),
    )

    assert model.refused == []
    assert 1 <= failing.calls <= decisions(model)


@pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning")
def test_thinking_of_the_round_in_flight_is_sent_whole(entry_point: EntryPoint) -> None:
    """Older models refuse a round in flight without its thinking, and take it behind any prefix."""

    def thinking(at: int) -> AIMessage:
        thought = {"type": "thinking", "thinking": prose(200, at), "signature": f"s{at}"}
        use = {
            "type": "tool_use",
            "id": f"c{at}_0",
            "name": "look_up",
            "input": {"key": f"c{at}_0"},
        }
        return calls(f"c{at}_0", content=[thought, use])

    model = StrictChatModel(
        window=6000,
        model_name="claude-sonnet-4-5",
        provider="anthropic",
        thinking=True,
        replies=[*(thinking(at) for at in range(14)), "Done."],
    )
    run(
        entry_point,
        model,
        ContextWindowMiddleware(),
        answer=lambda key: prose(500, len(key) + int(key[1:-2])),
    )

    assert model.refused == []
    assert decisions(model) >= 1


def test_the_system_message_is_sent_as_it_was_given() -> None:
    """Blocks with cache marks in it must come through byte for byte."""
    marked = SystemMessage(
        [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    )
    model = StrictChatModel(window=3000)
    talk = [HumanMessage(prose(60, at)) for at in range(60)]
    agent: Any = create_agent(
        model, tools=[], system_prompt=marked, middleware=[ContextWindowMiddleware()]
    )
    agent.invoke({"messages": [*talk, HumanMessage(TASK)]})

    assert model.sent[0].messages[0].content == marked.content
