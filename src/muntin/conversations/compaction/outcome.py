"""The result of a compaction: the messages, what was done and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from muntin.runtime import SummaryFault

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Compaction", "CompactionOutcome", "CompactionPlan", "CompactionReason")

CompactionReason: TypeAlias = (
    Literal[
        "under_trigger",
        "nothing_to_fold",
        "too_little_to_fold",
        "reused",
        "compacted",
        "summary_useless",
        "not_retried",
        "vetoed",
        "in_flight",
        "history_changed",
    ]
    | SummaryFault
)
"""Why the returned messages are what they are.

* `under_trigger`: the history is small enough.
* `nothing_to_fold`: everything that is not in a recap yet must be kept verbatim.
* `too_little_to_fold`: folding what may be folded would save less than the minimum gain.
* `reused`: an earlier recap still serves, no model was asked.
* `compacted`: a new recap was made.
* `summary_useless`: its summary would save less than the minimum gain.
* `not_retried`: an earlier pass over the same messages failed or was useless; further messages must
  come first.
* `vetoed`: `before_compaction` returned `None`.
* `in_flight`: this very thread is in the middle of compacting this conversation.
* `history_changed`: messages that were being summarised were changed or removed meanwhile.
* A `SummaryFault`: the summary was refused. Where it was wrong rather than missing (cut, too long,
  carried on, invented, unrelated), an extraction takes its place and `extracted` is true; else the
  history comes back.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """The effect of one call on a history."""

    reason: CompactionReason
    """Why the messages are what they are."""
    tokens_before: int
    """Tokens of the history as it was given, by the compactor's counter, without framing."""
    tokens_after: int
    """Tokens of what was returned, counted the same way."""
    covered: int = 0
    """Messages of the history that the recap covers."""
    folded: tuple[str, ...] = ()
    """What this call newly put into the recap: message ids, digests where there is no id."""
    interrupted: tuple[str, ...] = ()
    """Ids of calls this call folded although they were never answered."""
    over_trigger: bool = False
    """Whether the returned messages are still over the trigger: what must stay is too large."""
    model_calls: int = 0
    """Summaries asked for by this call, failed ones included."""
    extracted: bool = False
    """Whether the summary was refused and an extraction took its place."""
    shortened: bool = False
    """Whether the summary was over its cap and had to be cut."""
    effective: bool = False
    """Whether this call made a recap that saves at least the minimum gain."""
    reasoning_blocks: int = 0
    """Blocks of reasoning left out, because providers accept them only behind the messages that the
    recap replaces."""
    reasoning_tokens: int = 0
    """Tokens they took."""
    error: str | None = None
    """What the summariser raised; `None` when it raised nothing."""

    @property
    def compacted(self) -> bool:
        """Whether this call made a recap: a summary, or the extraction in its place."""
        return self.reason == "compacted" or self.extracted

    @property
    def saved(self) -> int:
        """Tokens between what was given and what was returned."""
        return self.tokens_before - self.tokens_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Hold what a compaction returns: the messages and the account of them."""

    messages: Sequence[Any]
    """The messages to send: the given object itself when nothing was folded, else a new list."""
    outcome: CompactionOutcome
    """What was done and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a compaction is about to do; `before_compaction` may look at it, narrow or veto it."""

    messages: Sequence[Any]
    """The history as it was given."""
    fold: tuple[int, ...]
    """Positions in `messages` that go into the recap. A hook may return fewer, not more."""
    tokens: int
    """Tokens that those messages take, without framing."""
    max_summary_tokens: int
    """Tokens the recap will take at most."""
