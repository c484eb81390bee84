"""muntin for LangChain and LangGraph: prompts, agents and retrievers that fit the window.

`ContextAssembler` is for chains, `ContextWindowMiddleware` for agents, `AssembledRetriever` and
`BudgetCompressor` are for documents. All public names are here and are imported when they are first
used. The middleware needs the extra `agents`, everything else `langchain`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

try:
    from langchain_muntin._shapes import SHAPE
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "langchain_core":
        raise
    raise ImportError(
        'langchain_muntin needs LangChain: pip install "muntin[langchain]"', name=missing.name
    ) from missing

from muntin.errors import register_control_flow
from muntin.messages import register_shape

if TYPE_CHECKING:
    from langchain_muntin._values.documents import candidate_of, document_of, from_muntin, to_muntin
    from langchain_muntin.assembler import ContextAssembler
    from langchain_muntin.compressor import BudgetCompressor
    from langchain_muntin.history import CompactingChatMessageHistory
    from langchain_muntin.middleware import ContextWindowMiddleware
    from langchain_muntin.nodes import compact_messages, context_window_node
    from langchain_muntin.prompt_value import AssembledPrompt
    from langchain_muntin.retriever import AssembledRetriever
    from langchain_muntin.sources import (
        ChatHistorySource,
        RetrieverSource,
        RunnableSource,
        StoreSource,
    )
    from langchain_muntin.stores import LangGraphRecords
    from langchain_muntin.summarizer import ModelSummarizer


def _control_flow() -> tuple[type[BaseException], ...]:
    """Return the exceptions that pause or redirect a graph; none while LangGraph is not loaded."""
    errors = sys.modules.get("langgraph.errors")
    return () if errors is None else (errors.GraphBubbleUp,)


register_shape(SHAPE)
register_control_flow(_control_flow)

_HOMES = {
    "AssembledPrompt": "prompt_value",
    "AssembledRetriever": "retriever",
    "BudgetCompressor": "compressor",
    "ChatHistorySource": "sources",
    "CompactingChatMessageHistory": "history",
    "ContextAssembler": "assembler",
    "ContextWindowMiddleware": "middleware",
    "LangGraphRecords": "stores",
    "ModelSummarizer": "summarizer",
    "RetrieverSource": "sources",
    "RunnableSource": "sources",
    "StoreSource": "sources",
    "candidate_of": "_values.documents",
    "compact_messages": "nodes",
    "context_window_node": "nodes",
    "document_of": "_values.documents",
    "from_muntin": "_values.documents",
    "to_muntin": "_values.documents",
}

__all__ = (
    "AssembledPrompt",
    "AssembledRetriever",
    "BudgetCompressor",
    "ChatHistorySource",
    "CompactingChatMessageHistory",
    "ContextAssembler",
    "ContextWindowMiddleware",
    "LangGraphRecords",
    "ModelSummarizer",
    "RetrieverSource",
    "RunnableSource",
    "StoreSource",
    "candidate_of",
    "compact_messages",
    "context_window_node",
    "document_of",
    "from_muntin",
    "to_muntin",
)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'langchain_muntin' has no attribute {name!r}")
    found = getattr(import_module(f"langchain_muntin.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
