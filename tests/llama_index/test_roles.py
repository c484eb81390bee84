"""A model whose template demands alternation gets it, from the memory and from every step."""

# pyright: reportArgumentType=false
# Settings are passed on as they come.

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

from llama_index_muntin import CompactingMemory, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin.messages import shape_of
from muntin.testing import check_alternating

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning"),
]


def body(messages: list[ChatMessage]) -> dict[str, Any]:
    """Write messages as the server gets them."""
    out: list[dict[str, Any]] = []
    for message in messages:
        view = shape_of(message).view(message)
        one: dict[str, Any] = {"role": message.role.value, "content": view.text}
        if view.calls:
            one["tool_calls"] = [{"id": called.id} for called in view.calls]
        out.append(one)
    return {"messages": out}


def talk() -> list[ChatMessage]:
    said = [ChatMessage(role="system", content="You help with parcels.")]
    for at in range(20):
        said += [
            ChatMessage(role="user", content=f"Where is parcel {at}? " * 9),
            ChatMessage(role="user", content=f"In depot {at}?"),
            ChatMessage(role="assistant", content=f"Parcel {at} is in depot {at}. " * 9),
            ChatMessage(role="assistant", content="It waits there."),
        ]
    return said


@pytest.mark.parametrize("limit", [250, 500, 900, 2500, 9000])
def test_a_memory_alternates_for_a_strict_model(limit: int) -> None:
    """A template refuses the whole request for one message too many."""
    for name in ("mistral-7b-instruct", "gemma-3-27b-it"):
        llm = StrictLLM(["Yes."], window=16_000, model=name)
        memory = CompactingMemory.from_defaults(chat_history=talk(), llm=llm, token_limit=limit)
        sent = memory.get(input="And parcel 7?")

        check_alternating(body(sent))
        assert sum(len((one.content or "").split()) for one in sent) > 20


def test_a_memory_for_another_model_is_left_alone() -> None:
    """Joined messages are other messages: only a template that needs them joined gets them."""
    llm = StrictLLM(["Yes."], window=16_000, model="gpt-4o")
    memory = CompactingMemory.from_defaults(chat_history=talk(), llm=llm, token_limit=9000)

    assert len(memory.get()) == len(talk())


@pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning")
def test_every_step_of_an_agent_alternates() -> None:
    """The steps are fitted where no memory sees them."""

    def read_log(part: int) -> str:
        """Read a part of the log."""
        return f"line {part} " * 300

    llm = StrictLLM(
        [call("read_log", part=n) for n in range(6)] + ["All quiet."],
        window=4000, model="mistral-7b-instruct",
    )  # fmt: skip
    agent: Any = with_window(FunctionAgent(llm=llm, tools=[read_log]))
    memory = ChatMemoryBuffer.from_defaults(chat_history=talk()[1:], token_limit=50_000)

    async def ask() -> str:
        return str(await agent.run(user_msg="Anything odd in the log?", memory=memory))

    assert "All quiet." in asyncio.run(ask())
    assert len(llm.requests) == 7
    for request in llm.requests:
        check_alternating(body(request))
