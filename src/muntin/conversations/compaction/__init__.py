"""Fold the older part of a conversation into a recap, and account for it.

`HistoryCompactor` is the room's one door. Behind it: `trail` recognises a conversation from call
to call, `fold` chooses what goes into the recap, `transcript` writes it down for a summariser,
`condense` asks and judges, `flight` keeps passes apart, `memory` and `recap` remember. Trimming an
agent's own working steps is another matter: that is `trajectory`.
"""

from __future__ import annotations

from muntin.conversations.compaction.compactor import HistoryCompactor
from muntin.conversations.compaction.outcome import Compaction, CompactionOutcome, CompactionReason
from muntin.conversations.compaction.passes import RecapRole

__all__ = ("Compaction", "CompactionOutcome", "CompactionReason", "HistoryCompactor", "RecapRole")
