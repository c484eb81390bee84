"""muntin for LlamaIndex: nodes, history and tool results inside one window.

A postprocessor for retrieved nodes, a memory, agents with steps fitted to the window, and one
ledger they share. Needs the extra `llama-index`.
"""

from __future__ import annotations

try:
    import llama_index.core as _core  # noqa: F401  # pyright: ignore[reportUnusedImport] - only whether it is there
except ImportError as _missing:
    raise ImportError(
        'llama_index_muntin needs LlamaIndex: pip install "muntin[llama-index]"'
    ) from _missing

from llama_index_muntin._conversion import from_muntin, to_muntin
from llama_index_muntin._models import tokenizer_of
from llama_index_muntin._nodes import PlacementWarning, candidate_of, node_of
from llama_index_muntin._shapes import SHAPE
from llama_index_muntin.agents import with_window
from llama_index_muntin.ledger import WindowLedger
from llama_index_muntin.memory import CompactingMemory, CompactionWarning
from llama_index_muntin.memory_block import MuntinMemoryBlock
from llama_index_muntin.postprocessor import BudgetPostprocessor, NodesChosenEvent
from llama_index_muntin.retriever import AssembledRetriever
from llama_index_muntin.sources import RetrieverSource
from llama_index_muntin.stores import KVStoreRecords
from llama_index_muntin.summarizer import LLMSummarizer
from muntin.messages import register_shape

register_shape(SHAPE)  # also where the entry point is not installed, as in a copied tree

__all__ = (
    "AssembledRetriever",
    "BudgetPostprocessor",
    "CompactingMemory",
    "CompactionWarning",
    "KVStoreRecords",
    "LLMSummarizer",
    "MuntinMemoryBlock",
    "NodesChosenEvent",
    "PlacementWarning",
    "RetrieverSource",
    "WindowLedger",
    "candidate_of",
    "from_muntin",
    "node_of",
    "to_muntin",
    "tokenizer_of",
    "with_window",
)
