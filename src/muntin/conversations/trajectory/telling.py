"""Replace old steps by one entry: marker plus summary, inside the space that is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from muntin.config import ReducerConfig
from muntin.conversations.asking import LEAST_WINDOW, Asking, within_request
from muntin.conversations.digest import DigestEntry, digest
from muntin.counting import checked_tokens, truncate_to_tokens
from muntin.runtime import window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.config import MuntinConfig
    from muntin.counting import TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.runtime import Flow

__all__ = ("Summarize", "Telling", "check_numbers", "reducer_config")

Summarize = Callable[[str, str], Awaitable[str] | str]
"""What the reducers ask: `(text, instruction) -> summary`, sync or async."""

_INPUT_TOKENS = 8_000
"""Tokens of a request at most; of older text it carries the facts."""
_LEAST_SUMMARY = 16
"""Tokens below which half of the space is too little, and the whole room may be used."""
_SMALLEST_MARK = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """How one kind of trajectory summarises removed steps."""

    kind: Literal["agent", "plan", "reflection"]
    """Which texts are used."""
    counter: TokenCounter
    """Counts the entry."""
    prompts: PromptRegistry
    """The texts."""
    summarizer: object
    """Writes the summary."""
    budget: int
    """Tokens of the trajectory. A summariser that does not state its window gets no more."""

    @property
    def marker(self) -> str:
        """What the entry begins with."""
        return self.prompts.get(f"trajectory.{self.kind}.marker")

    def bare(self, text: str) -> str:
        """Remove the marker of an earlier summary, so that markers do not nest."""
        return text.removeprefix(self.marker)

    def tell(self, lines: Sequence[str], entries: Sequence[DigestEntry], room: int) -> Flow[str]:
        """Summarise old steps in at most `room` tokens; "" only when not even a mark fits."""
        marker = self.counter(self.marker)
        if room <= marker:
            # Checked before a request: a summary that cannot fit is not paid for.
            marks = (self.marker, _SMALLEST_MARK)
            return next((mark for mark in marks if self.counter(mark) <= room), "")
        allowed = min(room, max(room // 2, marker + _LEAST_SUMMARY))
        instruction = self.prompts.get(f"trajectory.{self.kind}.instruction")
        window, max_output = window_of(self.summarizer, otherwise=max(self.budget, LEAST_WINDOW))
        asking = Asking(
            counter=self.counter,
            instruction=instruction,
            merge_instruction=instruction,
            brief_instruction=self.prompts.get("compaction.brief"),
            window=window,
            max_input=_INPUT_TOKENS,
            max_output=max_output,
            labels=(self.marker,),
            summarizer=self.summarizer,
        )
        most = allowed - marker
        record = within_request(lines, entries, asking, max_tokens=most)
        made = yield from asking.flow(record, max_tokens=most)
        told = self.marker + (made.text or self._without_summary(entries, allowed))
        return truncate_to_tokens(told, allowed, self.counter) or self.marker

    def _without_summary(self, entries: Sequence[DigestEntry], allowed: int) -> str:
        failed = self.prompts.get("trajectory.failed")
        left = allowed - self.counter(self.marker + failed) - 2
        facts = digest(entries, max_tokens=left, counter=self.counter) if left > 0 else ""
        return f"{failed}\n{facts}" if facts else failed


def check_numbers(**numbers: object) -> None:
    """Refuse numbers that are not ints of at least 0, by name.

    Raises:
        ConfigurationError: One is.
    """
    for name, value in numbers.items():
        checked_tokens(value, name, least=0, unit="tokens" if name == "budget" else "count")


def reducer_config(config: MuntinConfig | ReducerConfig | None) -> ReducerConfig:
    """Return the reducer part of a configuration; `None` gives the defaults."""
    if config is None:
        return ReducerConfig()
    return cast("ReducerConfig", getattr(config, "reducer", config))
