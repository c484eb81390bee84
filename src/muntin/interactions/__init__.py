"""Past interactions: indexed in a store, retrieved for a question within a budget.

It decides which earlier question and answer pairs come back. It needs a store with text search.
"""

from __future__ import annotations

from muntin.interactions.cache import RecallCache
from muntin.interactions.retriever import ContextRetriever

__all__ = ("ContextRetriever", "RecallCache")
