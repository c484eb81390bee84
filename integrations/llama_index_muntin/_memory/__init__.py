"""Messages of one conversation: what is kept, what is sent, and how both are stored.

It decides what a memory folds, recalls and writes. It does not know agents or nodes.
"""

from __future__ import annotations

from llama_index_muntin._memory.limit import HistoryRoom, history_limit
from llama_index_muntin._memory.living import LivingMemory
from llama_index_muntin._memory.log import (
    ConversationLog,
    Fold,
    Rules,
    is_answer,
    owned,
    text_said,
)
from llama_index_muntin._memory.store import StoreMirror

__all__ = (
    "ConversationLog",
    "Fold",
    "HistoryRoom",
    "LivingMemory",
    "Rules",
    "StoreMirror",
    "history_limit",
    "is_answer",
    "owned",
    "text_said",
)
