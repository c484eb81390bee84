"""Conversations into a budget: fitting, compaction, trajectories, digests, summaries, recall.

It decides what stays whole, what is shortened, what is summarised and what is dropped. It does not
know passages.
"""

from __future__ import annotations

from muntin.conversations.compaction import (
    Compaction,
    CompactionOutcome,
    CompactionPlan,
    HistoryCompactor,
)
from muntin.conversations.encodable import clean_messages, cleaned
from muntin.conversations.fit import FittedMessages, afit_messages, fit_messages
from muntin.conversations.protect import Protected, open_request, protected_set
from muntin.conversations.recall import NEWEST, Newest, plan
from muntin.conversations.summarize import ExtractiveSummarizer
from muntin.conversations.trajectory import REDUCERS, reduce_agent, reduce_plan, reduce_reflection

__all__ = (
    "NEWEST",
    "REDUCERS",
    "Compaction",
    "CompactionOutcome",
    "CompactionPlan",
    "ExtractiveSummarizer",
    "FittedMessages",
    "HistoryCompactor",
    "Newest",
    "Protected",
    "afit_messages",
    "clean_messages",
    "cleaned",
    "fit_messages",
    "open_request",
    "plan",
    "protected_set",
    "reduce_agent",
    "reduce_plan",
    "reduce_reflection",
)
