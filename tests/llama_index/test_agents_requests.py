"""Requests that no step of an agent makes, and requests that a provider refuses."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import (
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context
from pydantic import BaseModel, Field, PrivateAttr

from llama_doubles import sentence
from llama_index_muntin import CompactingMemory, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin.messages import pairing_problems, view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.base.llms.types import ChatMessage

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

TASK = "Find out in which depot the parcels wait."
STEPS = 14
HAS_OUTPUT = "output_cls" in FunctionAgent.model_fields


def look(part: int) -> str:
    """Look into a depot."""
    return f"Depot {part}: " + " ".join(sentence(part * 31 + at) for at in range(8))


class Found(BaseModel):
    """Where the parcels are."""

    depot: int = Field(description="Number of the depot.")


def agent_of(kind: str, llm: Any, **more: Any) -> Any:
    if kind == "code":
        return CodeActAgent(
            llm=llm, tools=[look], code_execute_fn=lambda code: str(eval(code, {"look": look})),
            **more,
        )  # fmt: skip
    return {"function": FunctionAgent, "react": ReActAgent}[kind](llm=llm, tools=[look], **more)


def script_of(kind: str, steps: int = STEPS) -> list[Any]:
    return {
        "function": [call("look", part=n) for n in range(steps)] + ["Depot 8."],
        "react": [
            f'Thought: depot {n} next.\nAction: look\nAction Input: {{"part": {n}}}'
            for n in range(steps)
        ]
        + ["Thought: done.\nAnswer: Depot 8."],
        "code": [f"<execute>look({n})</execute>" for n in range(steps)] + ["Depot 8."],
    }[kind]


MEMORIES: dict[str, Callable[[Any], Any]] = {
    "compacting": lambda llm: CompactingMemory.from_defaults(llm=llm),
    "large buffer": lambda _: ChatMemoryBuffer.from_defaults(token_limit=90_000),
}


@pytest.mark.skipif(not HAS_OUTPUT, reason="this core has no structured output of agents")
@pytest.mark.parametrize("memory", sorted(MEMORIES))
@pytest.mark.parametrize(
    ("kind", "workflow"),
    [("function", False), ("function", True), ("react", False), ("code", True)],
)
def test_a_structured_output_is_asked_for_within_the_window(
    kind: str,
    workflow: bool,  # noqa: FBT001 - pytest's own way
    memory: str,
) -> None:
    """The whole memory was sent; the refusal became a warning, and the output was None."""
    llm = StrictLLM([*script_of(kind), call("Found", depot=8)], window=4000, num_output=400)
    own = {} if workflow else {"output_cls": Found}
    agent = with_window(
        agent_of(kind, llm, name="a", description="a", system_prompt="Be terse.", **own)
    )
    runs: Any = AgentWorkflow(agents=[agent], output_cls=Found) if workflow else agent
    made = MEMORIES[memory](llm)

    async def go() -> tuple[Any, Any]:
        ctx = Context(runs)
        result = await runs.run(user_msg=TASK, ctx=ctx, memory=made, max_iterations=99)
        return result, await ctx.store.get("memory")

    result, kept = asyncio.run(go())

    assert result.structured_response == {"depot": 8}
    assert max(llm.tokens) <= 3600
    assert TASK in str(llm.requests[-1][-1].content)
    assert "Depot 8." in str(llm.requests[-1][-1].content)
    assert kept is made, "the memory is in its place again"
    stored = "\n".join(str(message.content) for message in made.get_all())
    assert all(look(part) in stored for part in range(STEPS))


@pytest.mark.skipif(not HAS_OUTPUT, reason="this core has no structured output of agents")
def test_a_short_run_is_given_whole_to_the_structured_output() -> None:
    """What fits is not to be cut."""
    llm = StrictLLM([*script_of("function", 2), call("Found", depot=8)], window=8000)
    agent = with_window(agent_of("function", llm, output_cls=Found))
    memory = CompactingMemory.from_defaults(llm=llm)

    async def go() -> Any:
        return await agent.run(user_msg=TASK, memory=memory)

    assert asyncio.run(go()).structured_response == {"depot": 8}
    sent = str(llm.requests[-1][-1].content)
    assert all(str(message.content or "") in sent for message in memory.get_all())


class SmallerLLM(StrictLLM):
    """A model whose server has a smaller window than its metadata, as behind a gateway."""

    real: int = 0
    numbers: bool = True
    _refused: int = PrivateAttr(default=0)

    def _answer(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> ChatMessage:
        before = self.window
        self.window = self.real
        try:
            return super()._answer(messages, kwargs)
        except Exception as error:
            self._refused += 1
            if "maximum context length" not in str(error) or self.numbers:
                raise
            raise RuntimeError("Input is too long for requested model.") from None
        finally:
            self.window = before

    @property
    def refused(self) -> int:
        """Requests that were refused."""
        return self._refused


@pytest.mark.parametrize("numbers", [True, False], ids=["limit named", "no limit"])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", ["function", "react", "code"])
def test_a_request_that_is_refused_for_its_size_is_made_smaller(
    kind: str,
    streaming: bool,  # noqa: FBT001 - pytest's own way
    numbers: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """A window that the metadata overstate ended every run at the same place."""
    made: Any = SmallerLLM  # type checkers see the signature of the fields
    llm = made(script_of(kind), window=8000, num_output=400, real=5000, numbers=numbers)
    agent = with_window(agent_of(kind, llm, streaming=streaming))
    memory = CompactingMemory.from_defaults(token_limit=20_000)

    async def go() -> str:
        return str(await agent.run(user_msg=TASK, memory=memory, max_iterations=99))

    assert "Depot 8." in asyncio.run(go())
    assert llm.calls - llm.refused == STEPS + 1
    assert 1 <= llm.refused <= (1 if numbers else 4)
    for request in llm.requests:
        assert any(TASK in str(message.content) for message in request)
        assert not pairing_problems([view(message) for message in request])
    if kind == "function":
        assert sum(len(view(message).calls) for message in memory.get_all()) == STEPS


def test_another_error_of_a_provider_is_raised_as_it_is() -> None:
    """A wrong key is not to be hidden behind a second request."""
    llm = StrictLLM([RuntimeError("invalid api key")], window=8000)
    agent = with_window(agent_of("function", llm))

    async def go() -> str:
        return str(await agent.run(user_msg=TASK, memory=CompactingMemory.from_defaults(llm=llm)))

    with pytest.raises(Exception, match="invalid api key"):
        asyncio.run(go())
    assert llm.calls == 1
