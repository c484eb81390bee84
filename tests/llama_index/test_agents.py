"""Agents stay inside their window, step after step, and forget nothing."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import (
    AgentInput,
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
    ToolCallResult,
)
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from llama_doubles import EXACT, said, talk
from llama_index_muntin import CompactingMemory, WindowLedger, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin import ConfigurationError, ToolResultStore, count_messages
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems

# ReActAgent asks its context from within a step.
pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

QUESTION = "Anything odd in the log?"
HAS_STREAMING = "streaming" in FunctionAgent.model_fields
STREAMING = (True, False) if HAS_STREAMING else (True,)
CAN_FORCE = "early_stopping_method" in FunctionAgent.model_fields
needs_forced_answers = pytest.mark.skipif(
    not CAN_FORCE, reason="this core has no forced final answer"
)


def read_log(part: int) -> str:
    """Read a part of the log."""
    return " ".join(f"line-{part}-{n}" for n in range(620))


def react(part: int) -> str:
    """Write a step as a ReAct model does."""
    return f'Thought: I look at part {part}.\nAction: read_log\nAction Input: {{"part": {part}}}'


def run_code(code: str) -> str:
    """Run the code of a CodeActAgent."""
    return str(eval(code, {"read_log": read_log}))


KINDS = ("function", "react", "code")


def agent_of(
    kind: str, steps: int, *, streaming: bool = True, **more: Any
) -> tuple[Any, StrictLLM]:
    """Make an agent of a kind whose model calls a 3.1k-token tool so many times, then answers."""
    form = more.pop("form", "block")
    parts = more.pop("parts", range(steps))
    script: list[Any] = {
        "function": [call("read_log", part=n) for n in parts] + ["All quiet."],
        "react": [react(n) for n in parts] + ["Thought: done.\nAnswer: All quiet."],
        "code": [f"<execute>read_log({n})</execute>" for n in parts] + ["All quiet."],
    }[kind]
    llm = StrictLLM(script, window=8000, num_output=500, form=form)
    knobs: dict[str, Any] = {"llm": llm, "tools": [read_log], **more}
    if HAS_STREAMING:
        knobs["streaming"] = streaming
    if kind == "code":
        return CodeActAgent(code_execute_fn=run_code, **knobs), llm
    return {"function": FunctionAgent, "react": ReActAgent}[kind](**knobs), llm


def run(agent: Any, memory: Any, question: Any = QUESTION, **more: Any) -> str:
    """Run an agent to its answer."""

    async def go() -> str:
        return str(await agent.run(user_msg=question, memory=memory, **more))

    return asyncio.run(go())


# --- five results of 3.1k tokens in a window of 8k -----------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_window_the_prompt_grows_past_it(kind: str) -> None:
    """What this is against: the memory never sees the steps."""
    agent, llm = agent_of(kind, 5)
    # Whichever error of its own a core wraps it in.
    with pytest.raises(Exception, match="maximum context length"):
        run(agent, CompactingMemory.from_defaults(llm=llm))


@pytest.mark.parametrize("streaming", STREAMING)
@pytest.mark.parametrize("kind", KINDS)
def test_every_step_fits_and_the_whole_trajectory_reaches_memory(
    kind: str,
    streaming: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """The strict model refuses any prompt over its window, and any broken pair."""
    agent, llm = agent_of(kind, 5, streaming=streaming)
    memory = CompactingMemory.from_defaults(llm=llm)

    assert "All quiet." in run(with_window(agent), memory)
    assert llm.calls == 6
    assert max(llm.tokens) <= 7500
    stored = "\n".join(
        f"{message.content}" for message in memory.get_all() if message.role is not MessageRole.USER
        or "Result of executing" in str(message.content)
    )  # fmt: skip
    for part in range(5):
        assert read_log(part) in stored


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_result_is_always_there_in_full(kind: str) -> None:
    """The model asked for it just now; old ones give way first."""
    agent, llm = agent_of(kind, 5)
    run(with_window(agent), CompactingMemory.from_defaults(llm=llm))

    for part, request in enumerate(llm.requests[1:]):
        assert any(read_log(part) in str(message.content) for message in request)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_same_action_again_supersedes_a_result(kind: str) -> None:
    """Five parts of a log are not one call made five times; four of them would be gone."""
    note, digest = "the same call was made again", '"digest"'
    agent, llm = agent_of(kind, 9)
    run(with_window(agent), CompactingMemory.from_defaults(llm=llm))
    different = "\n".join(str(message.content) for one in llm.requests for message in one)
    assert note not in different
    assert digest not in different
    assert "id=tr_" in str([message.content for message in llm.requests[3]])

    agent, llm = agent_of(kind, 5, parts=[1] * 5)
    run(with_window(agent), CompactingMemory.from_defaults(llm=llm))
    assert note in str([message.content for message in llm.requests[-1]])


@pytest.mark.parametrize("kind", KINDS)
def test_the_question_is_in_every_prompt(kind: str) -> None:
    """Results that are said as the user's must not take its place."""
    agent, llm = agent_of(kind, 6)
    run(with_window(agent), CompactingMemory.from_defaults(chat_history=talk(40), llm=llm))

    for request in llm.requests:
        assert any(str(message.content) == QUESTION for message in request)


