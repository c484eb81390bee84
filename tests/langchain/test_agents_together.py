# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# `create_agent` and graphs have parts without types.
"""Our middleware with everybody else's: other middleware, graphs of agents, deepagents."""

from __future__ import annotations

import asyncio
import warnings
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_agents import TASK, calls, prose, rounds, says_task, shared_prefix, tool
from langchain_muntin import ContextWindowMiddleware, context_window_node
from langchain_muntin.testing import StrictChatModel

if TYPE_CHECKING:
    from conftest import EntryPoint

LIMIT: Any = {"recursion_limit": 500}
ROUNDS = 16


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, **LIMIT}


def talk(turns: int) -> list[Any]:
    return [
        message
        for at in range(turns)
        for message in (HumanMessage(prose(60, at)), AIMessage(prose(60, 900 + at)))
    ]


def called(name: str, call_id: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


def decisions(model: StrictChatModel) -> int:
    """Count the requests that do not begin with the one before."""
    return sum(shared_prefix(a.messages, b.messages) < 1 for a, b in pairwise(model.sent))


class Recaps:
    """A summariser that counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, text: str, instruction: str) -> str:
        self.asked += 1
        return "They went through ledgers and vendors."


# --- middleware side by side ---------------------------------------------------------------------


class World:
    """One agent with other middleware around ours."""

    def __init__(self, others: tuple[str, ...], *, ours: str = "last") -> None:
        todos: Any = [{"content": "Compare both payment ids", "status": "in_progress"}]
        script: list[Any] = [called("write_todos", "p", todos=todos)] if "todo" in others else []
        script += rounds(ROUNDS)
        if "retry" in others:
            script.insert(3, ConnectionError("try again"))
        self.model = StrictChatModel(window=12_000, replies=script)
        self.selector = StrictChatModel(
            window=12_000, replies=lambda _: called("ToolSelectionResponse", "z", tools=["look_up"])
        )
        self.summaries = StrictChatModel(window=60_000, replies=["Their summary."])
        self.recaps = Recaps()
        self.middleware = ContextWindowMiddleware(summarizer=self.recaps)
        made: dict[str, Any] = {
            "todo": lambda: TodoListMiddleware(),
            "approval": lambda: HumanInTheLoopMiddleware(interrupt_on={"look_up": False}),
            "each approved": lambda: HumanInTheLoopMiddleware(interrupt_on={"look_up": True}),
            "pii": lambda: PIIMiddleware("email", strategy="redact", apply_to_tool_results=True),
            "retry": lambda: ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False),
            "tool retry": lambda: ToolRetryMiddleware(max_retries=1, initial_delay=0),
            "limits": lambda: ModelCallLimitMiddleware(thread_limit=500),
            "tool limits": lambda: ToolCallLimitMiddleware(thread_limit=500),
            "selector": lambda: LLMToolSelectorMiddleware(model=self.selector, max_tools=1),
            "fallback": lambda: ModelFallbackMiddleware(self.model),
            "summarisation": lambda: SummarizationMiddleware(
                self.summaries, trigger=("tokens", 60_000), keep=("messages", 20)
            ),
            "editing": lambda: ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=60_000)]),
        }
        around = [made[name]() for name in others]
        broken = StrictChatModel(window=12_000, replies=[ConnectionError("down")])
        front = self.middleware if ours == "first" else None
        self.agent: Any = create_agent(
            broken if "fallback" in others else self.model,
            tools=[tool(lambda key: f"From ada@example.com: {prose(700, int(key[1:-2]))}")],
            system_prompt="You audit payments.",
            middleware=sorted([*around, self.middleware], key=lambda one: one is not front),
            checkpointer=InMemorySaver(),
        )


@cache
def plain_run(others: tuple[str, ...] = ()) -> tuple[list[list[str]], int]:
    """Run an agent without streams and pauses; return the texts of its requests and its recaps."""
    world = World(others)
    world.agent.invoke({"messages": [("user", TASK)]}, thread("plain"))
    assert world.recaps.asked == decisions(world.model) >= 2
    return texts(world.model), world.recaps.asked


def texts(model: StrictChatModel) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in model.sent]


ALL = (
    "todo", "approval", "pii", "retry", "tool retry", "limits", "tool limits", "selector",
    "fallback", "summarisation", "editing",
)  # fmt: skip


@pytest.mark.parametrize(
    ("others", "ours"),
    [*(((one,), "last") for one in ALL), (ALL, "last"), (ALL, "first")],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_other_middleware_changes_neither_what_fits_nor_what_is_remembered(
    entry_point: EntryPoint, others: tuple[str, ...], ours: str
) -> None:
    """Every team has other middleware; a decision that is lost costs a recap at each step."""
    if entry_point.name == "async" and others != ALL:
        pytest.skip("all of them together run through the async entry point")
    world = World(others, ours=ours)
    agent, model = world.agent, world.model
    done = entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))

    assert done["messages"][-1].text == "PAY-7000 and PAY-7001."
    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent)
    assert 1 <= world.recaps.asked <= plain_run()[1] + ("retry" in others)
    assert world.recaps.asked >= decisions(model)
    assert world.summaries.sent == []
    if "pii" in others:
        assert "ada@example.com" not in str([request.messages for request in model.sent])
    if "todo" in others and ours == "last":
        assert "[CURRENT] Compare both payment ids" in str(model.sent[-1].messages)


@pytest.mark.parametrize(
    "mode", ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
)
def test_every_stream_mode_sends_the_same_requests(entry_point: EntryPoint, mode: Any) -> None:
    """A front end chooses the stream mode; it must not change what the model reads."""
    if entry_point.name == "async" and mode not in ("values", "messages", "custom"):
        pytest.skip("the other modes differ in what they show, not in how they run")
    world = World(("todo",))
    given = {"messages": [("user", TASK)]}

    async def streamed() -> list[Any]:
        parts = world.agent.astream(given, thread("t"), stream_mode=mode)
        return [part async for part in parts]

    if entry_point.name == "sync":
        parts = list(world.agent.stream(given, thread("t"), stream_mode=mode))
    else:
        parts = asyncio.run(streamed())

    assert parts
    assert world.model.refused == []
    assert (texts(world.model), world.recaps.asked) == plain_run(("todo",))


def test_an_approval_pauses_and_goes_on_with_the_same_decision(entry_point: EntryPoint) -> None:
    """A run that waits for a person is another run afterwards."""
    world = World(("each approved",))
    agent = world.agent
    state = entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))
    pauses = 0
    while "__interrupt__" in state:
        pauses += 1
        approved = Command(resume={"decisions": [{"type": "approve"}]})
        state = entry_point(agent.invoke, agent.ainvoke, approved, thread("t"))

    assert pauses == ROUNDS
    assert world.model.refused == []
    assert (texts(world.model), world.recaps.asked) == plain_run()


def test_the_hook_of_the_older_agent_keeps_its_decisions(entry_point: EntryPoint) -> None:
    """`create_react_agent` has no middleware; many agents still run on it."""
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    model = StrictChatModel(window=8000, replies=rounds(ROUNDS))
    recaps = Recaps()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        agent: Any = prebuilt.create_react_agent(
            model,
            [tool(lambda key: prose(700, int(key[1:-2])))],
            prompt="You audit payments.",
            pre_model_hook=context_window_node(model, summarizer=recaps),
            checkpointer=InMemorySaver(),
        )
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))
    entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", "And when?")]}, thread("t"))

    assert model.refused == []
    assert all(says_task(request.messages) for request in model.sent[:-1])
    # A decision whose old messages leave only facts asks no model.
    assert 1 <= recaps.asked <= decisions(model)


# --- agents in graphs ----------------------------------------------------------------------------


def _turns(app: Any, entry_point: EntryPoint, turns: int, name: str = "t") -> None:
    given: list[Any] = talk(30)
    for turn in range(turns):
        messages = {"messages": [*given, HumanMessage(f"Question {turn}?")]}
        entry_point(app.invoke, app.ainvoke, messages, thread(name))
        given = []


def test_a_supervisor_and_its_agents_keep_their_decisions(entry_point: EntryPoint) -> None:
    """Each hand-off starts an agent with an empty state: a recap for each of them, each time."""
    supervising = pytest.importorskip("langgraph_supervisor")
    recaps = {name: Recaps() for name in ("payments", "vendors", "supervisor")}

    def answers(name: str) -> StrictChatModel:
        return StrictChatModel(window=5000, replies=lambda _: f"{name} looked it up.")

    turn = iter(range(100))

    def route(messages: list[Any]) -> Any:
        if not isinstance(messages[-1], HumanMessage):
            return "That is all."
        at = next(turn)
        return called(f"transfer_to_{('payments', 'vendors')[at % 2]}", f"h{at}")

    models = {name: answers(name) for name in ("payments", "vendors")}
    models["supervisor"] = StrictChatModel(window=5000, replies=route)
    agents = [
        create_agent(
            models[name],
            tools=[tool(str.upper)],
            middleware=[ContextWindowMiddleware(summarizer=recaps[name])],
            name=name,
        )
        for name in ("payments", "vendors")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is built on the deprecated agent
        graph = supervising.create_supervisor(
            agents,
            model=models["supervisor"],
            prompt="You hand each question to one agent.",
            pre_model_hook=context_window_node(
                models["supervisor"], summarizer=recaps["supervisor"]
            ),
        )
        app = graph.compile(checkpointer=InMemorySaver())
    _turns(app, entry_point, 6)

    for name, model in models.items():
        assert model.refused == []
        assert len(model.sent) == {"supervisor": 12}.get(name, 3)
        assert all(
            any(m.text.startswith("Question ") for m in request.messages[-8:])
            for request in model.sent
        )
        # One recap where the history first exceeds the budget, and one for each later decision.
        assert recaps[name].asked == 1 + decisions(model) <= 2


def test_a_swarm_keeps_its_decisions_across_hand_offs(entry_point: EntryPoint) -> None:
    """The agents take turns in one conversation; each sees it in its own window."""
    swarm = pytest.importorskip("langgraph_swarm")
    recaps = {name: Recaps() for name in ("ada", "bo")}
    models: dict[str, StrictChatModel] = {}

    def agent(name: str, other: str) -> Any:
        count = iter(range(100))

        def reply(messages: list[Any]) -> Any:
            if isinstance(messages[-1], HumanMessage):
                return called(f"transfer_to_{other}", f"{name}{next(count)}")
            return f"{name} answers."

        models[name] = StrictChatModel(window=5000, replies=reply)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hand_off = swarm.create_handoff_tool(agent_name=other)
        return create_agent(
            models[name],
            tools=[hand_off],
            middleware=[ContextWindowMiddleware(summarizer=recaps[name])],
            name=name,
        )

    app = swarm.create_swarm(
        [agent("ada", "bo"), agent("bo", "ada")], default_active_agent="ada"
    ).compile(checkpointer=InMemorySaver())
    _turns(app, entry_point, 6)

    for name, model in models.items():
        assert model.refused == []
        assert len(model.sent) == 6
        assert all(
            any(m.text.startswith("Question ") for m in request.messages[-6:])
            for request in model.sent
        )
        assert recaps[name].asked == 1 + decisions(model) <= 2


# --- deepagents ----------------------------------------------------------------------------------

SUMMARISER = "SummarizationMiddleware"
"""Name of the summariser of deepagents; a middleware with this name takes its place."""


class Deep:
    """A deep agent that looks things up and gives two tasks to subagents."""

    def __init__(self, *, name: str | None) -> None:
        script: list[Any] = [calls(f"c{at}_0") for at in range(24)]
        part = {"description": "Check the vendors.", "subagent_type": "checker"}
        script[4] = script[12] = called("task", "t", **part)
        script[8] = called("task", "g", description="Check it.", subagent_type="general-purpose")
        script.append("PAY-7000 and PAY-7001.")
        self.general: list[Any] = []
        at = iter(range(100))

        def reply(messages: list[Any]) -> Any:
            if not says_task(messages):
                self.general.append(messages)
                return "All of that is fine."
            answer = script[next(at)]
            if isinstance(answer, AIMessage) and answer.tool_calls[0]["id"] in ("t", "g"):
                one: Any = {**answer.tool_calls[0], "id": f"t{len(self.main.sent)}"}
                return AIMessage("", tool_calls=[one])
            return answer

        def check(messages: list[Any]) -> Any:
            count = len(self.checker.sent)
            return "The vendors are fine." if count % 15 == 0 else calls(f"s{count}_0")

        self.main = StrictChatModel(window=20_000, replies=reply)
        self.checker = StrictChatModel(window=20_000, replies=check)
        self.recaps = Recaps()
        self.made: list[ContextWindowMiddleware] = []
        look_up = tool(lambda key: prose(900, int(key[1:-2])))
        deepagents = pytest.importorskip("deepagents")
        self.agent: Any = deepagents.create_deep_agent(
            model=self.main,
            tools=[look_up],
            system_prompt="You audit payments.",
            middleware=[] if name is None else [self._ours(name)],
            subagents=[
                {
                    "name": "checker",
                    "description": "Checks vendors.",
                    "system_prompt": "You check vendors.",
                    "model": self.checker,
                    "tools": [look_up],
                    "middleware": [] if name is None else [self._ours(name)],
                }
            ],
            checkpointer=InMemorySaver(),
        )

    def _ours(self, name: str) -> ContextWindowMiddleware:
        self.made.append(ContextWindowMiddleware(name=name, summarizer=self.recaps))
        return self.made[-1]


def test_in_the_place_of_its_summariser_a_deep_agent_and_its_subagents_keep_everything(
    entry_point: EntryPoint,
) -> None:
    """Its own summariser replaces the task by a summary; a subagent inherits nothing from us."""
    deep = Deep(name=SUMMARISER)
    done = entry_point(
        deep.agent.invoke, deep.agent.ainvoke, {"messages": [("user", TASK)]}, thread("t")
    )

    assert done["messages"][-1].text == "PAY-7000 and PAY-7001."
    assert deep.main.refused == deep.checker.refused == []
    main = [request for request in deep.main.sent if says_task(request.messages)]
    assert len(main) == 25
    assert len(deep.checker.sent) == 30
    for request in deep.checker.sent:
        assert any(m.text == "Check the vendors." for m in request.messages)
    cuts = sum(shared_prefix(a.messages, b.messages) < 1 for a, b in pairwise(main))
    assert 1 <= cuts <= 5
    assert deep.recaps.asked <= cuts + decisions(deep.checker)
    # The general-purpose subagent takes over what replaces its own summariser.
    assert len(deep.general) == 1
    assert all(middleware.report("t") is not None for middleware in deep.made)
    assert not any("muntin" in key for key in done)


def test_beside_its_summariser_nothing_is_refused(entry_point: EntryPoint) -> None:
    """With both, whichever trigger is lower decides; both work on the same messages."""
    deep = Deep(name="window")
    entry_point(deep.agent.invoke, deep.agent.ainvoke, {"messages": [("user", TASK)]}, thread("t"))

    assert deep.main.refused == deep.checker.refused == []
    assert max(request.tokens for request in deep.main.sent) <= 20_000
