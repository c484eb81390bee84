"""Messages of one conversation: what is kept, what is sent, and how both are stored.

It decides what a memory folds, recalls and writes. It does not import agents or nodes.
"""

from __future__ import annotations

from llama_index_muntin._memory.defaults import check_arguments, database_store
from llama_index_muntin._memory.fold import Fold, Rules, discarded
from llama_index_muntin._memory.limit import HistoryRoom, history_limit
from llama_index_muntin._memory.living import LivingMemory
from llama_index_muntin._memory.log import ConversationLog
from llama_index_muntin._memory.messages import text_said
from llama_index_muntin._memory.port import adrive, drive, port_of
from llama_index_muntin._memory.saved import read_other
from llama_index_muntin._memory.send import Recall
from llama_index_muntin._memory.settings import check_ledger
from llama_index_muntin._memory.store import StoreMirror
from llama_index_muntin._memory.vectors import TurnVectors
from llama_index_muntin._memory.writing import WritableMemory

__all__ = (
    "ConversationLog",
    "Fold",
    "HistoryRoom",
    "LivingMemory",
    "Recall",
    "Rules",
    "StoreMirror",
    "TurnVectors",
    "WritableMemory",
    "adrive",
    "check_arguments",
    "check_ledger",
    "database_store",
    "discarded",
    "drive",
    "history_limit",
    "port_of",
    "read_other",
    "text_said",
)
