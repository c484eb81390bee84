"""muntin divides the context window of a language model.

It picks what deserves a place, keeps everything inside one token budget, compacts what overflows,
and reports where every token went. All public names are here; each is loaded when it is first used,
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
    from muntin.conversations import (
        NEWEST,
        REDUCERS,
        ExtractiveSummarizer,
        FittedMessages,
        HistoryCompactor,
        afit_messages,
        fit_messages,
        reduce_agent,
        reduce_plan,
        reduce_reflection,
    )
    from muntin.counting import (
        AnchoredCounter,
        TiktokenCounter,
        TokenCounter,
        count_message,
        count_messages,
        count_tokens,
        counter_for,
        estimate_tokens,
        tokens_of,
        truncate_to_tokens,
    )
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
    from muntin.interactions import ContextRetriever
    from muntin.messages import Message, repair
    from muntin.passages import (
        AssembledContext,
        CallableSource,
        Candidate,
        ContextBuilder,
        ContextSource,
        Layout,
        RetrievalResult,
        Scope,
        Selection,
        mmr_select,
        select,
    )
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport
    from muntin.state import AgentState, StateStore, reinject
    from muntin.tool_results import ToolResultStore, read_tool_result, truncate_tool_result
    from muntin.window import ContextBudget, Window, WindowBudget, resolve_window

_HOMES = {
    "AgentState": "state",
    "AnchoredCounter": "counting",
    "AssembledContext": "passages",
    "AssemblyReport": "report",
    "AsyncSourceError": "errors",
    "CallableSource": "passages",
    "Candidate": "passages",
    "CompactionConfig": "config",
    "ConfigurationError": "errors",
    "ContextBudget": "window",
    "ContextBuilder": "passages",
    "ContextConfig": "config",
    "ContextError": "errors",
    "ContextRetriever": "interactions",
    "ContextSource": "passages",
    "ContextWindowExceeded": "errors",
    "ExtractiveSummarizer": "conversations",
    "FittedMessages": "conversations",
    "HistoryCompactor": "conversations",
    "Layout": "passages",
    "Message": "messages",
    "MuntinConfig": "config",
    "NEWEST": "conversations",
    "PromptError": "errors",
    "PromptRegistry": "prompts",
    "REDUCERS": "conversations",
    "ReducerConfig": "config",
    "ReportError": "errors",
    "RetrievalResult": "passages",
    "Scope": "passages",
    "Selection": "passages",
    "SourceError": "errors",
    "StateConflictError": "errors",
    "StateCorruptError": "errors",
    "StateError": "errors",
    "StateNotFound": "errors",
    "StateStore": "state",
    "StateVersionError": "errors",
    "SummaryError": "errors",
    "TiktokenCounter": "counting",
    "TokenCounter": "counting",
    "TokenizerUnavailable": "errors",
    "ToolResultNotFound": "errors",
    "ToolResultStore": "tool_results",
    "Window": "window",
    "WindowBudget": "window",
    "WindowBudgetConfig": "config",
    "afit_messages": "conversations",
    "count_message": "counting",
    "count_messages": "counting",
    "count_tokens": "counting",
    "counter_for": "counting",
    "estimate_tokens": "counting",
    "fit_messages": "conversations",
    "mmr_select": "passages",
    "read_tool_result": "tool_results",
    "reduce_agent": "conversations",
    "reduce_plan": "conversations",
    "reduce_reflection": "conversations",
    "reinject": "state",
    "repair": "messages",
    "resolve_window": "window",
    "select": "passages",
    "tokens_of": "counting",
    "truncate_to_tokens": "counting",
    "truncate_tool_result": "tool_results",
}

__all__ = (
    "NEWEST",
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

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'muntin' has no attribute {name!r}")
    found = getattr(import_module(f"muntin.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
