"""An agent on its second request keeps it in every model call, in LangChain and in LlamaIndex.

The first request is finished, the second one was approved by a short message, and forty tool rounds
follow in a window of 8,000 tokens. A cut by age removes the second request, because the approval is
the newest user message.
"""

# Settings are passed on as they come, and `create_agent` has parts without types.
# pyright: reportArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain.agents")
pytest.importorskip("llama_index.core")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage

from langchain_agents import prose, rounds, tool
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from llama_index_muntin import CompactingMemory, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin import count_tokens

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

ROUNDS = 40
SECOND = (
    "Next, compare the nightly export of the Lund depot with the ledger: list each order that is "
    "in only one of them, with its number, its amount and the clerk who entered it, sort the list "
    "by amount, and leave out all orders below 40 euros. Change nothing in either system, and "
    "write down which tables you read."
)
HISTORY = [
    ("user", "Find the invoice of order A-1001."),
    ("assistant", "It is invoice INV-7, from 3 May."),
    ("user", SECOND),
    ("assistant", "I will need about forty look-ups for that. Shall I begin?"),
]
APPROVAL = "Yes, go ahead."


def look_up(key: str) -> str:
    """Look something up by its key."""
    return prose(400, sum(map(ord, key)))


def _langchain() -> list[list[str]]:
    model = StrictChatModel(window=8_000, replies=rounds(ROUNDS))
    agent: Any = create_agent(model, tools=[tool(look_up)], middleware=[ContextWindowMiddleware()])
    make = {"user": HumanMessage, "assistant": AIMessage}
    messages = [make[role](text) for role, text in HISTORY]
    agent.invoke({"messages": [*messages, HumanMessage(APPROVAL)]}, {"recursion_limit": 200})
    assert model.refused == []
    return [[one.text for one in request.messages] for request in model.sent]


def _llama_index() -> list[list[str]]:
    script: list[Any] = [call("look_up", key=f"k{at}") for at in range(ROUNDS)]
    llm = StrictLLM([*script, "Done."], window=8_000, num_output=500)
    agent: Any = with_window(FunctionAgent(llm=llm, tools=[look_up]))
    memory = CompactingMemory.from_defaults(
        llm=llm, chat_history=[ChatMessage(role=role, content=text) for role, text in HISTORY]
    )

    async def go() -> None:
        await agent.run(user_msg=APPROVAL, memory=memory, max_iterations=99)

    asyncio.run(go())
    return [[str(one.content) for one in request] for request in llm.requests]


@pytest.mark.parametrize("requests", [_langchain, _llama_index])
def test_the_second_request_is_in_every_call_word_for_word(requests: Any) -> None:
    """An agent that lost its task answers the task before it, or asks what to do."""
    assert 60 <= count_tokens(SECOND) <= 90
    sent = requests()
    assert len(sent) == ROUNDS + 1
    assert [at for at, texts in enumerate(sent) if not any(SECOND in one for one in texts)] == []