@pytest.mark.parametrize("form", ["block", "kwargs"])
def test_calls_are_kept_with_their_results_in_either_form(form: str) -> None:
    """Older integrations put calls beside the blocks."""
    agent, llm = agent_of("function", 6, form=form)
    memory = CompactingMemory.from_defaults(llm=llm)

    assert run(with_window(agent), memory) == "All quiet."
    assert [len(view(message).calls) for message in memory.get_all()].count(1) == 6


def test_parallel_calls_are_kept_or_dropped_together() -> None:
    """Half a batch is a broken request."""
    script: list[Any] = [
        [call("read_log", part=n), call("read_log", part=n + 1)] for n in (0, 2, 4)
    ]
    llm = StrictLLM([*script, "All quiet."], window=8000, num_output=500)
    agent = with_window(FunctionAgent(llm=llm, tools=[read_log]))

    assert run(agent, CompactingMemory.from_defaults(llm=llm)) == "All quiet."
    assert max(llm.tokens) <= 7500


@pytest.mark.parametrize("kind", KINDS)
def test_one_result_larger_than_the_window_is_shortened_and_can_be_read_on(kind: str) -> None:
    """A tool that returns 20,000 words breaks the agent otherwise."""
    giant = " ".join(f"entry-{n}" for n in range(20_000))

    def dump() -> str:
        """Dump everything."""
        return giant

    steps: dict[str, Any] = {
        "function": [call("dump"), "Read."],
        "react": ["Thought: t\nAction: dump\nAction Input: {}", "Thought: t\nAnswer: Read."],
        "code": ["<execute>dump()</execute>", "Read."],
    }
    llm = StrictLLM(steps[kind], window=8000, num_output=500)
    store = ToolResultStore.in_memory()
    knobs: dict[str, Any] = {"llm": llm, "tools": [dump]}
    agent: Any = (
        CodeActAgent(code_execute_fn=lambda code: str(eval(code, {"dump": dump})), **knobs)
        if kind == "code"
        else {"function": FunctionAgent, "react": ReActAgent}[kind](**knobs)
    )
    windowed = with_window(agent, results=store)

    assert "Read." in run(windowed, CompactingMemory.from_defaults(llm=llm))
    sent = "\n".join(str(message.content) for message in llm.requests[-1])
    key = sent.partition("id=")[2][:23]
    assert giant in store.get(key)
    tools = {tool.metadata.name: tool for tool in windowed.tools}
    assert "entry-19999" in str(tools["read_tool_result"](id=key, pattern="entry-19999"))


