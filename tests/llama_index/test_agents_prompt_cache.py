"""Requests of an agent begin with the one before, account for every token, and are never broken."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import (
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.workflow import Context
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from llama_doubles import calling, result, said, sentence, shared_prefix, size
from llama_index_muntin import CompactingMemory, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin.messages import pairing_problems, view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

TASK = "Find out in which depot the parcels wait."
ROUNDS = 60
RUNS = [("function", False), ("function", True), ("react", True), ("code", False)]
CAN_FORCE = "early_stopping_method" in FunctionAgent.model_fields
needs_forced_answers = pytest.mark.skipif(
    not CAN_FORCE, reason="this core has no forced final answer"
)


def look(part: int) -> str:
    """Look into a depot."""
    return f"Depot {part}: " + " ".join(sentence(part * 31 + at) for at in range(12))


def react(part: int) -> str:
    return f'Thought: depot {part} next.\nAction: look\nAction Input: {{"part": {part}}}'


def agent_of(kind: str, llm: Any, **more: Any) -> Any:
    if kind == "code":
        return CodeActAgent(
            llm=llm, tools=[look], code_execute_fn=lambda code: str(eval(code, {"look": look})),
            **more,
        )  # fmt: skip
    return {"function": FunctionAgent, "react": ReActAgent}[kind](llm=llm, tools=[look], **more)


def script_of(kind: str, rounds: int) -> list[Any]:
    return {
        "function": [call("look", part=n) for n in range(rounds)] + ["Done."],
        "react": [react(n) for n in range(rounds)] + ["Thought: done.\nAnswer: Done."],
        "code": [f"<execute>look({n})</execute>" for n in range(rounds)] + ["Done."],
    }[kind]


def run(agent: Any, **more: Any) -> str:
    async def go() -> str:
        return str(await agent.run(**{"user_msg": TASK, "max_iterations": 99, **more}))

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("kind", "workflow"),
    [("function", False), ("function", True), ("react", True), ("code", False),
     pytest.param("react", False, marks=pytest.mark.slow),
     pytest.param("code", True, marks=pytest.mark.slow)],
)  # fmt: skip
def test_sixty_rounds_are_served_from_the_prompt_cache(kind: str, workflow: bool) -> None:  # noqa: FBT001 - pytest's own way
    """Cut anew at each step, a request shares next to nothing with the one before."""
    llm = StrictLLM(script_of(kind, ROUNDS), window=16_000, num_output=500)
    agent = with_window(agent_of(kind, llm, name="a", description="a"))
    runs: Any = AgentWorkflow(agents=[agent], root_agent="a") if workflow else agent

    assert "Done." in run(runs, memory=CompactingMemory.from_defaults(llm=llm))
    assert llm.calls == ROUNDS + 1, "a refused request is made again"
    assert max(llm.tokens) <= 15_500
    shares = [shared_prefix(before, after) for before, after in pairwise(llm.requests)]
    assert sum(shares) / len(shares) >= 0.85
    assert all(any(m.content == TASK for m in request) for request in llm.requests)


def test_the_next_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """A follow-up question must not be the end of the prompt cache."""
    llm = StrictLLM(
        [*script_of("function", 20), *script_of("function", 20)], window=12_000, num_output=500
    )
    agent = with_window(agent_of("function", llm))

    async def go() -> None:
        memory = memory_of_llama_index(tmp_path, 200_000)
        for _ in range(2):
            await agent.run(user_msg=TASK, memory=memory, max_iterations=99)

    asyncio.run(go())
    shares = [shared_prefix(before, after) for before, after in pairwise(llm.requests)]

    assert sum(shares) / len(shares) >= 0.8


@pytest.mark.parametrize("kind", ["function", "react", "code"])
def test_the_account_of_a_step_adds_up_to_the_window(kind: str) -> None:
    """A reserve of 0, no window and 863 tokens in no row explain nothing."""
    llm = StrictLLM(script_of(kind, 20), window=8000, num_output=500)
    agent: Any = with_window(agent_of(kind, llm, system_prompt="You are careful."))
    run(agent, memory=CompactingMemory.from_defaults(llm=llm))
    report = agent.last_fit.report

    assert (report.window, report.reserve, report.budget) == (8000, 500, 7500)
    assert report.used == llm.tokens[-1]
    assert report.idle == 7500 - llm.tokens[-1]
    if kind != "function":
        assert report.fixed["agent header"] > 50
    assert "agent header" in str(report) or kind == "function"


def memory_of_llama_index(folder: Path, limit: int) -> Memory:
    """Make a `Memory` whose connections are closed: its default store cannot close them."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'm.db'}", poolclass=NullPool)
    return Memory.from_defaults(token_limit=limit, async_engine=engine)


MEMORIES: dict[str, Callable[[Any, Path], Any]] = {
    "compacting": lambda llm, _: CompactingMemory.from_defaults(llm=llm),
    "buffer": lambda *_: ChatMemoryBuffer.from_defaults(token_limit=3000),
    "large buffer": lambda *_: ChatMemoryBuffer.from_defaults(token_limit=90_000),
    "memory": lambda _, folder: memory_of_llama_index(folder, 3000),
    "large memory": lambda _, folder: memory_of_llama_index(folder, 90_000),
    "default": lambda *_: None,
}


