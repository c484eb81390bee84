# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""Processor-heavy work of async entry points leaves the event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage

from langchain_agents import prose
from langchain_muntin import (
    AssembledRetriever,
    BudgetCompressor,
    ContextAssembler,
    ContextWindowMiddleware,
    compact_messages,
)
from langchain_muntin.testing import StrictChatModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DOCUMENTS = [Document(prose(90, at), id=str(at)) for at in range(800)]
TALK: list[Any] = [
    message
    for at in range(400)
    for message in (HumanMessage(prose(70, at)), AIMessage(prose(70, 5000 + at)))
]


def assembler() -> Callable[[], Awaitable[Any]]:
    made = ContextAssembler(window=16_000, sources={"rag": lambda question: DOCUMENTS})
    return lambda: made.ainvoke("Which invoice was paid twice?")


def retriever() -> Callable[[], Awaitable[Any]]:
    made = AssembledRetriever(sources={"rag": lambda question: DOCUMENTS}, budget=4000)
    return lambda: made.ainvoke("Which invoice was paid twice?")


def compressor() -> Callable[[], Awaitable[Any]]:
    made = BudgetCompressor(budget=4000)
    return lambda: made.acompress_documents(DOCUMENTS, "Which invoice was paid twice?")


def compacting() -> Callable[[], Awaitable[Any]]:
    made = compact_messages(budget=8000)
    return lambda: made.ainvoke([*TALK, HumanMessage("And now?")])


def middleware() -> Callable[[], Awaitable[Any]]:
    agent: Any = create_agent(
        StrictChatModel(window=16_000), middleware=[ContextWindowMiddleware(budget=8000)]
    )
    return lambda: agent.ainvoke({"messages": [*TALK, HumanMessage("And now?")]})


@pytest.mark.parametrize("make", [assembler, retriever, compressor, compacting])
def test_the_loop_thread_does_a_small_share_of_the_work(make: Any) -> None:
    """A server that assembles on its loop answers nobody else meanwhile: 98 % were done there."""

    async def measured() -> float:
        ask = make()
        on_loop, whole = time.thread_time(), time.process_time()
        await ask()
        on_loop, whole = time.thread_time() - on_loop, time.process_time() - whole
        return on_loop / whole

    shares = sorted(asyncio.run(measured()) for _ in range(3))

    assert shares[0] <= 0.15, shares


@pytest.mark.parametrize("make", [assembler, retriever, compacting, middleware])
def test_a_ticker_goes_on_while_many_calls_are_answered(make: Any) -> None:
    """Health checks time out when the loop stands still."""

    async def longest_pause() -> float:
        ask = make()
        pauses: list[float] = []
        ended = asyncio.Event()

        async def tick() -> None:
            while not ended.is_set():
                begun = time.thread_time()
                await asyncio.sleep(0.005)
                pauses.append(time.thread_time() - begun)

        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(ask() for _ in range(5)))
        ended.set()
        await ticking
        return max(pauses)

    assert asyncio.run(longest_pause()) < 0.2
