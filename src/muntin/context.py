"""The context engineering names under the path the reference documents import them from."""

from __future__ import annotations

from muntin.config import CompactionConfig, ContextConfig, ReducerConfig, WindowBudgetConfig
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.trajectory import REDUCERS, reduce_agent, reduce_plan, reduce_reflection
from muntin.counting.tokens import count_tokens, tokens_of
from muntin.passages.builder import ContextBuilder
from muntin.passages.selection import mmr_select
from muntin.passages.sources import CallableSource, ContextSource
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
