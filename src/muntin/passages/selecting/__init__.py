"""Which candidates deserve a place, in which order, and why the others do not.

It compares texts and vectors, finds names and links, and ranks. It does not know budgets.
"""

from __future__ import annotations

from muntin.passages.selecting.ranking import Offer, Ranking, rank
from muntin.passages.selecting.selection import Selection, mmr_select, select
from muntin.passages.selecting.similarity import WordOverlap

__all__ = (
    "Offer",
    "Ranking",
    "Selection",
    "WordOverlap",
    "mmr_select",
    "rank",
    "select",
)
