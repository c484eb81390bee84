"""Batches: one function over many records, in local processes or with Ray Data.

It decides how work is divided among processes, and that one bad record does not end a batch.
"""

from __future__ import annotations

from muntin.scaling.processes import Outcome, Progress, map_records

__all__ = ("Outcome", "Progress", "map_records")
