"""Passages into a context: sources, duplicates, ranking, allocation, layout, the builder.

It decides which candidates are placed and how the text is written. It does not know conversations.
"""

from __future__ import annotations

from muntin.passages.assembled import AssembledContext
from muntin.passages.builder import ContextBuilder
from muntin.passages.candidates import Candidate, Embedding, RetrievalResult, Scope
from muntin.passages.given import AnyGiven, given_among, read_given
from muntin.passages.layout import Item, Layout, Section
from muntin.passages.selecting import Selection, WordOverlap, mmr_select, rank, select
from muntin.passages.sources import (
    CallableSource,
    ContextSource,
    Gathered,
    GivenSource,
    OnError,
    agather,
    check_sources,
    gather,
    source_named,
)

__all__ = (
    "AnyGiven",
    "AssembledContext",
    "CallableSource",
    "Candidate",
    "ContextBuilder",
    "ContextSource",
    "Embedding",
    "Gathered",
    "GivenSource",
    "Item",
    "Layout",
    "OnError",
    "RetrievalResult",
    "Scope",
    "Section",
    "Selection",
    "WordOverlap",
    "agather",
    "check_sources",
    "gather",
    "given_among",
    "mmr_select",
    "rank",
    "read_given",
    "select",
    "source_named",
)
