"""muntin divides the context window of a language model.

It picks what deserves a place, keeps everything inside one token budget, compacts what overflows,
and says where every token went. All public names are here; each is loaded when it is first used,
so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.config import (
        CompactionConfig,
        ContextConfig,
        MuntinConfig,
        ReducerConfig,
        WindowBudgetConfig,
    )
    from muntin.conversations.compaction import HistoryCompactor
    from muntin.conversations.fit import FittedMessages, afit_messages, fit_messages
    from muntin.conversations.summarize import ExtractiveSummarizer
    from muntin.conversations.trajectory import (
        REDUCERS,
        reduce_agent,
        reduce_plan,
        reduce_reflection,
    )
    from muntin.counting.counters import AnchoredCounter, counter_for
    from muntin.counting.estimate import estimate_tokens
    from muntin.counting.message_counts import count_message, count_messages
    from muntin.counting.tiktoken_counter import TiktokenCounter
    from muntin.counting.tokens import TokenCounter, count_tokens, tokens_of
    from muntin.counting.truncation import truncate_to_tokens
    from muntin.errors import (
        AsyncSourceError,
        ConfigurationError,
        ContextError,
        ContextWindowExceeded,
        PromptError,
        ReportError,
        SourceError,
        StateConflictError,
        StateCorruptError,
        StateError,
        StateNotFound,
        StateVersionError,
        SummaryError,
        TokenizerUnavailable,
        ToolResultNotFound,
    )
    from muntin.interactions.retriever import ContextRetriever
    from muntin.messages.message import Message
    from muntin.messages.repair import repair
    from muntin.passages.assembled import AssembledContext
    from muntin.passages.builder import ContextBuilder
    from muntin.passages.candidates import Candidate, RetrievalResult, Scope
    from muntin.passages.layout import Layout
    from muntin.passages.selection import Selection, mmr_select, select
    from muntin.passages.sources import CallableSource, ContextSource
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport
    from muntin.state.agent_state import AgentState
    from muntin.state.reinjection import reinject
    from muntin.state.store import StateStore
    from muntin.tool_results.reader import read_tool_result
    from muntin.tool_results.shorten import truncate_tool_result
    from muntin.tool_results.store import ToolResultStore
    from muntin.window import ContextBudget, Window, WindowBudget, resolve_window

_HOMES = {
    "AgentState": "state.agent_state",
    "AnchoredCounter": "counting.counters",
    "AssembledContext": "passages.assembled",
    "AssemblyReport": "report",
    "AsyncSourceError": "errors",
    "CallableSource": "passages.sources",
    "Candidate": "passages.candidates",
    "CompactionConfig": "config",
    "ConfigurationError": "errors",
    "ContextBudget": "window",
    "ContextBuilder": "passages.builder",
    "ContextConfig": "config",
    "ContextError": "errors",
    "ContextRetriever": "interactions.retriever",
    "ContextSource": "passages.sources",
    "ContextWindowExceeded": "errors",
    "ExtractiveSummarizer": "conversations.summarize",
    "FittedMessages": "conversations.fit",
    "HistoryCompactor": "conversations.compaction",
    "Layout": "passages.layout",
    "Message": "messages.message",
    "MuntinConfig": "config",
    "PromptError": "errors",
    "PromptRegistry": "prompts",
    "REDUCERS": "conversations.trajectory",
    "ReducerConfig": "config",
    "ReportError": "errors",
    "RetrievalResult": "passages.candidates",
    "Scope": "passages.candidates",
    "Selection": "passages.selection",
    "SourceError": "errors",
    "StateConflictError": "errors",
    "StateCorruptError": "errors",
    "StateError": "errors",
    "StateNotFound": "errors",
    "StateStore": "state.store",
    "StateVersionError": "errors",
    "SummaryError": "errors",
    "TiktokenCounter": "counting.tiktoken_counter",
    "TokenCounter": "counting.tokens",
    "TokenizerUnavailable": "errors",
    "ToolResultNotFound": "errors",
    "ToolResultStore": "tool_results.store",
    "Window": "window",
    "WindowBudget": "window",
    "WindowBudgetConfig": "config",
    "afit_messages": "conversations.fit",
    "count_message": "counting.message_counts",
    "count_messages": "counting.message_counts",
    "count_tokens": "counting.tokens",
    "counter_for": "counting.counters",
    "estimate_tokens": "counting.estimate",
    "fit_messages": "conversations.fit",
    "mmr_select": "passages.selection",
    "read_tool_result": "tool_results.reader",
    "reduce_agent": "conversations.trajectory",
    "reduce_plan": "conversations.trajectory",
    "reduce_reflection": "conversations.trajectory",
    "reinject": "state.reinjection",
    "repair": "messages.repair",
    "resolve_window": "window",
    "select": "passages.selection",
    "tokens_of": "counting.tokens",
    "truncate_to_tokens": "counting.truncation",
    "truncate_tool_result": "tool_results.shorten",
}

__all__ = (
    "REDUCERS",
    "AgentState",
    "AnchoredCounter",
    "AssembledContext",
    "AssemblyReport",
    "AsyncSourceError",
    "CallableSource",
    "Candidate",
    "CompactionConfig",
    "ConfigurationError",
    "ContextBudget",
    "ContextBuilder",
    "ContextConfig",
    "ContextError",
    "ContextRetriever",
    "ContextSource",
    "ContextWindowExceeded",
    "ExtractiveSummarizer",
    "FittedMessages",
    "HistoryCompactor",
    "Layout",
    "Message",
    "MuntinConfig",
    "PromptError",
    "PromptRegistry",
    "ReducerConfig",
    "ReportError",
    "RetrievalResult",
    "Scope",
    "Selection",
    "SourceError",
    "StateConflictError",
    "StateCorruptError",
    "StateError",
    "StateNotFound",
    "StateStore",
    "StateVersionError",
    "SummaryError",
    "TiktokenCounter",
    "TokenCounter",
    "TokenizerUnavailable",
    "ToolResultNotFound",
    "ToolResultStore",
    "Window",
    "WindowBudget",
    "WindowBudgetConfig",
    "afit_messages",
    "count_message",
    "count_messages",
    "count_tokens",
    "counter_for",
    "estimate_tokens",
    "fit_messages",
    "mmr_select",
    "read_tool_result",
    "reduce_agent",
    "reduce_plan",
    "reduce_reflection",
    "reinject",
    "repair",
    "resolve_window",
    "select",
    "tokens_of",
    "truncate_to_tokens",
    "truncate_tool_result",
)

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load a public name from the room it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module 'muntin' has no attribute {name!r}")
    found = getattr(import_module(f"muntin.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
