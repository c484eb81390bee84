"""Ask for a summary in requests that fit the summariser, and judge what comes back.

One request takes the instruction, the text and the answer; all three fit the summariser's window.
A longer text is divided: each part is summarised, and the summaries are summarised, as often as it
takes. A bad summary of a part is replaced by an extraction; a bad final summary is refused with its
fault (`judgement`). A request that failed, or whose answer was refused, is remembered and not made
again with the same summariser.

What takes the place of a refused summary is decided by the caller.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from muntin.conversations.digest import digest
from muntin.conversations.summarize import ExtractiveSummarizer
from muntin.conversations.transcript import parts_of
from muntin.counting import (
    REPLY_TOKENS,
    framing_of,
    is_exact,
    truncate_to_tokens,
)
from muntin.errors import SummaryError
from muntin.runtime import Same, SummaryFault, SummaryRequest, bare_summary, fault_of, has_content
from muntin.text import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.digest import DigestEntry
    from muntin.counting import TokenCounter
    from muntin.runtime import Flow

__all__ = (
    "LEAST_WINDOW",
    "UNKNOWN_WINDOW",
    "Asking",
    "Summary",
    "cut_to",
    "within_request",
)

UNKNOWN_WINDOW = 16_000
"""Tokens of one request where no window is known: half of what small models read."""
LEAST_WINDOW = 8_192
"""Tokens of the smallest window that is assumed where only a budget is known: a budget says how
much a request may take, not how much the model can read."""
_OUTPUT_SHARE = 3
"""The answer takes at most one part in so many of a window."""
_BRIEF_SHARE = 4
"""An instruction above one part in so many of a window is replaced by the brief one."""
_SHRINK = 4
"""The summary of a part takes at most one part in so many of a request, so that merging ends."""
_LEAST_TEXT = 24
"""Tokens of text below which a request is not worth making."""
_ONE_REQUEST = 0.95
"""Share of a request's text that lines may take: joined they may cost more than one by one."""
_EXACT, _INEXACT = 0.98, 0.90
"""Share of a window that is used, by whether the counter is exact: joined counts may differ."""
_SENTENCE_SHARE = 2 / 3
"""A cut falls back to the end of a sentence if so much of the text stays."""
_MOST_FAILURES = 256

