"""An agent of LlamaIndex answers a refusal as the LangChain middleware does: one other request."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.memory import ChatMemoryBuffer

from llama_index_muntin import with_window
from llama_index_muntin.testing import StrictLLM, call

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

HAS_STREAMING = "streaming" in FunctionAgent.model_fields


def read_log(part: int) -> str:
    """Read a part of the log."""
    return " ".join(f"line-{part}-{n}" for n in range(300))


def react(part: int) -> str:
    return f'Thought: I look at part {part}.\nAction: read_log\nAction Input: {{"part": {part}}}'


def agent_of(kind: str, *, streaming: bool, told: int, real: int) -> tuple[Any, StrictLLM]:
    """Make an agent that is told a larger window than its model has."""
    steps = range(8)
    script: list[Any] = [call("read_log", part=n) for n in steps] + ["All quiet."]
    if kind == "react":
        script = [react(n) for n in steps] + ["Thought: done.\nAnswer: All quiet."]
    llm = StrictLLM(script, window=real)
    more: Any = {"streaming": streaming} if HAS_STREAMING else {}
    made = (ReActAgent if kind == "react" else FunctionAgent)(llm=llm, tools=[read_log], **more)
    return with_window(made, window=told), llm


def run(agent: Any) -> str:
    memory = ChatMemoryBuffer.from_defaults(token_limit=100_000)

    async def ask() -> str:
        return str(await agent.run(user_msg="Anything odd in the log?", memory=memory))

    return asyncio.run(ask())


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", ["function", "react"])
def test_one_refusal_teaches_the_window_and_the_run_goes_on(kind: str, *, streaming: bool) -> None:
    """A window that was given too large ended the run at the first refusal."""
    agent, llm = agent_of(kind, streaming=streaming, told=20_000, real=6000)
    refused = 0
    answer: Any = getattr(type(llm), "_answer")  # noqa: B009 - private

    def counted(self: Any, *args: Any) -> Any:
        nonlocal refused
        try:
            return answer(self, *args)
        except Exception:
            refused += 1
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(llm), "_answer", counted)
        assert "All quiet." in run(agent)

    assert refused == 1  # the limit it names holds for all later steps
    assert agent.last_fit.report.window == 6000


def test_an_error_that_a_smaller_request_does_not_cure_is_raised() -> None:
    """An answer to a wrong key by a smaller prompt would be paid for nothing."""
    agent, llm = agent_of("function", streaming=False, told=20_000, real=6000)
    tries = 0

    def fail(_self: Any, *_args: Any) -> Any:
        nonlocal tries
        tries += 1
        raise ValueError("invalid api key")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(llm), "_answer", fail)
        with pytest.raises(Exception, match="invalid api key"):
            run(agent)

    assert tries == 1
