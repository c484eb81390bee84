"""The values a compactor works with: its settings, what a call finds, and a planned pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.conversations.compaction.flight import Flight
    from muntin.conversations.compaction.fold import Fold
    from muntin.conversations.compaction.outcome import CompactionPlan
    from muntin.conversations.compaction.recap import Recap
    from muntin.conversations.compaction.recapping import Recapped
    from muntin.conversations.compaction.trail import Trail
    from muntin.counting import TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.runtime import Flow

__all__ = ("Found", "Pass", "RecapRole", "Rules")

RecapRole: TypeAlias = Literal["system", "user", "assistant"]
"""Roles a recap can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings of a compactor; its constructor documents them."""

    keep_recent: int
    keep_tokens: int | None
    trigger_tokens: int
    trigger_messages: int | None
    max_summary_tokens: int
    min_gain_tokens: int
    min_update_tokens: int
    window: int
    max_input: int
    max_output: int | None
    recap_role: RecapRole
    instruction: str
    merge_instruction: str
    brief_instruction: str
    prefix: str
    prompts: PromptRegistry
    counter: TokenCounter
    model: str | None
    pinned: Callable[[Any], bool] | None
    max_conversations: int


@dataclass(frozen=True, slots=True)
class Pass:
    """A planned pass. Messages that arrive later do not change it."""

    flight: Flight
    trail: Trail
    history: bytes
    digest: bytes
    recap: Recap | None
    fold: Fold
    folded: tuple[str, ...]
    before: int
    gain: int
    flow: Flow[Recapped]
    plan: CompactionPlan
    spoken: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a call finds."""

    messages: list[Any]
    lead: int
    trail: Trail
    due: set[int]
    recap: Recap | None
    before: int
