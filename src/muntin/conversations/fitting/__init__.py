"""Fitting a conversation into a budget, step by step, with the least loss first.

It decides which results are shortened, which old units become a note and what is dropped.
"""

from __future__ import annotations

from muntin.conversations.fitting.account import report_of
from muntin.conversations.fitting.draft import Draft, Plan
from muntin.conversations.fitting.entries import entries_of, transcript_line
from muntin.conversations.fitting.escalation import require_room, shrink
from muntin.conversations.fitting.request import FitRequest
from muntin.conversations.fitting.rule_section import rules_of_what_is_out
from muntin.conversations.fitting.shortening import shorten_held, shortener

__all__ = (
    "Draft",
    "FitRequest",
    "Plan",
    "entries_of",
    "report_of",
    "require_room",
    "rules_of_what_is_out",
    "shorten_held",
    "shortener",
    "shrink",
    "transcript_line",
)
