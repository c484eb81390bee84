"""Fold the older part of a conversation into a recap, and account for it.

`HistoryCompactor` is the only entry point. `passes` decides when a pass is due, `fold` what it
folds, `recapping` makes the recap, `recap_text` writes it as a message, `trail` recognises a
conversation from call to call, `flight` keeps concurrent passes apart, `memory` and `recap` store.
Trimming an agent's own steps is `trajectory`.
"""

from __future__ import annotations

from muntin.conversations.compaction.compactor import HistoryCompactor
from muntin.conversations.compaction.limits import Limit
from muntin.conversations.compaction.outcome import (
    Compaction,
    CompactionOutcome,
    CompactionPlan,
    CompactionReason,
)
from muntin.conversations.compaction.plan import RecapRole

__all__ = (
    "Compaction",
    "CompactionOutcome",
    "CompactionPlan",
    "CompactionReason",
    "HistoryCompactor",
    "Limit",
    "RecapRole",
)
