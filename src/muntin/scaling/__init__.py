"""Batches: fit and assemble many rows in local processes or on a Ray cluster.

It decides how work is divided among processes, and that one bad record does not end a batch.
"""

from __future__ import annotations

from muntin.scaling.processes import Outcome, Progress, map_records
from muntin.scaling.ray_data import assemble_dataset, fit_dataset, map_records_on_ray, read_jsonl
from muntin.scaling.rows import assemble_row, assemble_rows, fit_row, fit_rows

__all__ = (
    "Outcome",
    "Progress",
    "assemble_dataset",
    "assemble_row",
    "assemble_rows",
    "fit_dataset",
    "fit_row",
    "fit_rows",
    "map_records",
    "map_records_on_ray",
    "read_jsonl",
)
