"""Decides how the account of a context is kept and shown: where every token went, and why.

`reasons` has the words, `values` and `account` the figures, `assembly` the report itself; `text` is
the terminal's table, `html` the page, `wire` the written format, `diff` the comparison of two
reports, `caching` finds what would break a prompt cache. It knows nothing of the builder or of
`fit_messages`: they make its values.
"""

from __future__ import annotations

from muntin.report.assembly import AssemblyReport
from muntin.report.cache_rules import AS_OF, CACHE_RULES, CacheRules, cache_rules
from muntin.report.caching import cache_warnings
from muntin.report.columns import cells, pad, visible
from muntin.report.diff import Change, PartChange, ReportDiff
from muntin.report.reasons import REASONS, UNRANKED, DecisionKind, PartGroup, Reason, ReportKind
from muntin.report.text import to_text
from muntin.report.values import (
    Cost,
    Decision,
    Event,
    Part,
    Piece,
    SourceReport,
    preview_of,
)
from muntin.report.wire import DecisionDict, ReportDict

__all__ = (
    "AS_OF",
    "CACHE_RULES",
    "REASONS",
    "UNRANKED",
    "AssemblyReport",
    "CacheRules",
    "Change",
    "Cost",
    "Decision",
    "DecisionDict",
    "DecisionKind",
    "Event",
    "Part",
    "PartChange",
    "PartGroup",
    "Piece",
    "Reason",
    "ReportDict",
    "ReportDiff",
    "ReportKind",
    "SourceReport",
    "cache_rules",
    "cache_warnings",
    "cells",
    "pad",
    "preview_of",
    "to_text",
    "visible",
)
