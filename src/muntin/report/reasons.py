"""Decides the words a report uses: the kinds of decision and the closed set of reasons.

One word per thing, so that a reader can filter by it and a program can rely on it. A reason that is
not here cannot be given; a new one is added here, with its sentence, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("REASONS", "REASONS_OF", "UNRANKED", "DecisionKind", "PartGroup", "Reason", "ReportKind")

ReportKind = Literal["context", "conversation"]
"""What was assembled: a context of sources, or the messages of a conversation."""

DecisionKind = Literal["kept", "shortened", "summarised", "dropped"]
"""What happened to one candidate or message; it is exactly one of the four."""

Reason = Literal[
    "placed",
    "named_in_question",
    "named_in_chosen",
    "names_chosen",
    "covers_question",
    "pinned",
    "protected",
    "recent",
    "recalled",
    "repaired",
    "does_not_fit",
    "over_quota",
    "over_budget",
    "oversized",
    "superseded",
    "exact_duplicate",
    "near_duplicate",
    "compacted",
    "digested",
    "already_given",
    "beyond_top_k",
    "join_overflow",
    "orphaned",
    "interrupted",
    "empty",
    "unbound",
]
"""Why it happened; the closed set, each explained in `REASONS`."""

REASONS: Mapping[Reason, str] = {
    "placed": "chosen by relevance, and it fitted",
    "named_in_question": "named in the question",
    "named_in_chosen": "named in the passage `nearest`, which was chosen before",
    "names_chosen": "mentions the passage `nearest`, which was chosen before",
    "covers_question": "has words of the question that nothing chosen before has",
    "pinned": "pinned by the caller, so it may not be dropped",
    "protected": "a system message, the newest user message, or the tool turn in flight",
    "recent": "among the newest messages that stay word for word",
    "recalled": "an older message brought back because the question asks for it",
    "repaired": "mended first: a result without its call, or half a character, stood in it",
    "does_not_fit": "larger than all the room that was left",
    "over_quota": "the quota of its source was spent and nothing could be borrowed",
    "over_budget": "the budget of the whole was spent",
    "oversized": "one item larger than any single item may be",
    "superseded": "a later item says the same thing newer",
    "exact_duplicate": "the same text as one that was kept",
    "near_duplicate": "almost the same text as one that was kept",
    "already_given": "already in the conversation",
    "compacted": "folded into the recap",
    "digested": "folded into the digest of facts",
    "beyond_top_k": "ranked behind the number of items asked for",
    "join_overflow": "taken out again because the joined text counted more than its parts",
    "orphaned": "a tool result without its call, or a call without its results",
    "interrupted": "a tool call that never got its results",
    "empty": "no text in it",
    "unbound": "its reasoning is accepted only behind messages that changed, so it was taken out",
}
"""Each reason, as the rest of the sentence "it was kept / shortened / dropped because ..."."""

_LINKED = {"named_in_question", "named_in_chosen", "names_chosen", "covers_question"}
_ROOM = {"does_not_fit", "over_quota", "over_budget", "oversized", "join_overflow"}
_SAID_ELSEWHERE = {"superseded", "exact_duplicate", "near_duplicate"}
REASONS_OF: Mapping[DecisionKind, frozenset[str]] = {
    "kept": frozenset(
        _LINKED | {"placed", "pinned", "protected", "recent", "recalled", "repaired", "interrupted"}
    ),
    "shortened": frozenset(_ROOM | _SAID_ELSEWHERE | {"digested", "repaired", "unbound"}),
    "summarised": frozenset({"compacted", "digested"}),
    "dropped": frozenset(
        _ROOM
        | _SAID_ELSEWHERE
        | {"already_given", "beyond_top_k", "orphaned", "interrupted", "empty", "unbound"}
    ),
}
"""Reasons that make sense for each kind; other pairs are refused."""

UNRANKED: frozenset[Reason] = frozenset({"already_given", "empty"})
"""Reasons of candidates that are left out before ranking."""

PartGroup = Literal["fixed", "source", "written", "structure", "idle", "outside", "reserve"]
"""What a part of the window belongs to."""