def test_the_schemas_of_tools_are_counted() -> None:
    """They travel beside the messages, where no trimming of messages sees them."""

    def made(name: str) -> FunctionTool:
        def fn(a: int, b: str, c: float) -> str:
            return read_log(a)

        return FunctionTool.from_defaults(fn, name=name, description="It does much. " * 40)

    tools = [FunctionTool.from_defaults(read_log), *(made(f"tool_{n}") for n in range(20))]
    llm = StrictLLM(
        [*(call("read_log", part=n) for n in range(4)), "All quiet."], window=8000, num_output=500
    )
    agent = with_window(FunctionAgent(llm=llm, tools=tools))

    assert run(agent, CompactingMemory.from_defaults(llm=llm)) == "All quiet."
    assert llm.tokens[0] > 3000
    assert max(llm.tokens) <= 7500


# --- what else happens to agents -----------------------------------------------------------------


@pytest.mark.parametrize("streaming", STREAMING)
def test_agents_of_a_workflow_stay_inside_it_and_hand_over(streaming: bool) -> None:  # noqa: FBT001 - pytest's own way
    """A handover is a tool call, and what one did goes on to the other."""
    script: list[Any] = [call("read_log", part=n) for n in range(3)]
    script += [call("handoff", to_agent="second", reason="you know more")]
    script += [call("read_log", part=n) for n in range(3, 6)] + ["All quiet."]
    llm = StrictLLM(script, window=8000, num_output=500)
    knobs: dict[str, Any] = {"llm": llm, "tools": [read_log]}
    if HAS_STREAMING:
        knobs["streaming"] = streaming
    first, second = (
        with_window(
            FunctionAgent(name=name, description=name, system_prompt=f"I am {name}.", **knobs)
        )
        for name in ("first", "second")
    )  # fmt: skip
    memory = CompactingMemory.from_defaults(llm=llm)
    workflow = AgentWorkflow(agents=[first, second], root_agent="first")

    assert run(workflow, memory) == "All quiet."
    assert max(llm.tokens) <= 7500
    assert llm.requests[-1][0].content == "I am second."
    assert sum(read_log(part) in str(m.content) for part in range(6) for m in memory.get_all()) == 6


@pytest.mark.parametrize("to", ["second", "nobody"])
def test_code_that_hands_over_leaves_no_result_without_a_call(to: str) -> None:
    """CodeActAgent keeps the result of a handover and not its call: no provider takes that."""
    llm = StrictLLM(
        ["<execute>read_log(0)</execute>", call("handoff", to_agent=to, reason="it knows")]
        + ["All quiet."] * 2,
        window=8000, num_output=500,
    )  # fmt: skip
    first = CodeActAgent(
        name="first", description="first", llm=llm, tools=[read_log], code_execute_fn=run_code
    )
    second = FunctionAgent(name="second", description="second", llm=llm, tools=[read_log])
    memory = CompactingMemory.from_defaults(llm=llm)
    agents = [with_window(first), with_window(second)]

    assert run(AgentWorkflow(agents=agents, root_agent="first"), memory) == "All quiet."
    stored = memory.get_all()
    assert pairing_problems([view(message) for message in stored]) == ()
    assert any(to in str(message.content) for message in stored)


@needs_forced_answers
@pytest.mark.parametrize("kind", ["function", "react"])
@pytest.mark.parametrize("num_output", [256, 2000, 4000])
def test_a_forced_final_answer_leaves_its_prompt_a_place(kind: str, num_output: int) -> None:
    """A memory that takes all that the answer leaves has no place for a system prompt."""
    prompt = "You are careful. " + " ".join(f"rule{n} holds." for n in range(180))
    agent, llm = agent_of(kind, 9, system_prompt=prompt)
    llm.num_output = num_output
    llm._script = iter([*list(llm._script)[:3], "So far nothing."])  # pyright: ignore[reportPrivateUsage] - our own double
    memory = CompactingMemory.from_defaults(llm=llm, chat_history=talk(120))
    run(with_window(agent), memory, max_iterations=3, early_stopping_method="generate")

    assert max(llm.tokens) <= 8000 - num_output


