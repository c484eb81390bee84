"""Decides how the account of a context is kept and shown: where every token went, and why.

`reasons` has the words, `values` and `account` the figures, `assembly` the report itself; `text` is
the terminal's table, `html` the page, `wire` the written format, `diff` the comparison of two
reports. It knows nothing of the builder or of `fit_messages`: they make its values.
"""

from __future__ import annotations

from muntin.report.assembly import AssemblyReport
from muntin.report.reasons import REASONS, DecisionKind, PartGroup, Reason, ReportKind
from muntin.report.values import (
    Cost,
    Decision,
    Event,
    Part,
    Piece,
    SourceReport,
    preview_of,
)

__all__ = (
    "REASONS",
    "AssemblyReport",
    "Cost",
    "Decision",
    "DecisionKind",
    "Event",
    "Part",
    "PartGroup",
    "Piece",
    "Reason",
    "ReportKind",
    "SourceReport",
    "preview_of",
)
