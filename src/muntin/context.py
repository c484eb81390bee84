"""The names of context engineering, under the import path that agentmaker uses."""

from __future__ import annotations

from muntin.config import CompactionConfig, ContextConfig, ReducerConfig, WindowBudgetConfig
from muntin.conversations import (
    REDUCERS,
    HistoryCompactor,
    reduce_agent,
    reduce_plan,
    reduce_reflection,
)
from muntin.counting import count_tokens, tokens_of
from muntin.passages import CallableSource, ContextBuilder, ContextSource, mmr_select
from muntin.window import WindowBudget

__all__ = (
    "REDUCERS",
    "CallableSource",
    "CompactionConfig",
    "ContextBuilder",
    "ContextConfig",
    "ContextSource",
    "HistoryCompactor",
    "ReducerConfig",
    "WindowBudget",
    "WindowBudgetConfig",
    "count_tokens",
    "mmr_select",
    "reduce_agent",
    "reduce_plan",
    "reduce_reflection",
    "tokens_of",
)
