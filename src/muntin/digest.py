"""What old messages leave behind: `label: value` facts, newest last, what failed, what was settled.

A later call needs the ids, dates, paths and numbers of earlier ones far more often than their
prose. So old text is read for facts, every fact gets a worth, and the most worthy ones that fit are
written in the order in which they were last met. Worth grows with

* newness: half of it is gone every dozen entries;
* mention: what came up in several entries, was said by somebody or given to a tool is in use;
* kind: ids before dates, identifiers, numbers and other words, which mean little without their id.

Facts of one JSON record stay on one line behind its id, and a record met again replaces what it
said before. Calls that failed and sentences that settle something stand between the facts.
How the weights were found is told in `docs/decisions/0010-digest.md`.

Talk is another matter: where no tool was called, what matters is mostly no fact. A long talk leaves
its ids and dates behind and the sentences that cover most of it (`summarize`), and an open channel
only the former, because what is wanted of it are its newest lines themselves.

Nothing here knows how a message is shaped or where a digest is put, and nothing is rephrased.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.facts import Fact, facts_of, is_settling, values_in
from muntin.segmentation import sentences
from muntin.summarize import ExtractiveSummarizer, is_open_channel
from muntin.tokens import TokenCounter, count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ("DigestEntry", "digest")

_NEWNESS, _HALF_LIFE = 1.0, 12.0
_MENTION, _SPOKEN, _CALLED, _ASKED = 0.5, 0.7, 1.0, 0.5
_KIND = {"id": 0.0, "date": -0.6, "name": -1.0, "number": -1.6, "word": -2.2}
_BEHIND = 0.01
"""How far behind its head a number or a word of a record ranks at least: alone it says nothing."""
_SETTLED, _FAILED = -0.4, 0.8
_TALK = 12
"""Messages without a single tool call that are a talk."""
_IDS_OF_TALK, _IDS_OF_CHANNEL = 0.25, 0.1
"""Share of a digest's room that the ids and dates of a talk take at most."""
_LONGEST_REMARK = 200
"""Characters of a failure or a statement; a quotation, not a transcript."""
_EDGE = 600
"""Characters at either end of a result in which a failure is looked for."""

