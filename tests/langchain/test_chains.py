# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Chains are typed by their parts, which only the chain knows.
"""The compositions that the documentation shows, through all six methods, with a strict model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from langchain_agents import calls, prose, result
from langchain_muntin import BudgetCompressor, ContextAssembler
from langchain_muntin.testing import StrictChatModel, WindowOverflowError
from langchain_worlds import LIBRARY, BM25Retriever, library_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

QUESTION = "How much may I spend on meals per day?"
ANSWER = "80 per day."
SYSTEM = "You answer about travel expenses."


def vector_chain(model: StrictChatModel) -> Runnable[Any, str]:
    retriever = library_store().as_retriever(search_kwargs={"k": 4})
    assembler = ContextAssembler(model=model, system_prompt=SYSTEM)
    sources: Any = {"rag": retriever, "question": RunnablePassthrough()}
    return sources | assembler | model | StrOutputParser()


def bm25_chain(model: StrictChatModel) -> Runnable[Any, str]:
    assembler = ContextAssembler(
        model=model, system_prompt=SYSTEM, sources={"rag": BM25Retriever(documents=LIBRARY)}
    )
    return assembler | model | StrOutputParser()


def prompt_chain(model: StrictChatModel) -> Runnable[Any, str]:
    prompt = ChatPromptTemplate.from_messages([("system", SYSTEM), ("human", "{question}")])
    assembler = ContextAssembler(
        model=model, sources={"rag": BM25Retriever(documents=LIBRARY)}, place="question"
    )
    given: Any = {"question": RunnablePassthrough()}
    return given | prompt | assembler | model | StrOutputParser()


CHAINS = {"vectors": vector_chain, "words": bm25_chain, "prompt": prompt_chain}


def through(entry_point: str, chain: Runnable[Any, str]) -> list[str]:
    """Ask the chain through one of the six entry points."""

    async def streamed() -> str:
        return "".join([part async for part in chain.astream(QUESTION)])

    entry_points: dict[str, Any] = {
        "invoke": lambda: [chain.invoke(QUESTION)],
        "batch": lambda: chain.batch([QUESTION, QUESTION]),
        "stream": lambda: ["".join(chain.stream(QUESTION))],
        "ainvoke": lambda: [asyncio.run(chain.ainvoke(QUESTION))],
        "abatch": lambda: asyncio.run(chain.abatch([QUESTION, QUESTION])),
        "astream": lambda: [asyncio.run(streamed())],
    }
    return entry_points[entry_point]()


@pytest.mark.parametrize(
    "entry_point", ["invoke", "batch", "stream", "ainvoke", "abatch", "astream"]
)
@pytest.mark.parametrize("kind", list(CHAINS))
def test_the_documented_chains_run_through_every_entry_point(entry_point: str, kind: str) -> None:
    """What the page shows is what people paste."""
    model = StrictChatModel(window=2000, replies=[ANSWER])

    assert set(through(entry_point, CHAINS[kind](model))) == {ANSWER}
    assert model.refused == []
    for request in model.sent:
        text = "\n".join(message.text for message in request.messages)
        assert request.messages[0].type == "system"
        assert request.messages[0].text.startswith(SYSTEM)
        assert request.messages[-1].text == QUESTION
        assert "Meals are capped at 80 per day" in text
        assert text.count("Meals are capped") == 1


def test_the_strict_model_refuses_what_the_assembler_prevents() -> None:
    """Without it, the same chain overruns the window: the double is not lenient."""
    model = StrictChatModel(window=300)
    stuffed = "\n".join(prose(100, at) for at in range(9))

    with pytest.raises(WindowOverflowError, match="maximum context length is 300"):
        model.invoke(stuffed)
    chain = ContextAssembler(model=model) | model
    chain.invoke({"question": QUESTION, "rag": [prose(40, at) for at in range(20)]})
    assert len(model.sent) == 1


def test_a_conversation_with_tools_and_passages_in_one_window() -> None:
    """History, passages and tool rounds of one request divide one account."""
    model = StrictChatModel(window=4000, max_tokens=400, replies=[ANSWER])
    prompt = ChatPromptTemplate.from_messages(
        [("system", SYSTEM), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    history: list[Any] = []
    for at in range(30):
        history += [HumanMessage(prose(30, at)), calls(f"c{at}"), result(f"c{at}", prose(200, at))]
        history.append(AIMessage("Noted."))
    assembler = ContextAssembler(model=model, sources={"rag": lambda question: LIBRARY})
    chain = prompt | assembler | model | StrOutputParser()

    assert chain.invoke({"history": history, "question": QUESTION}) == ANSWER
    assert model.refused == []
    assert model.sent[0].tokens > 2500


def test_a_compressor_stands_in_a_chain() -> None:
    """As a step between a retriever and whatever reads documents."""
    compressor = BudgetCompressor(budget=40)

    def compress(documents: list[Document]) -> Sequence[Document]:
        return compressor.compress_documents(documents, QUESTION)

    chain = BM25Retriever(documents=LIBRARY) | RunnableLambda(compress)

    assert 1 <= len(chain.invoke(QUESTION)) <= 2


def test_streaming_tokens_come_one_by_one() -> None:
    """The assembler in front must not hold back what the model streams."""
    model = StrictChatModel(window=2000, replies=["one two three"])
    chain = ContextAssembler(model=model) | model

    assert [part.text for part in chain.stream(QUESTION) if part.text] == ["one", " two", " three"]