@pytest.mark.parametrize(
    ("kind", "workflow"),
    [("function", False), ("function", True), ("react", True), ("code", False)],
)
@pytest.mark.parametrize("memory", sorted(MEMORIES))
@needs_forced_answers
def test_a_forced_final_answer_fits_whatever_the_memory(
    kind: str,
    memory: str,
    workflow: bool,  # noqa: FBT001 - pytest's own way
    tmp_path: Path,
) -> None:
    """40,197 tokens were sent into a window of 4,000."""
    llm = StrictLLM([*script_of(kind, 12)[:12], "So far depot 3."], window=4000, num_output=400)
    agent = with_window(agent_of(kind, llm, name="a", description="a", system_prompt="Be terse."))
    runs: Any = AgentWorkflow(agents=[agent], root_agent="a") if workflow else agent
    made = MEMORIES[memory](llm, tmp_path)
    more = {} if made is None else {"memory": made}

    async def go() -> tuple[str, Any]:
        ctx = Context(runs)
        answer = await runs.run(
            user_msg=TASK, ctx=ctx, max_iterations=12, early_stopping_method="generate", **more
        )
        return str(answer), await ctx.store.get("memory")

    answer, kept = asyncio.run(go())

    assert answer == "So far depot 3."
    assert max(llm.tokens) <= 3600
    assert any(message.content == TASK for message in llm.requests[-1])
    assert "Depot 10" in str([message.content for message in llm.requests[-1]])
    assert made is None or kept is made
    assert type(kept).__name__ != "ForcedAnswer"


@pytest.mark.parametrize("memory", sorted(MEMORIES))
@pytest.mark.parametrize("kind", ["function", "react", "code"])
def test_after_a_hand_over_the_question_and_the_steps_are_there(
    kind: str, memory: str, tmp_path: Path
) -> None:
    """The default memory returned a tool result alone: no question, no call, refused."""
    llm = StrictLLM(
        [
            *script_of(kind, 9)[:9],
            {
                "react": "Thought: it knows.\nAction: handoff\n"
                'Action Input: {"to_agent": "second", "reason": "it knows"}'
            }.get(kind, call("handoff", to_agent="second", reason="it knows")),
            call("look", part=50),
            "Depot 8.",
        ],
        window=4000,
        num_output=400,
    )
    first = with_window(agent_of(kind, llm, name="first", description="first"))
    second = with_window(agent_of("function", llm, name="second", description="second"))
    workflow: Any = AgentWorkflow(agents=[first, second], root_agent="first")
    made = MEMORIES[memory](llm, tmp_path)

    assert run(workflow, **({} if made is None else {"memory": made})) == "Depot 8."
    for request in llm.requests[-2:]:
        assert any(TASK in str(message.content) for message in request)
        assert not pairing_problems([view(message) for message in request])
    assert "Depot 8" in str([message.content for message in llm.requests[-2]])
    assert max(llm.tokens) <= 3600


BROKEN: dict[str, list[ChatMessage]] = {
    "cancelled": [said("user", "Look."), calling("c1")],
    "half answered": [
        said("user", "Look."),
        ChatMessage(
            role=MessageRole.ASSISTANT, blocks=[*calling("c1").blocks, *calling("c2").blocks]
        ),
        result("c1", "fine"),
        said("user", "And?"),
    ],
    "orphan": [result("gone", "late"), said("user", "Hello?"), said("assistant", "Yes?")],
}


@pytest.mark.parametrize("broken", sorted(BROKEN))
@pytest.mark.parametrize(
    ("kind", "memory"),
    [("function", "large buffer"), ("function", "large memory"), ("react", "large buffer"),
     ("code", "large memory"), ("function", "compacting")],
)  # fmt: skip
def test_a_broken_history_is_mended_and_reported(
    kind: str, broken: str, memory: str, tmp_path: Path
) -> None:
    """A tool call that was cancelled once was refused on every later run."""
    llm = StrictLLM(script_of(kind, 1), window=8000, num_output=500)
    agent: Any = with_window(agent_of(kind, llm))
    made = MEMORIES[memory](llm, tmp_path)
    made.set(BROKEN[broken])

    assert "Done." in run(agent, memory=made)
    assert not pairing_problems([view(message) for message in llm.requests[0]])
    if memory != "compacting":
        assert any("repaired" in note for note in agent.last_fit.report.notes)


def test_a_summariser_writes_recaps_of_old_steps() -> None:
    """Facts alone do not tell why the steps were taken."""
    llm = StrictLLM(script_of("function", 20), window=4000, num_output=400)
    recaps = StrictLLM(lambda _: "Depots 0 to 9 were looked at in turn.", window=32_000)
    agent = with_window(agent_of("function", llm), summarizer=recaps)

    assert run(agent, memory=CompactingMemory.from_defaults(llm=llm)) == "Done."
    assert recaps.calls > 0
    assert "were looked at in turn" in str([m.content for m in llm.requests[-1]])
    assert size(llm.requests[-1]) <= 3600
