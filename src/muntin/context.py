"""The context engineering names under the path the reference documents import them from."""

from __future__ import annotations

from muntin.builder import ContextBuilder
from muntin.compaction import HistoryCompactor
from muntin.config import CompactionConfig, ContextConfig, ReducerConfig, WindowBudgetConfig
from muntin.selection import mmr_select
from muntin.sources import CallableSource, ContextSource
from muntin.tokens import count_tokens, tokens_of
from muntin.trajectory import REDUCERS, reduce_agent, reduce_plan, reduce_reflection
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
