"""muntin divides the context window of a language model.

It picks what deserves a place, keeps everything inside one token budget, compacts what overflows,
and says where every token went. All public names are here; each is loaded when it is first used,
so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.assembled import AssembledContext
    from muntin.builder import ContextBuilder
    from muntin.candidates import Candidate, RetrievalResult, Scope
    from muntin.compaction import HistoryCompactor
    from muntin.config import (
        CompactionConfig,
        ContextConfig,
        MuntinConfig,
        ReducerConfig,
        WindowBudgetConfig,
    )
    from muntin.counters import AnchoredCounter, counter_for
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
    from muntin.estimate import estimate_tokens
    from muntin.exact import TiktokenCounter
    from muntin.fit import FittedMessages, afit_messages, fit_messages
    from muntin.interactions import ContextRetriever
    from muntin.layout import Layout
    from muntin.mending import repair
    from muntin.message_counts import count_message, count_messages
    from muntin.messages import Message
    from muntin.prompts import PromptRegistry
    from muntin.reinjection import reinject
    from muntin.report import AssemblyReport
    from muntin.result_reader import read_tool_result
    from muntin.result_store import ToolResultStore
    from muntin.selection import Selection, mmr_select, select
    from muntin.sources import CallableSource, ContextSource
    from muntin.state import AgentState
    from muntin.state_store import StateStore
    from muntin.summarize import ExtractiveSummarizer
    from muntin.tokens import TokenCounter, count_tokens, tokens_of
    from muntin.tool_results import truncate_tool_result
    from muntin.trajectory import REDUCERS, reduce_agent, reduce_plan, reduce_reflection
    from muntin.truncation import truncate_to_tokens
    from muntin.window import ContextBudget, Window, WindowBudget, resolve_window

_HOMES = {
    "AgentState": "state",
    "AnchoredCounter": "counters",
    "AssembledContext": "assembled",
    "AssemblyReport": "report",
    "AsyncSourceError": "errors",
    "CallableSource": "sources",
    "Candidate": "candidates",
    "CompactionConfig": "config",
    "ConfigurationError": "errors",
    "ContextBudget": "window",
    "ContextBuilder": "builder",
    "ContextConfig": "config",
    "ContextError": "errors",
    "ContextRetriever": "interactions",
    "ContextSource": "sources",
    "ContextWindowExceeded": "errors",
    "ExtractiveSummarizer": "summarize",
    "FittedMessages": "fit",
    "HistoryCompactor": "compaction",
    "Layout": "layout",
    "Message": "messages",
    "MuntinConfig": "config",
    "PromptError": "errors",
    "PromptRegistry": "prompts",
    "REDUCERS": "trajectory",
    "ReducerConfig": "config",
    "ReportError": "errors",
    "RetrievalResult": "candidates",
    "Scope": "candidates",
    "Selection": "selection",
    "SourceError": "errors",
    "StateConflictError": "errors",
    "StateCorruptError": "errors",
    "StateError": "errors",
    "StateNotFound": "errors",
    "StateStore": "state_store",
    "StateVersionError": "errors",
    "SummaryError": "errors",
    "TiktokenCounter": "exact",
    "TokenCounter": "tokens",
    "TokenizerUnavailable": "errors",
    "ToolResultNotFound": "errors",
    "ToolResultStore": "result_store",
    "Window": "window",
    "WindowBudget": "window",
    "WindowBudgetConfig": "config",
    "afit_messages": "fit",
    "count_message": "message_counts",
    "count_messages": "message_counts",
    "count_tokens": "tokens",
    "counter_for": "counters",
    "estimate_tokens": "estimate",
    "fit_messages": "fit",
    "mmr_select": "selection",
    "read_tool_result": "result_reader",
    "reduce_agent": "trajectory",
    "reduce_plan": "trajectory",
    "reduce_reflection": "trajectory",
    "reinject": "reinjection",
    "repair": "mending",
    "resolve_window": "window",
    "select": "selection",
    "tokens_of": "tokens",
    "truncate_to_tokens": "truncation",
    "truncate_tool_result": "tool_results",
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
