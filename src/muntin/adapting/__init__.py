"""The adapter kit: what every framework adapter decides alike.

It holds the policies that an adapter wraps: passages of a retriever, sources of anything, vectors
that are computed once, refusals of providers and the size of the next request. It knows no
framework; an adapter converts, calls these and converts back.
"""

from __future__ import annotations

from muntin.adapting.answers import is_edited_request, overflow_of_answer
from muntin.adapting.keywords import construct, refuse_unknown, renamed
from muntin.adapting.provider_compaction import Compacting, compaction_settings
from muntin.adapting.refusal_texts import WORDINGS
from muntin.adapting.refusal_wording import RefusalKind, Wording
from muntin.adapting.refusals import Refusal, Retry, refusal_of, second_try
from muntin.adapting.requests import (
    Accounts,
    BeforeCompaction,
    DecisionCache,
    Fit,
    Held,
    Keeper,
    Limit,
    Mended,
    ModelFacts,
    Outgoing,
    Policy,
    RequestAccount,
    RequestFacts,
    RequestPlan,
    Restate,
    ResultCap,
    Saved,
    Step,
    ToolRule,
    TruncatedByServer,
    adrive,
    carried_state,
    drive,
    held,
    limit_of,
    mended,
    named_ids,
    reading_tool,
    recorded,
    rules_of,
    truncated_at,
    value_of,
)
from muntin.adapting.retrieval import (
    JoinedLayout,
    Ordering,
    PassagePolicy,
    Retrieved,
    arranged,
    check_given,
    check_retrieval,
    ratios_for,
)
from muntin.adapting.sources import source_of, sources_of
from muntin.adapting.summaries import ChatSummarizer
from muntin.adapting.vectors import VectorCache

__all__ = (
    "WORDINGS",
    "Accounts",
    "BeforeCompaction",
    "ChatSummarizer",
    "Compacting",
    "DecisionCache",
    "Fit",
    "Held",
    "JoinedLayout",
    "Keeper",
    "Limit",
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
    "RequestPlan",
    "Restate",
    "ResultCap",
    "Retrieved",
    "Retry",
    "Saved",
    "Step",
    "ToolRule",
    "TruncatedByServer",
    "VectorCache",
    "Wording",
    "adrive",
    "arranged",
    "carried_state",
    "check_given",
    "check_retrieval",
    "compaction_settings",
    "construct",
    "drive",
    "held",
    "is_edited_request",
    "limit_of",
    "mended",
    "named_ids",
    "overflow_of_answer",
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
    "truncated_at",
    "value_of",
)
