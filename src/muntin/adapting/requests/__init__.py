"""Requests of one conversation: what is sent, what is remembered, how full the window is.

It decides when a conversation is compacted and keeps that decision while it holds, so that a
provider's prompt cache can be used. It knows no framework.
"""

from __future__ import annotations

from muntin.adapting.requests.accounts import Accounts, RequestAccount
from muntin.adapting.requests.carried import Restate, carried_state, value_of
from muntin.adapting.requests.decisions import DecisionCache, Held, Saved, held, recorded
from muntin.adapting.requests.facts import ModelFacts, Outgoing, RequestFacts
from muntin.adapting.requests.keeper import Keeper
from muntin.adapting.requests.limits import BeforeCompaction, Limit, RequestPlan, limit_of
from muntin.adapting.requests.mending import Mended, mended
from muntin.adapting.requests.results import (
    ResultCap,
    ToolRule,
    named_ids,
    reading_tool,
    rules_of,
)
from muntin.adapting.requests.steps import Fit, Policy, Step, adrive, drive
from muntin.adapting.requests.truncation import TruncatedByServer, truncated_at

__all__ = (
    "Accounts",
    "BeforeCompaction",
    "DecisionCache",
    "Fit",
    "Held",
    "Keeper",
    "Limit",
    "Mended",
    "ModelFacts",
    "Outgoing",
    "Policy",
    "RequestAccount",
    "RequestFacts",
    "RequestPlan",
    "Restate",
    "ResultCap",
    "Saved",
    "Step",
    "ToolRule",
    "TruncatedByServer",
    "adrive",
    "carried_state",
    "drive",
    "held",
    "limit_of",
    "mended",
    "named_ids",
    "reading_tool",
    "recorded",
    "rules_of",
    "truncated_at",
    "value_of",
)
