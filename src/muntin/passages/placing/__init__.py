"""Which ranked candidates are placed, whole or shortened, so that the joined text fits the budget.

It divides the budget among sources, shortens passages, and counts the joined text.
"""

from __future__ import annotations

from muntin.passages.placing.allocation import allocate
from muntin.passages.placing.draft import Frame
from muntin.passages.placing.placement import Placement, measure, place

__all__ = ("Frame", "Placement", "allocate", "measure", "place")