@needs_forced_answers
@pytest.mark.parametrize("workflow", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_forced_final_answer_sees_the_steps(kind: str, workflow: bool) -> None:  # noqa: FBT001 - pytest's own way
    """It is asked of memory alone, which knew nothing of the steps."""
    agent, llm = agent_of(kind, 9, system_prompt="Be terse.")
    llm._script = iter([*list(llm._script)[:4], "So far nothing."])  # pyright: ignore[reportPrivateUsage] - our own double
    windowed: Any = with_window(agent)
    if workflow:
        windowed = AgentWorkflow(agents=[windowed], root_agent=windowed.name)
    memory = CompactingMemory.from_defaults(llm=llm)

    answer = run(windowed, memory, max_iterations=4, early_stopping_method="generate")
    final = "\n".join(str(message.content) for message in llm.requests[-1])

    assert answer == "So far nothing."
    assert "line-2-" in final
    assert max(llm.tokens) <= 7500


@needs_forced_answers
def test_after_a_forced_answer_the_next_run_begins_sound() -> None:
    """Steps left in the context, with a call nobody answered, would break every later request."""
    llm = StrictLLM(
        [*(call("read_log", part=n) for n in range(3)), "So far nothing.", "You are welcome."],
        window=8000, num_output=500,
    )  # fmt: skip
    agent: Any = with_window(FunctionAgent(llm=llm, tools=[read_log]))
    memory = CompactingMemory.from_defaults(llm=llm)

    async def go() -> str:
        ctx = Context(agent)
        await agent.run(
            user_msg=QUESTION,
            memory=memory,
            ctx=ctx,
            max_iterations=3,
            early_stopping_method="generate",
        )
        return str(await agent.run(user_msg="Thanks.", ctx=ctx))

    assert asyncio.run(go()) == "You are welcome."


@pytest.mark.parametrize("reply", ["Thought: I wonder.", ""][: 1 + CAN_FORCE])
def test_a_reply_that_cannot_be_read_does_not_double_the_question(reply: str) -> None:
    """A retry is made of memory and the question once more, and of the reply, empty or not."""
    llm = StrictLLM(
        [reply, react(1), "Thought: done.\nAnswer: All quiet."],
        window=8000, num_output=500,
    )  # fmt: skip
    agent = with_window(ReActAgent(llm=llm, tools=[read_log]))

    assert "All quiet." in run(agent, CompactingMemory.from_defaults(llm=llm))
    for request in llm.requests:
        assert [str(message.content) for message in request].count(QUESTION) == 1


def test_the_question_survives_a_retry_under_pressure() -> None:
    """There the newest message of the user is the complaint about the reply."""
    llm = StrictLLM(
        [*(react(n) for n in range(4)), "Thought: I wonder.", "Thought: done.\nAnswer: All quiet."],
        window=8000, num_output=500,
    )  # fmt: skip
    agent = with_window(ReActAgent(llm=llm, tools=[read_log]))
    memory = CompactingMemory.from_defaults(llm=llm, chat_history=talk(60))

    assert "All quiet." in run(agent, memory)
    assert all(any(m.content == QUESTION for m in request) for request in llm.requests)


@pytest.mark.parametrize("kind", ["react", "code"])
def test_a_system_message_in_the_history_is_not_taken_for_the_agents_own(kind: str) -> None:
    """ReActAgent drops the first system message, CodeActAgent writes over it."""
    agent, llm = agent_of(kind, 1)
    memory = CompactingMemory.from_defaults(llm=llm)
    memory.put(said("system", "Never mention prices."))
    run(with_window(agent), memory)

    for request in llm.requests:
        assert any(message.content == "Never mention prices." for message in request)


def test_the_state_of_a_workflow_still_reaches_the_prompt_and_not_the_memory() -> None:
    """Core rewrites the last message it got from memory in place."""
    agent, llm = agent_of("function", 1, initial_state={"mood": "calm"})
    memory = CompactingMemory.from_defaults(llm=llm)
    run(with_window(agent), memory)

    assert "calm" in str(llm.requests[0][-1].content)
    assert memory.get_all()[0].content == QUESTION


def test_the_stream_shows_what_was_really_sent() -> None:
    """A trace of the untrimmed steps would be a trace of something else."""
    agent, llm = agent_of("function", 5)
    windowed = with_window(agent)

    async def go() -> tuple[list[int], int]:
        handler = windowed.run(user_msg=QUESTION, memory=CompactingMemory.from_defaults(llm=llm))
        sizes: list[int] = []
        results = 0
        async for event in handler.stream_events():
            if isinstance(event, AgentInput):
                sizes.append(count_messages(event.input, llm.tools[0], counter=EXACT))
            results += isinstance(event, ToolCallResult)
        await handler
        return sizes, results

    sizes, results = asyncio.run(go())

    assert sizes == llm.tokens
    assert results == 5


def test_a_foreign_memory_will_do() -> None:
    """Nobody has to change their memory to keep an agent inside its window."""
    agent, llm = agent_of("function", 5)

    assert run(with_window(agent), ChatMemoryBuffer.from_defaults(token_limit=4000)) == "All quiet."
    assert max(llm.tokens) <= 7500


def test_a_short_run_is_sent_as_it_is() -> None:
    """Nothing may change while everything fits."""
    plain, llm_plain = agent_of("function", 1)
    agent, llm = agent_of("function", 1)
    run(plain, CompactingMemory.from_defaults(llm=llm_plain))
    run(with_window(agent), CompactingMemory.from_defaults(llm=llm))

    assert llm.requests == llm_plain.requests


def test_the_given_agent_is_not_changed() -> None:
    """A function that returns a new agent must leave the old one alone."""
    agent, _ = agent_of("function", 1)
    tools = list(agent.tools)
    windowed: Any = with_window(agent)

    assert type(agent) is FunctionAgent
    assert agent.tools == tools
    names = [tool.metadata.name for tool in windowed.tools]
    assert isinstance(windowed, FunctionAgent)
    assert names == ["read_log", "read_tool_result"]


def test_an_agent_class_of_ones_own_keeps_what_it_does() -> None:
    """People subclass agents and give them fields."""

    class Polite(FunctionAgent):
        greeting: str = "Hello"

        async def take_step(self, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> Any:
            output = await super().take_step(ctx, llm_input, tools, memory)
            output.response.additional_kwargs["greeting"] = self.greeting
            return output

    llm = StrictLLM([call("read_log", part=n) for n in range(4)] + ["Bye."], window=8000)
    agent = with_window(Polite(llm=llm, tools=[read_log], greeting="Hi"))
    memory = CompactingMemory.from_defaults(llm=llm)

    assert run(agent, memory) == "Bye."
    assert memory.get_all()[-1].additional_kwargs["greeting"] == "Hi"


def test_what_became_of_the_messages_can_be_asked() -> None:
    """A step that dropped something says what."""
    agent, llm = agent_of("function", 5)
    windowed: Any = with_window(agent)
    before: Any = windowed.last_fit
    assert before is None
    run(windowed, CompactingMemory.from_defaults(llm=llm))
    kinds = {one.kind for one in windowed.last_fit.report.decisions}

    assert kinds >= {"kept"}
    assert kinds & {"shortened", "summarised", "dropped"}


def test_runs_at_the_same_time_do_not_mix_their_steps() -> None:
    """One agent object serves many conversations."""

    def reply(messages: list[ChatMessage]) -> Any:
        steps = sum(len(view(message).calls) for message in messages)
        asked = next(str(m.content) for m in messages if str(m.content).startswith("log "))
        part = int(asked.split()[1])
        return call("read_log", part=part) if steps < 3 else f"log {part} is quiet"

    llm = StrictLLM(reply, window=12_000, num_output=500)
    agent: Any = with_window(FunctionAgent(llm=llm, tools=[read_log]))

    async def go() -> list[str]:
        runs = [
            agent.run(user_msg=f"log {part}", memory=CompactingMemory.from_defaults(llm=llm))
            for part in range(5)
        ]
        return [str(one) for one in await asyncio.gather(*runs)]

    assert asyncio.run(go()) == [f"log {part} is quiet" for part in range(5)]


def test_what_cannot_fit_is_an_error_before_anything_is_sent() -> None:
    """A request over the window is not the provider's to refuse."""
    agent, llm = agent_of("function", 1)
    with pytest.raises(Exception, match="protected messages: "):
        run(with_window(agent), ChatMemoryBuffer.from_defaults(token_limit=90_000), "word " * 9000)

    assert llm.calls == 0


def test_an_agent_that_writes_more_than_fits_is_stopped() -> None:
    """A system prompt of its own that alone is too large cannot be helped, but can be said."""
    agent, llm = agent_of("react", 1, system_prompt="Be careful. " * 4000)
    with pytest.raises(Exception, match="7500 available"):
        run(with_window(agent), ChatMemoryBuffer.from_defaults(token_limit=4000))

    assert llm.calls == 0


def test_agent_and_memory_share_one_ledger() -> None:
    """Steps, history and answer add up to the window."""
    agent, llm = agent_of("function", 5)
    ledger = WindowLedger(llm)
    memory = CompactingMemory.from_defaults(ledger=ledger, chat_history=talk(150))

    assert run(with_window(agent, ledger=ledger), memory) == "All quiet."
    assert max(llm.tokens) <= ledger.window - ledger.output_reserve


def test_a_window_twice_told_is_refused() -> None:
    """One of them would be ignored."""
    agent, llm = agent_of("function", 1)
    with pytest.raises(ConfigurationError, match="not both"):
        with_window(agent, window=100, ledger=WindowLedger(llm))


def test_a_windowed_agent_can_be_windowed_again() -> None:
    """A factory may be called twice."""
    agent, llm = agent_of("function", 5)
    twice = with_window(with_window(agent), window=7000)
    run(twice, CompactingMemory.from_defaults(llm=llm))

    assert max(llm.tokens) <= 6500


def test_a_context_can_be_saved_between_two_runs() -> None:
    """A conversation goes on after a restart, trimmed or not."""
    agent, llm = agent_of("function", 4)
    windowed = with_window(agent)
    memory = CompactingMemory.from_defaults(llm=llm)

    async def go() -> tuple[str, int]:
        ctx = Context(windowed)
        await windowed.run(user_msg=QUESTION, ctx=ctx, memory=memory)
        saved = json.loads(json.dumps(ctx.to_dict()))
        restored = Context.from_dict(windowed, saved)
        llm._script = iter(["You are welcome."])  # pyright: ignore[reportPrivateUsage] - our own double
        again = str(await windowed.run(user_msg="Thanks.", ctx=restored))
        return again, len((await restored.store.get("memory")).get_all())

    assert asyncio.run(go()) == ("You are welcome.", 12)


def test_the_callers_messages_are_not_touched() -> None:
    """A history that is passed in may be used again."""
    agent, llm = agent_of("function", 5)
    history = talk(30)
    before = copy.deepcopy(history)
    run(with_window(agent), CompactingMemory.from_defaults(llm=llm), chat_history=history)

    assert history == before


def test_only_the_message_that_asks_is_kept_for_the_question() -> None:
    """A long message of before held the short question's words, and nothing fitted any more."""
    agent, llm = agent_of("function", 1)
    old = "Here is a document. yes " + " ".join(f"w{n}" for n in range(5000))
    history = [said("user", old), said("assistant", "ok")]
    memory = ChatMemoryBuffer.from_defaults(token_limit=50_000)

    assert run(with_window(agent), memory, "yes", chat_history=history) == "All quiet."
    assert max(llm.tokens) <= 7500


@pytest.mark.parametrize("wrong", ["workflow", "text"])
def test_what_takes_no_steps_is_refused(wrong: str) -> None:
    """It was an AttributeError that named a private thing."""
    agent, _ = agent_of("function", 1)
    given: Any = AgentWorkflow(agents=[agent]) if wrong == "workflow" else "agent"
    with pytest.raises(ConfigurationError, match="takes no steps"):
        with_window(given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_windowed_agent_can_be_copied(kind: str) -> None:
    """Whoever serves many users copies agents; the plain ones can be."""
    agent, _ = agent_of(kind, 4)
    windowed: Any = with_window(agent)
    copied = copy.deepcopy(windowed)
    llm = agent_of(kind, 4)[1]
    copied.llm = llm

    assert "All quiet." in run(copied, CompactingMemory.from_defaults(llm=llm))
    assert max(llm.tokens) <= 7500
    assert windowed.last_fit is None
