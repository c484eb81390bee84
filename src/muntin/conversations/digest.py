"""What old messages leave behind: `label: value` facts, newest last, what failed, what was settled.

A later call needs the ids, dates, paths and numbers of earlier ones far more often than their
prose. So old text is read for facts, every fact gets a worth, and the most worthy ones that fit are
written in the order in which they were last met. Worth grows with

* newness: half of it is gone every dozen entries;
* mention: a value that came up in several entries, was spoken of or given to a tool is in use;
* kind: ids before dates, identifiers, numbers and other words, which mean little without their id.

Facts of one JSON record stay on one line behind its id, and a record met again replaces what it
said before. Calls that failed and sentences that settle something are placed between the facts.
The weights are explained in `docs/decisions/0010-digest.md`.

Talk is another matter: where no tool was called, what matters is mostly no fact. A long talk leaves
its ids and dates behind and the sentences that cover most of it (`summarize`), and an open channel
only the former, because what is wanted of it are its newest lines themselves.

Nothing here knows how a message is shaped or where a digest is put, and nothing is rephrased.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from muntin.conversations.approvals import asks_something
from muntin.conversations.summarize import ExtractiveSummarizer, is_open_channel
from muntin.counting import TokenCounter, count_tokens
from muntin.runtime import longest_text
from muntin.text import (
    FactKind,
    content_words,
    facts_of,
    is_settling,
    sentences,
    values_in,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ("DigestEntry", "digest")

_NEWNESS, _HALF_LIFE = 1.0, 12.0
_MENTION = 0.5
_SPOKEN, _CALLED, _ASKED = 1, 2, 4
"""How a fact was used: spoken of, given to a tool, asked by the user."""
_USE = tuple(
    sum(worth for use, worth in ((_SPOKEN, 0.7), (_CALLED, 1.0), (_ASKED, 0.5)) if uses & use)
    for uses in range(8)
)
"""Worth of all ways a fact was used together."""
_KIND = {
    "id": 0.0,
    "date": -0.6,
    "name": -1.0,
    "number": -1.6,
    "word": -2.2,
    "failed": 0.8,
    "settled": -0.4,
}
_OWN = frozenset({"id", "date", "name"})
"""Kinds of facts that are useful without their record."""
_USES_BY_ROLE = {"user": _SPOKEN | _ASKED, "assistant": _SPOKEN}
_RemarkKind: TypeAlias = Literal["failed", "settled"]
_ItemKind: TypeAlias = FactKind | _RemarkKind
_BEHIND = 0.01
"""How far behind its head a number or a word of a record ranks at least: alone it is useless."""
_TALK = 12
"""Messages without a single tool call that are a talk."""
_IDS_OF_TALK, _IDS_OF_CHANNEL = 0.25, 0.1
"""Share of a digest's tokens that the ids and dates of a talk take at most."""
_MANY = 6
"""Values of one label, each met once in results, from which times and hex strings are noise."""
_NOISE = 4.0
"""Worth that such a value loses: all else is written first."""
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?Z?")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_HEX = re.compile(
    r"(?=[0-9a-fA-F-]*\d)(?=[0-9-]*[a-fA-F])(?:0x)?[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*"
)
_NAMED, _NAMED_VALUE = 1.6, 2.0
"""Worth that a record gains when the question names it, and that its numbers gain."""
_FEW_RECORDS, _NAMED_SHARE = 4, 0.1
"""Number and share of records up to which a word of the question names some of them."""
_LABEL_REACH = 38
"""Characters behind a label up to which values share it."""
_WORDY = re.compile(r"[^\W\d_]{3}")
"""A value with a word in it: behind it, another value would seem to be named by that word."""
_LONGEST_REMARK = 200
"""Characters of a failure or a statement; a quotation, not a transcript."""
_EDGE = 600
"""Characters at either end of a result in which a failure is looked for."""

