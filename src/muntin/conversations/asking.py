"""Ask for a recap and judge what comes back: the policy of one pass.

A text within the summariser's own budget takes one request. A larger one is divided, each part is
summarised, and the summaries are merged, as often as it takes. A reply that is blank, that repeats
what it was given, or that is no shorter than it is refused: a refused or failed summary changes
nothing. A reply over its cap is cut by counting, prefix included, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.conversations.transcript import parts_of
from muntin.counting import truncate_to_tokens
from muntin.errors import SummaryError
from muntin.runtime import SummaryRequest
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.compaction.outcome import CompactionReason
    from muntin.counting import TokenCounter
    from muntin.runtime import Flow

__all__ = ("Condenser", "Verdict")

_SHRINK = 4
"""A part's summary takes at most this fraction of a request, so that merging comes to an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Say what a pass came to."""

    reason: CompactionReason
    """`compacted`, or what was wrong with the summary."""
    text: str = ""
    """The recap without its prefix; empty unless compacted."""
    calls: int = 0
    """Summaries asked for."""
    shortened: bool = False
    """Whether it was over its cap."""
    error: str | None = None
    """What the summariser raised; `None` when it raised nothing."""


class _Refused(Exception):  # noqa: N818 - a verdict on its way, caught below
    def __init__(self, reason: CompactionReason) -> None:
        self.reason: CompactionReason = reason
        super().__init__(reason)


@dataclass(slots=True, kw_only=True)
class Condenser:
    """Make one recap out of an earlier one and what was said since."""

    counter: TokenCounter
    """Counts requests and recaps."""
    instruction: str
    """For a text that starts a recap."""
    merge_instruction: str
    """For a text that continues one."""
    prefix: str
    """What the recap will start with; charged to its cap."""
    room: int
    """Tokens of text one request may carry."""
    calls: int = 0

    def flow(self, previous: str, entries: Sequence[str], *, hint: int, cap: int) -> Flow[Verdict]:
        """Summarise.

        Args:
            previous: The recap so far; empty when there is none.
            entries: What was said since, written down.
            hint: Tokens to ask for.
            cap: Tokens the recap with its prefix may take.
        """
        try:
            given, reply = yield from self._reply(previous, entries, hint)
            return self._judged(given, reply, cap)
        except _Refused as refused:
            return Verdict(reason=refused.reason, calls=self.calls)
        except SummaryError as error:
            late = isinstance(error.__cause__, TimeoutError)
            reason = "summary_late" if late else "summary_failed"
            return Verdict(reason=reason, calls=self.calls, error=str(error))
        except Exception as error:  # noqa: BLE001 - however a summary fails, nothing is lost by it
            described = f"{type(error).__name__}: {error}"
            return Verdict(reason="summary_failed", calls=self.calls, error=described)

    def _reply(self, previous: str, entries: Sequence[str], hint: int) -> Flow[tuple[str, str]]:
        """Ask in as many requests as it takes; return what the last one was given, and gave."""
        previous = truncate_to_tokens(previous, self.room // 2, self.counter)
        told = [previous] if previous else []
        instruction = self.merge_instruction if previous else self.instruction
        while len(parts := parts_of([*told, *entries], self.room, self.counter)) > 1:
            share = max(1, min(hint, self.room // _SHRINK))
            summaries: list[str] = []
            for part in parts_of(entries, self.room, self.counter):
                if self.counter(part) <= share:  # short enough as it is
                    summaries.append(part)
                    continue
                reply = yield from self._ask(part, self.instruction, share)
                summaries.append(truncate_to_tokens(reply, share, self.counter))
            if len(summaries) >= len(entries) and len(summaries) > 1:
                raise _Refused("summary_useless")  # nothing got smaller: it would never end
            entries, instruction = summaries, self.merge_instruction
        text = parts[0]
        return text, (yield from self._ask(text, instruction, hint))

    def _ask(self, text: str, instruction: str, max_tokens: int) -> Flow[str]:
        self.calls += 1
        reply = yield SummaryRequest(text=text, instruction=instruction, max_tokens=max_tokens)
        said = clean_text(reply).strip()
        said = said.removeprefix(self.prefix.strip()).lstrip() if self.prefix.strip() else said
        if not said:
            raise _Refused("summary_empty")
        return said

    def _judged(self, given: str, said: str, cap: int) -> Verdict:
        if said.split() == given.split():
            raise _Refused("summary_echoed")
        recap = self.prefix + said
        shortened = self.counter(recap) > cap
        if shortened:
            if self.counter(said) >= self.counter(given):
                raise _Refused("summary_grew")
            recap = truncate_to_tokens(recap, cap, self.counter)
        text = recap.removeprefix(self.prefix)
        if not recap.startswith(self.prefix) or not text.strip("… \n"):
            raise _Refused("summary_useless")
        return Verdict(reason="compacted", text=text, calls=self.calls, shortened=shortened)