_Key: TypeAlias = tuple[Same, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary that may be used, or the reason why there is none."""

    text: str = ""
    """The summary, without a label; empty when there is a fault."""
    fault: SummaryFault | None = None
    """Why there is none; `None` when there is one."""
    calls: int = 0
    """Requests that were made."""
    shortened: bool = False
    """Whether the answer was longer than asked for and had to be cut."""
    error: str | None = None
    """What the summariser raised; `None` when it raised nothing."""

    @property
    def problem(self) -> str:
        """One line for a report about the fault; empty when there is none."""
        if self.fault is None:
            return ""
        if self.fault == "summary_empty":
            return "the summariser returned nothing (summary_empty)"
        if self.error:
            return f"the summariser failed ({self.fault}: {self.error})"
        return f"the summary was refused ({self.fault})"


class _Refused(Exception):  # noqa: N818 - carries a fault to `Asking.flow`, never leaves this module
    def __init__(self, fault: SummaryFault, error: str | None = None) -> None:
        self.fault: SummaryFault = fault
        self.error = error
        super().__init__(fault)


class _Failures:
    """Remember which requests failed with which summariser. Bounded, safe between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[_Key, tuple[SummaryFault, str | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> tuple[SummaryFault, str | None] | None:
        with self._lock:
            return self._known.get(key)

    def add(self, key: _Key, fault: SummaryFault, error: str | None) -> None:
        with self._lock:
            self._known[key] = (fault, error)
            while len(self._known) > self._most:
                self._known.popitem(last=False)


_failures = _Failures(_MOST_FAILURES)


@dataclass(slots=True, kw_only=True)
class Asking:
    """How summaries are requested: the texts, the window and the summariser."""

    counter: TokenCounter
    """Counts requests and summaries."""
    instruction: str
    """For a text that is summarised for the first time."""
    merge_instruction: str
    """For a summary that is brought up to date, and for summaries of parts."""
    brief_instruction: str
    """In place of both where the window is small."""
    window: int
    """Tokens of one request, instruction and answer included."""
    max_input: int | None = None
    """Tokens of instruction and text together; `None` for what the window leaves."""
    max_output: int | None = None
    """Tokens the summariser sets aside for an answer, whatever is asked for; `None` if unknown."""
    labels: tuple[str, ...] = ()
    """Labels the summary will get, and may come with."""
    summarizer: object = None
    """The summariser, as the key of failed requests. Only `flow`'s driver calls it."""
    calls: int = field(default=0, init=False)
    _slack: int = field(default=0, init=False)

    def flow(
        self, entries: Sequence[str], *, max_tokens: int, previous: str = "", slack: int = 0
    ) -> Flow[Summary]:
        """Ask for a summary of some entries.

        Args:
            entries: The record, one entry each. Long ones lose their middle.
            max_tokens: Tokens the summary may take.
            previous: The summary so far; empty when there is none.
            slack: Tokens by which a summary may be longer than its source.
        """
        self.calls, self._slack = 0, slack
        asked = max(1, min(max_tokens, self.window // _OUTPUT_SHARE))
        try:
            said = yield from self._summary(entries, previous, asked)
        except _Refused as refused:
            return Summary(fault=refused.fault, calls=self.calls, error=refused.error)
        text = cut_to(said, max_tokens, self.counter)
        if not has_content(text):
            return Summary(fault="summary_cut", calls=self.calls)
        return Summary(text=text, calls=self.calls, shortened=text != said)

    def room(self, max_tokens: int) -> int:
        """Return the tokens of text that one request for `max_tokens` can take, 0 or more."""
        asked = max(1, min(max_tokens, self.window // _OUTPUT_SHARE))
        return max(0, self._room(self._longest(), asked))

    def _longest(self) -> int:
        longest = max(map(self.counter, (self.instruction, self.merge_instruction)))
        return self.counter(self.brief_instruction) if self._is_long(longest) else longest

    def _is_long(self, instruction: int) -> bool:
        return instruction > self.window // _BRIEF_SHARE

    def _summary(self, entries: Sequence[str], previous: str, asked: int) -> Flow[str]:
        """Ask in as many requests as it takes and return the last answer."""
        first, merge = self.instruction, self.merge_instruction
        if self._is_long(max(map(self.counter, (first, merge)))):
            first = merge = self.brief_instruction
        room = self._room(max(map(self.counter, (first, merge))), asked)
        if room < _LEAST_TEXT:
            raise _Refused("summary_no_room")
        told = [self._bounded(previous, room // 2)] if previous else []
        entries = [self._bounded(entry, room // 2) for entry in entries]
        instruction = merge if previous else first
        while len(parts := parts_of([*told, *entries], room, self.counter)) > 1:
            share = max(1, min(asked, room // _SHRINK))
            summaries = yield from self._parts(entries, room, first, share)
            if len(summaries) >= len(entries) and len(summaries) > 1:
                raise _Refused("summary_grew")  # nothing got smaller: it would never end
            entries, instruction = summaries, merge
        if not parts:
            raise _Refused("summary_empty")
        return (yield from self._ask(parts[0], instruction, asked))

    def _parts(
        self, entries: Sequence[str], room: int, instruction: str, share: int
    ) -> Flow[list[str]]:
        """Summarise a long record part by part."""
        summaries: list[str] = []
        refused: _Refused | None = None
        asked = good = 0
        for part in parts_of(entries, room, self.counter):
            if self.counter(part) <= share:
                summaries.append(part)
                continue
            asked += 1
            try:
                said = yield from self._ask(part, instruction, share)
                good += 1
            except _Refused as problem:
                if problem.fault in ("summary_failed", "summary_late"):
                    raise
                refused = problem
                said = ExtractiveSummarizer(counter=self.counter)(part, max_tokens=share)
            summaries.append(cut_to(said, share, self.counter))
        if refused is not None and not good:
            raise refused
        return summaries

    def _room(self, instruction: int, asked: int) -> int:
        """Return the tokens of text that a request can take."""
        output = asked
        if self.max_output is not None:
            output = max(asked, min(self.max_output, self.window // 2))
        share = _EXACT if is_exact(self.counter) else _INEXACT
        framing = 2 * framing_of(self.counter) + REPLY_TOKENS
        room = int(share * (self.window - output - framing)) - instruction
        return room if self.max_input is None else min(room, self.max_input - instruction)

    def _bounded(self, text: str, most: int) -> str:
        if len(text) <= most // 4:
            return text
        return truncate_to_tokens(text, most, self.counter, keep="ends")

    def _ask(self, text: str, instruction: str, max_tokens: int) -> Flow[str]:
        """Make one request, unless it failed before; return its answer."""
        key = self._key(text, instruction, max_tokens)
        known = _failures.get(key) if key else None
        if known is not None:
            raise _Refused(*known)
        fault: SummaryFault | None
        error: str | None = None
        said = ""
        self.calls += 1
        try:
            reply = yield SummaryRequest(text=text, instruction=instruction, max_tokens=max_tokens)
        except SummaryError as problem:
            is_late = isinstance(problem.__cause__, TimeoutError)
            fault, error = "summary_late" if is_late else "summary_failed", str(problem)
        except Exception as problem:  # noqa: BLE001 - however a summary fails, nothing is lost by it
            fault, error = "summary_failed", f"{type(problem).__name__}: {problem}"
        else:
            said = bare_summary(reply, self.labels)
            fault = fault_of(
                said,
                text,
                asked=max_tokens,
                counter=self.counter,
                labels=self.labels,
                slack=self._slack,
            )
        if fault is None:
            return said
        if key:
            _failures.add(key, fault, error)
        raise _Refused(fault, error)

    def _key(self, text: str, instruction: str, max_tokens: int) -> _Key | None:
        if self.summarizer is None:
            return None
        asked = f"{max_tokens}\0{instruction}\0{text}".encode("utf-8", "surrogatepass")
        return Same(self.summarizer), blake2b(asked, digest_size=16).digest()


def cut_to(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Cut a summary to a number of tokens, at the end of a sentence where one is near.

    Returns:
        The text itself when it fits; what is cut ends in "…".
    """
    if counter(text) <= max_tokens:
        return text
    cut = truncate_to_tokens(text, max_tokens, counter)
    pieces = sentences(cut)
    whole = "".join(pieces[:-1]).rstrip()
    if len(whole) >= _SENTENCE_SHARE * len(cut) and counter(f"{whole} …") <= max_tokens:
        return f"{whole} …"
    return cut


def within_request(
    lines: Sequence[str], entries: Sequence[DigestEntry], asking: Asking, *, max_tokens: int
) -> list[str]:
    """Return a record that one request can take: the newest lines whole, of the others an extract.

    Args:
        lines: The record, one line each, oldest first.
        entries: The same record as entries of a digest.
        asking: Knows the request.
        max_tokens: Tokens the summary may take.
    """
    most = int(_ONE_REQUEST * asking.room(max_tokens))
    left, start = most, len(lines)
    while start and (tokens := asking.counter(lines[start - 1]) + 1) <= left:
        left -= tokens
        start -= 1
    if start == 0:
        return list(lines)
    room = max(left, most // 4)
    while start < len(lines) and left < room:
        left += asking.counter(lines[start]) + 1
        start += 1
    if not room:
        return list(lines[start:])
    count = asking.counter
    facts = digest(entries, max_tokens=room // 2, counter=count)
    extract = ExtractiveSummarizer(counter=count)(
        "\n".join(lines[:start]), max_tokens=room - count(facts) - 1
    )
    # A sentence without its speaker is marked, so that none can name another speaker.
    quoted = [f"- {line}" for line in extract.splitlines()]
    return [*filter(None, [facts]), *quoted, *lines[start:]]
