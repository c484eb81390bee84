"""The adapter kit: what every framework adapter decides alike.

It holds the policies that an adapter wraps: passages of a retriever, sources of anything, vectors
that are computed once, refusals of providers and the size of the next request. It knows no
framework; an adapter converts, calls these and converts back.
"""

from __future__ import annotations

from muntin.adapting.keywords import construct, refuse_unknown, renamed
from muntin.adapting.refusal_texts import WORDINGS, RefusalKind, Wording
from muntin.adapting.refusals import Refusal, Retry, refusal_of, second_try
from muntin.adapting.requests.accounts import Accounts, RequestAccount
from muntin.adapting.requests.carried import Restate, carried_state, value_of
from muntin.adapting.requests.decisions import DecisionCache, Held, Saved, held, recorded
from muntin.adapting.requests.facts import ModelFacts, Outgoing, RequestFacts
from muntin.adapting.requests.keeper import Keeper
from muntin.adapting.requests.limits import BeforeCompaction, CompactionPlan
from muntin.adapting.requests.mending import Mended, mended
from muntin.adapting.requests.results import (
    ResultCap,
    ToolRule,
    named_ids,
    reading_tool,
    rules_of,
)
from muntin.adapting.requests.steps import Fit, Policy, Step, adrive, drive
from muntin.adapting.retrieval import (
    JoinedLayout,
    Ordering,
    PassagePolicy,
    Retrieved,
    arranged,
    check_retrieval,
    ratios_for,
)
from muntin.adapting.sources import source_of, sources_of
from muntin.adapting.vectors import VectorCache
from muntin.adapting.workers import characters_of, off_loop

__all__ = (
    "WORDINGS",
    "Accounts",
    "BeforeCompaction",
    "CompactionPlan",
    "DecisionCache",
    "Fit",
    "Held",
    "JoinedLayout",
    "Keeper",
    "Mended",
    "ModelFacts",
    "Ordering",
    "Outgoing",
    "PassagePolicy",
    "Policy",
    "Refusal",
    "RefusalKind",
    "RequestAccount",
    "RequestFacts",
    "Restate",
    "ResultCap",
    "Retrieved",
    "Retry",
    "Saved",
    "Step",
    "ToolRule",
    "VectorCache",
    "Wording",
    "adrive",
    "arranged",
    "carried_state",
    "characters_of",
    "check_retrieval",
    "construct",
    "drive",
    "held",
    "mended",
    "named_ids",
    "off_loop",
    "ratios_for",
    "reading_tool",
    "recorded",
    "refusal_of",
    "refuse_unknown",
    "renamed",
    "rules_of",
    "second_try",
    "source_of",
    "sources_of",
    "value_of",
)
