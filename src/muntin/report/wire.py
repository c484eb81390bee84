"""Decides how a report is written as plain data, and what it takes to read it back.

The format is `muntin.report/1`; `ReportDict` and its parts are its schema. Writing and reading are
exact inverses. Reading is strict: another version, a missing or unknown field, a wrong type, or
figures that contradict each other raise `ReportError`, because half a report misleads more than
none. A change that adds or removes a field makes version 2.

The replay, and the texts of the pieces, are not written: a report may travel where documents may
not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, get_args

from muntin.errors import ReportError
from muntin.report.reasons import DecisionKind, PartGroup, Reason, ReportKind
from muntin.report.values import Decision, Event, Piece, SourceReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from muntin.report.account import Account

__all__ = (
    "FORMAT",
    "DecisionDict",
    "EventDict",
    "PartDict",
    "PieceDict",
    "ReportDict",
    "SourceDict",
    "check_parts",
    "fields_of",
    "to_dict",
    "to_json",
)

_T = TypeVar("_T")

FORMAT: Literal["muntin.report/1"] = "muntin.report/1"
"""Name and version of the written form."""


class DecisionDict(TypedDict):
    """A `Decision`, field by field."""

    index: int
    source: str
    id: str
    kind: DecisionKind
    reason: Reason
    tokens: int
    kept_tokens: int
    score: float | None
    mmr_score: float | None
    nearest: str | None
    similarity: float | None
    preview: str


class SourceDict(TypedDict):
    """A `SourceReport`, field by field."""

    name: str
    offered: int
    placed: int
    shortened: int
    summarised: int
    dropped: dict[Reason, int]
    quota: int | None
    lent: int
    borrowed: int
    used: int


class EventDict(TypedDict):
    """An `Event`, field by field."""

    what: str
    before: int
    after: int
    covered: int
    detail: str


class PieceDict(TypedDict):
    """A `Piece` without its text."""

    label: str
    digest: str
    characters: int
    tokens: int


class PartDict(TypedDict):
    """A `Part` of the window: derived, for readers in other languages; checked when read."""

    name: str
    group: PartGroup
    tokens: int
    width: int


class ReportDict(TypedDict):
    """A whole report; `format` comes first and names the version."""

    format: Literal["muntin.report/1"]
    kind: ReportKind
    question: str
    budget: int
    used: int
    window: int | None
    reserve: int
    counter: str
    exact: bool
    fixed: dict[str, int]
    written: dict[str, int]
    parts: list[PartDict]
    sources: list[SourceDict]
    decisions: list[DecisionDict]
    events: list[EventDict]
    notes: list[str]
    pieces: list[PieceDict]


def to_dict(report: Account) -> ReportDict:
    """Write a report as plain data; `AssemblyReport.to_dict` is this."""
    return {
        "format": FORMAT,
        "kind": report.kind,
        "question": report.question,
        "budget": report.budget,
        "used": report.used,
        "window": report.window,
        "reserve": report.reserve,
        "counter": report.counter,
        "exact": report.exact,
        "fixed": dict(report.fixed),
        "written": dict(report.written),
        "parts": _parts(report),
        "sources": [_source(source) for source in report.sources],
        "decisions": [_decision(one) for one in report.decisions],
        "events": [_event(event) for event in report.events],
        "notes": list(report.notes),
        "pieces": [_piece(piece) for piece in report.pieces],
    }


def to_json(report: Account, *, indent: int | None = None) -> str:
    """Write a report as JSON, the same bytes for the same report; always valid UTF-8."""
    data = to_dict(report)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    if text.isascii() or text.encode("utf-8", "ignore").decode("utf-8") == text:
        return text
    # A lone surrogate in a name or an id: legal in a str, not in UTF-8; escaped, it is both.
    return json.dumps(data, ensure_ascii=True, allow_nan=False, indent=indent)


def _parts(report: Account) -> list[PartDict]:
    return [
        {"name": part.name, "group": part.group, "tokens": part.tokens, "width": part.width}
        for part in report.parts
    ]


def _source(source: SourceReport) -> SourceDict:
    return {
        "name": source.name,
        "offered": source.offered,
        "placed": source.placed,
        "shortened": source.shortened,
        "summarised": source.summarised,
        "dropped": dict(source.dropped),
        "quota": source.quota,
        "lent": source.lent,
        "borrowed": source.borrowed,
        "used": source.used,
    }


def _decision(one: Decision) -> DecisionDict:
    return {
        "index": one.index,
        "source": one.source,
        "id": one.id,
        "kind": one.kind,
        "reason": one.reason,
        "tokens": one.tokens,
        "kept_tokens": one.kept_tokens,
        "score": one.score,
        "mmr_score": one.mmr_score,
        "nearest": one.nearest,
        "similarity": one.similarity,
        "preview": one.preview,
    }


def _event(event: Event) -> EventDict:
    return {
        "what": event.what,
        "before": event.before,
        "after": event.after,
        "covered": event.covered,
        "detail": event.detail,
    }


def _piece(piece: Piece) -> PieceDict:
    return {
        "label": piece.label,
        "digest": piece.digest,
        "characters": piece.characters,
        "tokens": piece.tokens,
    }


def fields_of(data: Mapping[str, object]) -> dict[str, Any]:
    """Read the fields of a report back from its written form, for the report to be made of.

    Raises:
        ReportError: Another version, a missing or unknown field, or a value of the wrong type. (The
            report itself checks its figures against each other.)
    """
    found = data.get("format")
    if found != FORMAT:
        raise ReportError(
            f"this is not a report this version reads: its format is {found!r}, not {FORMAT!r}"
        )
    read = _Reader(data, "report")
    read.take("format", str)
    read.take("parts", list)
    fields = {
        "kind": read.word("kind", get_args(ReportKind)),
        "question": read.take("question", str),
        "budget": read.take("budget", int),
        "used": read.take("used", int),
        "window": read.maybe("window", int),
        "reserve": read.take("reserve", int),
        "counter": read.take("counter", str),
        "exact": read.take("exact", bool),
        "fixed": read.counts("fixed"),
        "written": read.counts("written"),
        "sources": read.each("sources", _read_source),
        "decisions": read.each("decisions", _read_decision),
        "events": read.each("events", _read_event),
        "notes": read.texts("notes"),
        "pieces": read.each("pieces", _read_piece),
    }
    read.done()
    return fields


def check_parts(data: Mapping[str, object], report: Account) -> None:
    """Raise `ReportError` if `parts` do not match the figures of the data.

    Raises:
        ReportError: They differ.
    """
    if data["parts"] != _parts(report):
        raise ReportError(f"the parts written do not follow from the figures: {data['parts']}")


def _read_source(read: _Reader) -> SourceReport:
    return SourceReport(
        name=read.take("name", str),
        offered=read.take("offered", int),
        placed=read.take("placed", int),
        shortened=read.take("shortened", int),
        summarised=read.take("summarised", int),
        dropped=cast("dict[Reason, int]", read.counts("dropped")),
        quota=read.maybe("quota", int),
        lent=read.take("lent", int),
        borrowed=read.take("borrowed", int),
        used=read.take("used", int),
    )


def _read_decision(read: _Reader) -> Decision:
    return Decision(
        index=read.take("index", int),
        source=read.take("source", str),
        id=read.take("id", str),
        kind=read.word("kind", get_args(DecisionKind)),
        reason=read.word("reason", get_args(Reason)),
        tokens=read.take("tokens", int),
        kept_tokens=read.take("kept_tokens", int),
        score=read.number("score"),
        mmr_score=read.number("mmr_score"),
        nearest=read.maybe("nearest", str),
        similarity=read.number("similarity"),
        preview=read.take("preview", str),
    )


def _read_event(read: _Reader) -> Event:
    return Event(
        what=read.take("what", str),
        before=read.take("before", int),
        after=read.take("after", int),
        covered=read.take("covered", int),
        detail=read.take("detail", str),
    )


def _read_piece(read: _Reader) -> Piece:
    return Piece(
        label=read.take("label", str),
        digest=read.take("digest", str),
        characters=read.take("characters", int),
        tokens=read.take("tokens", int),
    )


class _Reader:
    """Read the fields of one mapping, each once, and report the place of an error."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise ReportError(f"{where} is {type(data).__name__}, not an object")
        self._left = dict(cast("dict[str, object]", data))
        self._where = where

    def take(self, name: str, kind: type[_T]) -> _T:
        value = self._pop(name)
        # A bool is an int to isinstance, and true is not a number of tokens.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._wrong(name, value, kind.__name__)
        return value

    def maybe(self, name: str, kind: type[_T]) -> _T | None:
        if self._left.get(name, name) is None:
            self._pop(name)
            return None
        return self.take(name, kind)

    def number(self, name: str) -> float | None:
        value = self._pop(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, value, "a number or null")

    def word(self, name: str, words: tuple[Any, ...]) -> Any:
        value = self.take(name, str)
        if value not in words:
            raise self._wrong(name, value, f"one of {', '.join(words)}")
        return value

    def counts(self, name: str) -> dict[str, int]:
        read = _Reader(self._pop(name), f"{self._where}.{name}")
        return {key: read.take(key, int) for key in list(read._left)}

    def texts(self, name: str) -> tuple[str, ...]:
        texts = cast("list[object]", self.take(name, list))
        for text in texts:
            if not isinstance(text, str):
                raise self._wrong(name, text, "a list of strings")
        return tuple(cast("list[str]", texts))

    def each(self, name: str, read_one: Callable[[_Reader], _T]) -> tuple[_T, ...]:
        items = cast("Sequence[object]", self.take(name, list))
        found: list[_T] = []
        for index, item in enumerate(items):
            read = _Reader(item, f"{self._where}.{name}[{index}]")
            found.append(read_one(read))
            read.done()
        return tuple(found)

    def done(self) -> None:
        if self._left:
            raise ReportError(
                f"{self._where} has unknown fields: {', '.join(map(repr, self._left))}"
            )

    def _pop(self, name: str) -> object:
        if name not in self._left:
            raise ReportError(f"{self._where} has no {name!r}")
        return self._left.pop(name)

    def _wrong(self, name: str, value: object, wanted: str) -> ReportError:
        return ReportError(f"{self._where}.{name} is {value!r:.60}, not {wanted}")