_FAILED_LINE = re.compile(
    r"(?:error|traceback|exception|failed|failure|fatal)\b|[\w.]{0,80}(?:Error|Exception)\b",
    re.IGNORECASE,
)
_DECORATION = " \t<>*#!-"
"""What stands before the first word of a line in logs and lists."""
_FAILED_CODE = re.compile(r"\b(?:exit|return) ?(?:code|status)\W{1,3}[1-9]", re.IGNORECASE)
_FAILED_WORDS = ("error", "exception", "traceback", "fail", "fatal", "exit", "return")
"""What neither of the two finds anything without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry:
    """One old message, tool call or tool result, as plain values."""

    text: str = ""
    """What was said, or what the tool returned."""
    role: str = ""
    """`user`, `assistant`, `tool`, ...; empty when unknown."""
    tool: str = ""
    """Name of the tool for a call or a result; empty otherwise."""
    arguments: str = ""
    """Arguments of a call, as JSON; empty for everything that is not a call."""
    is_error: bool = False
    """Whether the result says that the call failed. Words that say so are recognised as well."""


def digest(
    entries: Sequence[DigestEntry],
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    known: str = "",
) -> str:
    """Write what old entries leave behind, newest last, never above `max_tokens`.

    Deterministic; linear in the text but for one sort of the facts.

    Args:
        entries: The old messages, calls and results, oldest first.
        max_tokens: Tokens the digest may take, by `counter` on the whole text.
        counter: Counts the text. It need not be additive.
        known: Text that stays in the context anyway: ids and dates in it are not repeated.

    Returns:
        Lines like `reservation_id: 4XGCCM, cabin: business`, and sentences of a long talk behind
        them; empty when there is nothing to say or not even one fact fits.

    ```python
    from muntin.digest import DigestEntry, digest

    old = [
        DigestEntry(role="user", text="Please cancel my order #W37 of 2024-05-19."),
        DigestEntry(tool="cancel", arguments='{"order_id": "#W37"}'),
        DigestEntry(role="tool", tool="cancel", text="Error: order is already delivered"),
    ]
    print(digest(old, max_tokens=40))
    #> order: 2024-05-19, order_id: #W37
    #> failed: cancel #W37: Error: order is already delivered
    ```
    """
    table = _Table(entries, known=set(values_in(known)))
    ranked = table.ranked()
    if not _is_talk(entries):
        return _written(table, ranked, max_tokens, counter)
    ids = [item for item in ranked if item.is_id]
    lines = [line for entry in entries for line in entry.text.splitlines()]
    if is_open_channel(lines):
        return _written(table, ids, int(_IDS_OF_CHANNEL * max_tokens), counter)
    facts = _written(table, ids, int(_IDS_OF_TALK * max_tokens), counter)
    left = max_tokens - (counter(f"{facts}\n") if facts else 0)
    gist = ExtractiveSummarizer(counter=counter)("\n".join(lines), max_tokens=left)
    both = "\n".join(filter(None, (facts, gist)))
    return both if counter(both) <= max_tokens else facts


def _is_talk(entries: Sequence[DigestEntry]) -> bool:
    """Say whether people, or a person and a model, only talked."""
    return len(entries) >= _TALK and not any(
        entry.tool or entry.arguments or entry.role == "tool" for entry in entries
    )


def _written(table: _Table, ranked: Sequence[_Item], max_tokens: int, counter: TokenCounter) -> str:
    """Write as many of some items as fit, the most worthy ones."""

    def written(size: int) -> str:
        return table.render(ranked[:size])

    return written(_most_that_fit(len(ranked), max_tokens, lambda n: counter(written(n))))


def _most_that_fit(most: int, limit: int, cost: Callable[[int], int]) -> int:
    """Find how many fit, looking at no more than twice as many: double first, then narrow down.

    Every other step expects the cost to grow evenly, which finds the place in a few; the steps
    between halve what is left, whatever the cost does.
    """
    low, below, high, above = 0, 0, 1, 0
    while high <= most and (above := cost(high)) <= limit:
        low, below, high = high, above, 2 * high
    if high > most:
        high, above = most + 1, 0
    is_even = True
    while high - low > 1:
        middle = (low + high) // 2
        if is_even and above > limit:
            expected = low + (limit - below) * (high - low) // (above - below)
            middle = min(max(expected, low + 1), high - 1)
        is_even = not is_even
        reached = cost(middle)
        if reached <= limit:
            low, below = middle, reached
        else:
            high, above = middle, reached
    return low


@dataclass(slots=True, kw_only=True)
class _Item:
    """A fact or a remark, with all that is known about its use."""

    label: str
    value: str
    base: float
    is_own: bool
    """Whether it says something without its record."""
    is_id: bool = False
    """Whether it is an id or a date."""
    group: object
    """Items of one group share a line."""
    entry: int
    order: int
    head: str = ""
    mentions: int = 1
    is_spoken: bool = False
    is_called: bool = False
    is_asked: bool = False
    worth: float = 0.0

    def __str__(self) -> str:
        return f"{self.label}: {self.value}" if self.label else self.value


class _Table:
    """Everything worth saying about some entries, each thing once."""

    def __init__(self, entries: Sequence[DigestEntry], known: set[str]) -> None:
        self._items: dict[object, _Item] = {}
        self._order = 0
        self._entries = len(entries)
        calls: list[DigestEntry] = []
        for at, entry in enumerate(entries):
            if entry.arguments:
                calls.append(entry)
            for fact in facts_of(entry.arguments):
                self._add_fact(fact, at, is_called=True)
            is_spoken = entry.role in ("user", "assistant")
            for fact in facts_of(entry.text):
                self._add_fact(fact, at, is_spoken=is_spoken, is_asked=entry.role == "user")
            for label, remark, base in _remarks(entry, calls):
                self._add_remark(label, remark, base, at)
        self._known = known

    def _add_fact(
        self,
        fact: Fact,
        at: int,
        *,
        is_called: bool = False,
        is_spoken: bool = False,
        is_asked: bool = False,
    ) -> None:
        self._order += 1
        is_own = fact.kind in ("id", "date", "name")
        key: object = fact.value
        if not is_own:
            key = (fact.head, fact.label) if fact.head else (fact.label, fact.value)
        group: object = ("head", fact.head) if fact.head else (at, fact.record)
        item = self._items.get(key)
        if item is None:
            item = _Item(
                label=fact.label,
                value=fact.value,
                base=_KIND[fact.kind],
                is_own=is_own,
                is_id=fact.kind in ("id", "date"),
                group=group,
                head=fact.head,
                entry=at,
                order=self._order,
            )
            self._items[key] = item
        else:
            item.mentions += item.entry != at
            item.label = fact.label or item.label
            item.value, item.group, item.head = fact.value, group, fact.head
            item.entry, item.order = at, self._order
        item.is_called |= is_called
        item.is_spoken |= is_spoken
        item.is_asked |= is_asked

    def _add_remark(self, label: str, remark: str, base: float, at: int) -> None:
        self._order += 1
        self._items.pop((label, remark), None)
        self._items[label, remark] = _Item(
            label=label,
            value=remark,
            base=base,
            is_own=True,
            group=self._order,
            entry=at,
            order=self._order,
        )

    def ranked(self) -> list[_Item]:
        """Order the items by worth, most worthy first; newer first among equals."""
        for item in self._items.values():
            age = self._entries - 1 - item.entry
            item.worth = (
                item.base
                + (_ASKED if item.is_asked else 0)
                + _NEWNESS * math.exp2(-age / _HALF_LIFE)
                + _MENTION * math.log2(item.mentions)
                + _SPOKEN * item.is_spoken
                + _CALLED * item.is_called
            )
        for item in self._items.values():
            head = self._items.get(item.head)
            if head is not None and not item.is_own:
                item.worth = min(item.worth, head.worth - _BEHIND)
        new = (item for item in self._items.values() if item.value not in self._known)
        return sorted(new, key=lambda item: (-item.worth, -item.order))

    def render(self, items: Sequence[_Item]) -> str:
        """Write items, those of one record on one line, by when the record was last met."""
        lines: dict[object, list[_Item]] = {}
        for item in sorted(items, key=lambda item: item.order):
            lines.setdefault(item.group, []).append(item)
        ordered = sorted(lines.values(), key=lambda line: line[-1].order)
        return "\n".join(", ".join(map(str, line)) for line in ordered)


def _remarks(entry: DigestEntry, calls: list[DigestEntry]) -> Iterator[tuple[str, str, float]]:
    """Quote what an entry says in words that the next step must not forget."""
    if entry.role == "tool":
        call = next((c for c in calls if entry.tool in ("", c.tool)), None)
        if call is not None:
            calls.remove(call)
        problem = _problem(entry)
        if problem:
            values = ", ".join(f.value for f in facts_of(call.arguments)) if call else ""
            name = entry.tool or (call.tool if call else "")
            what = " ".join(filter(None, (name, _cut(values, 80))))
            yield "failed", _cut(f"{what}: {problem}" if what else problem), _FAILED
    elif entry.role in ("user", "assistant") and not entry.text.lstrip().startswith(("{", "[")):
        # Most texts settle nothing, and are not worth being parted into sentences.
        for line in entry.text.split("\n") if is_settling(entry.text) else ():
            for sentence in sentences(line) if is_settling(line) else ():
                if is_settling(sentence):
                    said = _cut(sentence)
                    yield ("said" if entry.role == "user" else "noted"), said, _SETTLED


def _problem(entry: DigestEntry) -> str:
    """Quote the line that says why a call failed; empty when it did not."""
    text = entry.text.strip()
    if len(text) > 2 * _EDGE:
        text = f"{text[:_EDGE]}\n{text[-_EDGE:]}"
    found: list[str] = []
    folded = text.lower()
    if any(word in folded for word in _FAILED_WORDS):
        found = [line.strip() for line in text.splitlines() if _tells_failure(line)]
    if found:
        telling = [line for line in found if ":" in line and len(line) > 12]
        return (telling or found)[-1]
    return text.partition("\n")[0] or "failed" if entry.is_error else ""


def _tells_failure(line: str) -> bool:
    return bool(_FAILED_LINE.match(line.lstrip(_DECORATION)) or _FAILED_CODE.search(line))


def _cut(text: str, length: int = _LONGEST_REMARK) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
