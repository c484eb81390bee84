"""Retrieved nodes: how they are read, compared, chosen and copied.

It decides what postprocessor and retriever return. It does not import memories or agents.
"""

from __future__ import annotations

from llama_index_muntin._nodes.candidates import candidate_of, candidates_of, copy_of_node, node_of
from llama_index_muntin._nodes.choice import choose
from llama_index_muntin._nodes.placement import PlacementWarning, watch
from llama_index_muntin._nodes.vectors import NodeVectors, Vectors

__all__ = (
    "NodeVectors",
    "PlacementWarning",
    "Vectors",
    "candidate_of",
    "candidates_of",
    "choose",
    "copy_of_node",
    "node_of",
    "watch",
)