_FAILED_LINE = re.compile(
    r"(?:error|traceback|exception|failed|failure|fatal)\b|[\w.]{0,80}(?:Error|Exception)\b",
    re.IGNORECASE,
)
_DECORATION = " \t<>*#!-"
"""Prefixes of lines in logs and lists."""
_FAILED_CODE = re.compile(r"(?:exit|return) ?(?:code|status)\W{1,3}[1-9]")
"""In small letters and without a word boundary in front, which makes it twice as fast."""
_FAILED_WORDS = ("error", "exception", "traceback", "fail", "fatal", "exit", "return")
"""What neither of the two finds anything without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry:
    """One old message, tool call or tool result, as plain values."""

    text: str = ""
    """Text of the message or the tool result."""
    role: str = ""
    """`user`, `assistant`, `tool`, ...; empty when unknown."""
    tool: str = ""
    """Name of the tool for a call or a result; empty otherwise."""
    arguments: str = ""
    """Arguments of a call, as JSON; empty for everything that is not a call."""
    call_id: str = ""
    """Id of the call that this is, or that this result answers; empty where there is none: then a
    result answers the oldest call of its tool that waits for one."""
    is_error: bool = False
    """Whether the result reports a failed call. Words of failure are recognised as well."""


def digest(
    entries: Sequence[DigestEntry],
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    known: str = "",
    asked: str = "",
) -> str:
    """Write what old entries leave behind, newest last, never above `max_tokens`.

    Deterministic; linear in the text but for one sort of the facts.

    Args:
        entries: The old messages, calls and results, oldest first.
        max_tokens: Tokens the digest may take, by `counter` on the whole text.
        counter: Counts the text. It need not be additive.
        known: Text that stays in the context anyway: ids and dates in it are not repeated.
        asked: What the user asks for now. A record that it names is worth more.

    Returns:
        Lines like `reservation_id: 4XGCCM, cabin: business`, and sentences of a long talk behind
        them; empty if there is no fact or none fits.

    ```python
    from muntin.conversations.digest import DigestEntry, digest

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
    table = _Table(entries, known=set(values_in(known)), asked=asked)
    ranked = table.ranked()
    if not _is_talk(entries):
        return _written(table, ranked, max_tokens, counter)
    ids = [item for item in ranked if item.kind in ("id", "date")]
    lines = [line for entry in entries for line in entry.text.splitlines()]
    if is_open_channel(lines):
        return _written(table, ids, int(_IDS_OF_CHANNEL * max_tokens), counter)
    facts = _written(table, ids, int(_IDS_OF_TALK * max_tokens), counter)
    left = max_tokens - (counter(f"{facts}\n") if facts else 0)
    gist = ExtractiveSummarizer(counter=counter)("\n".join(lines), max_tokens=left)
    both = "\n".join(filter(None, (facts, gist)))
    return both if counter(both) <= max_tokens else facts


def _is_talk(entries: Sequence[DigestEntry]) -> bool:
    """Return whether people, or a person and a model, only talked."""
    return len(entries) >= _TALK and not any(
        entry.tool or entry.arguments or entry.role == "tool" for entry in entries
    )


def _written(table: _Table, ranked: Sequence[_Item], max_tokens: int, counter: TokenCounter) -> str:
    """Write as many of some items as fit, the most worthy ones."""

    def written(size: int) -> str:
        return table.render(ranked[:size])

    return longest_text(written, max_tokens, counter, low=0, high=len(ranked), start=1)


@dataclass(slots=True)
class _Item:
    """A fact or a remark, with all that is known about its use."""

    label: str
    value: str
    kind: _ItemKind
    group: object
    """Items of one group share a line."""
    entry: int
    order: int
    head: str = ""
    uses: int = 0
    mentions: int = 1
    worth: float = 0.0
    text: str = ""
    """How it reads; written when it is first asked for."""

    def __str__(self) -> str:
        if not self.text:
            self.text = f"{self.label}: {self.value}" if self.label else self.value
        return self.text


class _Table:
    """Everything worth saying about some entries, each thing once."""

    def __init__(self, entries: Sequence[DigestEntry], known: set[str], asked: str) -> None:
        self._items: dict[object, _Item] = {}
        self._order = 0
        self._entries = len(entries)
        calls: dict[object, DigestEntry] = {}
        for at, entry in enumerate(entries):
            if entry.role != "tool" and (entry.tool or entry.arguments):
                calls[entry.call_id or at] = entry
            if entry.arguments:
                self._add_facts(entry.arguments, at, _CALLED)
            if entry.text:
                self._add_facts(entry.text, at, _USES_BY_ROLE.get(entry.role, 0))
            for label, remark, kind in _remarks(entry, calls):
                self._add_remark(label, remark, kind, at)
        self._known = known
        self._asked = {_singular(word) for word in content_words(asked)}

    def _add_facts(self, text: str, at: int, uses: int) -> None:
        items, order = self._items, self._order
        for label, value, kind, record, head in facts_of(text):
            order += 1
            key: object = value
            if kind not in _OWN:
                key = (head, label) if head else (label, value)
            group: object = ("head", head) if head else (at, record)
            item = items.get(key)
            if item is None:
                items[key] = _Item(label, value, kind, group, at, order, head, uses)
                continue
            item.mentions += item.entry != at
            item.label = label or item.label
            item.value, item.group, item.head = value, group, head
            item.entry, item.order = at, order
            item.uses |= uses
        self._order = order

    def _add_remark(self, label: str, remark: str, kind: _RemarkKind, at: int) -> None:
        self._order += 1
        self._items.pop((label, remark), None)
        self._items[label, remark] = _Item(label, remark, kind, self._order, at, self._order)

    def ranked(self) -> list[_Item]:
        """Order the items by worth, most worthy first; newer first among equals."""
        newest = self._entries - 1
        newness = [_NEWNESS * math.exp2((at - newest) / _HALF_LIFE) for at in range(newest + 1)]
        items = self._items.values()
        for item in items:
            item.worth = _KIND[item.kind] + newness[item.entry] + _USE[item.uses]
            if item.mentions > 1:
                item.worth += _MENTION * math.log2(item.mentions)
        self._discount_noise()
        if self._asked:
            self._raise_named()
        for item in items:
            if item.head and item.kind in ("number", "word"):
                head = self._items.get(item.head)
                if head is not None:
                    item.worth = min(item.worth, head.worth - _BEHIND)
        new = [
            item
            for item in items
            # A clock time that only a result holds is not a fact by itself.
            if item.value not in self._known and (item.uses or _shape_of(item.value) != "clock")
        ]
        return sorted(new, key=attrgetter("worth", "order"), reverse=True)

    def _raise_named(self) -> None:
        """Raise the worth of records that the question names by one of their values."""
        named: dict[tuple[str, ...], list[_Item]] = {}
        heads: set[str] = set()
        for item in self._items.values():
            if not item.head:
                continue
            heads.add(item.head)
            said = tuple(_singular(word) for word in words(item.value))
            if said and item.value != item.head and self._asked.issuperset(said):
                named.setdefault(said, []).append(item)
        most = max(_FEW_RECORDS, _NAMED_SHARE * len(heads))
        raised = {item.head for found in named.values() if len(found) <= most for item in found}
        for item in self._items.values():
            if item.head in raised or item.value in raised:
                is_value = item.kind == "number" and item.head != item.value
                item.worth += _NAMED_VALUE if is_value else _NAMED

    def _discount_noise(self) -> None:
        """Lower the worth of what only counts up or is random in each line of a log.

        A ticket number comes with other values under its label as well, but people speak of it or
        pass it to tools; a time stamp or the hex string of a line is met once.
        """
        once: dict[tuple[str, str], list[_Item]] = {}
        for item in self._items.values():
            shape = _shape_of(item.value)
            if shape == "clock" or (shape and not item.uses and item.mentions == 1):
                # What names a time stamp is mostly the line before it.
                once.setdefault((shape, item.label if shape == "hex" else ""), []).append(item)
        for found in once.values():
            if len(found) > _MANY:
                for item in found:
                    item.worth -= _NOISE

    def render(self, items: Sequence[_Item]) -> str:
        """Write items, those of one record on one line, by when the record was last met."""
        lines: dict[object, list[_Item]] = {}
        for item in sorted(items, key=attrgetter("order")):
            lines.setdefault(item.group, []).append(item)
        ordered = sorted(lines.values(), key=lambda line: line[-1].order)
        return "\n".join(_joined(ordered))


def _singular(word: str) -> str:
    """Take the ending of a plural from a word."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _joined(lines: Iterable[Sequence[_Item]]) -> Iterator[str]:
    """Write lines of items; neighbours that are one number each share the label of the first."""
    written, label, reach = "", "", 0
    for line in lines:
        one = line[0]
        short = len(line) == 1 and one.label and not _WORDY.search(one.value)
        reach += len(one.value) + 2
        if short and one.label == label and reach <= _LABEL_REACH:
            written += f", {one.value}"
            continue
        if written:
            yield written
        written = ", ".join(map(str, line))
        label, reach = (one.label, len(one.value)) if short else ("", 0)
    if written:
        yield written


def _shape_of(value: str) -> str:
    """Name the shape of a value that may be noise; empty for any other."""
    if _CLOCK.fullmatch(value):
        return "clock"
    if _STAMP.fullmatch(value):
        return "stamp"
    return "hex" if _HEX.fullmatch(value) else ""


def _remarks(
    entry: DigestEntry, calls: dict[object, DigestEntry]
) -> Iterator[tuple[str, str, _RemarkKind]]:
    """Quote sentences of an entry that the next step needs."""
    if entry.role == "tool":
        call = _answered(entry, calls)
        problem = _problem(entry)
        if problem:
            values = ", ".join(f.value for f in facts_of(call.arguments)) if call else ""
            name = entry.tool or (call.tool if call else "")
            what = " ".join(filter(None, (name, _cut(values, 80))))
            yield "failed", _cut(f"{what}: {problem}" if what else problem), "failed"
    elif entry.role in ("user", "assistant") and not entry.text.lstrip().startswith(("{", "[")):
        # Most texts settle nothing, and are not worth being parted into sentences.
        for line in entry.text.split("\n") if is_settling(entry.text) else ():
            for sentence in sentences(line) if is_settling(line) else ():
                if is_settling(sentence) and not _leaves_open(sentence):
                    said = _cut(sentence)
                    yield ("said" if entry.role == "user" else "noted"), said, "settled"


def _leaves_open(sentence: str) -> bool:
    """Return whether a sentence asks for something or only introduces what follows it."""
    return sentence.rstrip().endswith(":") or asks_something(sentence)


def _answered(entry: DigestEntry, calls: dict[object, DigestEntry]) -> DigestEntry | None:
    """Take out the call that a result answers; `None` when it is not among them."""
    if entry.call_id:
        return calls.pop(entry.call_id, None)
    key = next((key for key, call in calls.items() if entry.tool in ("", call.tool)), None)
    return None if key is None else calls.pop(key)


def _problem(entry: DigestEntry) -> str:
    """Quote the line with the reason why a call failed; empty if it did not."""
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
    return bool(_FAILED_LINE.match(line.lstrip(_DECORATION)) or _FAILED_CODE.search(line.lower()))


def _cut(text: str, length: int = _LONGEST_REMARK) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
