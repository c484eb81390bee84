# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# `create_agent` has parts without types.
"""The compositions of the documentation as mypy sees them: checked in strict mode, never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from langchain_muntin import (
    AssembledPrompt,
    AssembledRetriever,
    BudgetCompressor,
    ContextAssembler,
    ContextWindowMiddleware,
    ModelSummarizer,
    RetrieverSource,
    candidate_of,
    compact_messages,
    context_window_node,
    document_of,
    from_muntin,
    to_muntin,
)
from langchain_muntin.testing import StrictChatModel
from muntin import AssemblyReport, Candidate, ContextConfig, HistoryCompactor, Message

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever


def chains(retriever: BaseRetriever, model: BaseChatModel) -> None:
    """Both ways to compose, from the question to the text."""
    assembler = ContextAssembler(model=model, system_prompt="Be brief.", config=ContextConfig())
    assert_type(assembler.invoke("How much?"), AssembledPrompt)
    assert_type(assembler.invoke({"question": "How much?"}).report, AssemblyReport)
    assert_type(assembler.invoke("How much?").documents, list[Document])

    from_dict = (
        {"rag": retriever, "question": RunnablePassthrough()}
        | assembler
        | model
        | StrOutputParser()
    )
    assert_type(from_dict.invoke("How much?"), str)

    prompt = ChatPromptTemplate.from_messages([("human", "{question}")])
    from_prompt = prompt | assembler | model | StrOutputParser()
    assert_type(from_prompt.invoke({"question": "How much?"}), str)

    answering = assembler | model
    assert_type(answering.invoke("How much?"), AIMessage)


def documents(retriever: BaseRetriever) -> None:
    """Documents in, documents out."""
    several = AssembledRetriever(
        sources={"rag": retriever, "web": RetrieverSource("web", retriever)}, budget=400
    )
    assert_type(several.invoke("How much?"), list[Document])
    compressor = BudgetCompressor(budget=400)

    def compress(found: list[Document]) -> list[Document]:
        return list(compressor.compress_documents(found, "How much?"))

    chain: Runnable[str, list[Document]] = several | RunnableLambda(compress)
    assert_type(chain.invoke("How much?"), list[Document])
    assert_type(document_of(candidate_of(Document(page_content="x"))), Document)
    assert_type(candidate_of(Document(page_content="x")), Candidate)


def conversations(messages: list[BaseMessage], model: BaseChatModel) -> None:
    """Called and curried, and as a node."""
    assert_type(compact_messages(messages, budget=400), list[BaseMessage])
    chain = compact_messages(model=model) | model
    assert_type(chain.invoke(messages), AIMessage)
    node: Runnable[Any, dict[str, Any]] = context_window_node(model)
    assert_type(node.invoke({"messages": messages}), dict[str, Any])
    assert_type(from_muntin(to_muntin(messages[0])), BaseMessage)
    assert_type(to_muntin(messages[0]), Message)


def agents(model: BaseChatModel) -> None:
    """The middleware in an agent, a model as summariser, and the strict double."""
    agent = create_agent(
        model,
        tools=[],
        middleware=[ContextWindowMiddleware(target=0.7, summarizer=ModelSummarizer(model))],
    )
    agent.invoke({"messages": [{"role": "user", "content": "How much?"}]})
    HistoryCompactor(ModelSummarizer(model))
    strict = StrictChatModel(window=4000, replies=["80."])
    assert_type(strict.invoke("How much?"), AIMessage)
    assert_type(strict.sent[0].tokens, int)
