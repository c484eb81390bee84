"""One fold of a memory: which compactor makes it, and what it was planned on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from muntin.conversations import NEWEST, ExtractiveSummarizer, HistoryCompactor
from muntin.counting import counts_for, truncate_to_tokens
from muntin.messages import AS_THEY_ARE, RoleRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from muntin.conversations import Compaction, CompactionOutcome, Newest
    from muntin.counting import TokenCounter
    from muntin.tool_results import ToolResultStore

__all__ = ("Fold", "Rules", "compactor_for", "discarded", "recap_tokens", "weight")

_KEPT = 0.76
"""Share of the limit that stays verbatim when the rest is folded."""
_RECAP = 0.12
"""Share of the limit a recap may take."""
_LEAST_RECAP = 12
"""Tokens below which a recap holds no content and would only displace messages."""
_RESULTS = 8
"""A tool result counts at most the limit divided by this: long ones are cut, not folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a log is counted, folded and recalled."""

    counter: TokenCounter
    """Counts texts."""
    summarizer: Any = None
    """Writes recaps; `None` summarises by extraction."""
    summary_prompt: str | None = None
    """Instruction for the first recap; `None` takes the built-in one."""
    max_summary_tokens: int | None = None
    """Tokens of a recap; `None` takes a share of the limit."""
    store: ToolResultStore | None = None
    """Keeps the originals of tool results that are cut; `None` keeps none."""
    recap_role: Literal["user", "system", "assistant"] = "user"
    """Role of the recap, and of a note about messages that are left out."""
    alternate: bool = False
    """Whether user and assistant alternate in what is sent."""
    question: Newest | None = NEWEST
    """What turns are recalled for where no question is given; `None` never recalls any."""
    roles: RoleRules = AS_THEY_ARE
    """What the model demands of the order of roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A planned fold."""

    live: list[ChatMessage]
    """Live part; the recap has the role of the system, by which a compactor recognises it."""
    tokens: int
    """Tokens of the live part."""
    positions: dict[int, int]
    """Position in the log of each live message, by identity."""
    planned_on: tuple[ChatMessage, ...]
    """Messages of the log when it was planned."""
    compactor: HistoryCompactor
    extracts: bool
    """Whether the recap is made without a model."""

    async def afold(self) -> Compaction:
        """Fold without blocking the loop: extraction runs in a thread."""
        if self.extracts:
            return await asyncio.to_thread(self.compactor.fold, self.live)
        return await self.compactor.afold(self.live)


def compactor_for(live: Sequence[ChatMessage], limit: int, rules: Rules) -> HistoryCompactor:
    """Make the compactor that folds a live part down to the share of the limit that is kept."""
    room, keep = int(limit * _KEPT), 0
    for message in reversed(live):
        room -= weight(message, limit, rules)
        if room < 0:
            break
        keep += 1
    return HistoryCompactor(
        rules.summarizer or _Extraction(rules.counter),
        keep_recent=max(keep, 1),
        trigger_tokens=limit // 4,
        max_summary_tokens=max(recap_tokens(limit, rules), 1),
        summary_prompt=rules.summary_prompt,
        token_counter=rules.counter,
    )


def recap_tokens(limit: int, rules: Rules) -> int:
    """Return the tokens a recap may take; 0 if they are too few for one."""
    tokens = rules.max_summary_tokens or int(limit * _RECAP)
    return tokens if tokens >= _LEAST_RECAP else 0


def weight(message: ChatMessage, limit: int, rules: Rules) -> int:
    """Count a message; a tool result at most as much as it is shortened to when it is sent."""
    measured = counts_for(rules.counter).measure(message)
    return min(measured.tokens, limit // _RESULTS) if measured.view.results else measured.tokens


def discarded(outcome: CompactionOutcome) -> CompactionOutcome:
    """Return the account of a discarded fold: its messages were removed before it ended."""
    return replace(
        outcome,
        reason="history_changed",
        tokens_after=outcome.tokens_before,
        covered=0,
        folded=(),
        effective=False,
    )


class _Extraction:
    """Summarise without a model: the best sentences, or where there are none, both ends."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._extract = ExtractiveSummarizer(counter=counter)

    def __call__(self, text: str, instruction: str = "", *, max_tokens: int = 1000) -> str:
        said = self._extract(text, instruction, max_tokens=max_tokens)
        return said or truncate_to_tokens(text, max_tokens, self._counter, keep="ends")
