"""Decides what the figures of one context are, and refuses figures that contradict each other.

A report is not a log written along the way: the builder and `fit_messages` make it of the very
values they worked with. Three laws are checked when it is made, so that no reader has to:

* every candidate (message) offered is in exactly one of kept, shortened, summarised, dropped, with
  a reason from a closed set, and each source's figures are the sums of its decisions;
* what was used stays within the budget;
* the parts of the window add up to the window: fixed + sources + written + structure = used,
  used + idle = budget, budget + reserve + outside = window.

`structure` is what joining costs: headings, item marks, blank lines. It is the final recount less
the parts counted alone, and may be negative, because tokens merge across a border.

It holds figures only; `AssemblyReport` adds the methods that show and convert them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muntin.errors import ReportError
from muntin.report.reasons import REASONS_OF
from muntin.report.values import Decision, Event, Part, Piece, SourceReport
from muntin.runtime import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from muntin.report.reasons import DecisionKind, PartGroup, ReportKind

__all__ = ("Account",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The figures of one context, checked against each other; `AssemblyReport` is made of them.

    Raises:
        ReportError: The figures contradict each other, with the two that do.
    """

    kind: ReportKind
    """Whether sources were assembled or a conversation was fitted."""
    budget: int
    """Tokens the result may take, fixed parts included."""
    used: int
    """Tokens of the result by the final recount of the joined whole; at most `budget`."""
    counter: str
    """Name of the counter every figure was counted with."""
    exact: bool
    """Whether that counter is the model's own; False for an estimate."""
    window: int | None = None
    """Tokens of the model's context window; None when unknown (then budget + reserve counts)."""
    reserve: int = 0
    """Tokens withheld for the answer, outside the budget."""
    fixed: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """Tokens of the parts that are not negotiable: system, question, tools, framing ..."""
    written: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """Tokens the library itself wrote in: recap, digest, state, marks for what is left out ..."""
    sources: tuple[SourceReport, ...] = ()
    """The account of each source (role), in layout order."""
    decisions: tuple[Decision, ...] = ()
    """What happened to each candidate (message) offered, one for each."""
    events: tuple[Event, ...] = ()
    """What happened to the whole, oldest first."""
    notes: tuple[str, ...] = ()
    """Sentences for the reader: skipped sources, unusable embeddings, an estimate in use ..."""
    pieces: tuple[Piece, ...] = ()
    """The result in order, for comparison with another report; empty when not recorded."""
    question: str = ""
    """The question on one line, as a title; "" when there is none. See `preview_of`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", dict(self.fixed))
        object.__setattr__(self, "written", dict(self.written))
        _check_all(self)

    @property
    def idle(self) -> int:
        """Tokens of the budget that are not used."""
        return self.budget - self.used

    @property
    def structure(self) -> int:
        """Tokens joining costs (negative: saves): the recount less the parts counted alone."""
        alone = sum(self.fixed.values()) + sum(self.written.values())
        return self.used - alone - sum(source.used for source in self.sources)

    @property
    def whole(self) -> int:
        """Tokens of the whole bar: the window, or budget plus reserve if it is unknown."""
        return self.budget + self.reserve if self.window is None else self.window

    @property
    def outside(self) -> int:
        """Tokens of the window that neither the budget nor the reserve covers."""
        return self.whole - self.budget - self.reserve

    @property
    def parts(self) -> tuple[Part, ...]:
        """The window cut into its parts, in order; tokens and widths both sum to `whole`.

        ```python
        from muntin.report import AssemblyReport

        report = AssemblyReport(
            kind="context", budget=80, reserve=20, used=39, counter="o200k_base", exact=True,
            fixed={"system": 30, "question": 10},
        )
        for part in report.parts:
            print(part.name, part.tokens, part.width)
            #> system 30 29
            #> question 10 10
            #> structure -1 0
            #> idle 41 41
            #> reserve 20 20
        ```
        """
        return tuple(_parts(self))

    def count(self, kind: DecisionKind) -> int:
        """Count the decisions of one kind."""
        return sum(1 for decision in self.decisions if decision.kind == kind)


def _parts(report: Account) -> Iterator[Part]:
    used: list[tuple[str, PartGroup, int]] = [
        *((name, "fixed", tokens) for name, tokens in report.fixed.items()),
        *((source.name, "source", source.used) for source in report.sources),
        *((name, "written", tokens) for name, tokens in report.written.items()),
    ]
    saved = max(0, -report.structure)
    widths = _scaled([tokens for _, _, tokens in used], saved)
    for (name, group, tokens), width in zip(used, widths, strict=True):
        yield Part(name=name, group=group, tokens=tokens, width=width)
    rest: tuple[tuple[str, PartGroup, int], ...] = (
        ("structure", "structure", report.structure),
        ("idle", "idle", report.idle),
        ("outside", "outside", report.outside),
        ("reserve", "reserve", report.reserve),
    )
    for name, group, tokens in rest:
        if tokens:
            yield Part(name=name, group=group, tokens=tokens, width=max(0, tokens))


def _scaled(tokens: list[int], saved: int) -> list[int]:
    """Take `saved` tokens off the sizes, in proportion to them."""
    taken = split(saved, dict(enumerate(tokens)))
    return [size - taken[at] for at, size in enumerate(tokens)]


def _check_all(report: Account) -> None:
    """Raise `ReportError` if figures of a report contradict each other."""
    if report.kind not in ("context", "conversation"):
        raise ReportError(f"kind is {report.kind!r}: it is 'context' or 'conversation'")
    _check_window(report)
    names = [source.name for source in report.sources]
    if len(set(names)) != len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise ReportError(f"these sources have two accounts: {', '.join(twice)}")
    _check_decisions(report.decisions, set(names))
    _check_conservation(report)


def _check_window(report: Account) -> None:
    figures = {"budget": report.budget, "used": report.used, "reserve": report.reserve}
    figures |= {f"fixed part {name!r}": tokens for name, tokens in report.fixed.items()}
    figures |= {f"written part {name!r}": tokens for name, tokens in report.written.items()}
    for name, tokens in figures.items():
        if tokens < 0:
            raise ReportError(f"{name} is {tokens} tokens: a part cannot be negative")
    if report.used > report.budget:
        raise ReportError(f"used {report.used} tokens of a budget of {report.budget}")
    if report.outside < 0:
        raise ReportError(
            f"budget {report.budget} and reserve {report.reserve} do not fit a window of "
            f"{report.window} tokens"
        )


def _check_decisions(decisions: tuple[Decision, ...], names: set[str]) -> None:
    seen: set[tuple[str, int]] = set()
    for one in decisions:
        where = (one.source, one.index)
        if one.reason not in REASONS_OF.get(one.kind, ()):
            raise ReportError(f"{one.label} is {one.kind!r} because {one.reason!r}: not a pair")
        if where in seen:
            raise ReportError(f"{one.source}:{one.index} is decided twice")
        if one.source not in names:
            raise ReportError(f"{one.label} belongs to {one.source!r}, which has no account")
        seen.add(where)
        least = one.tokens if one.kind == "kept" else 0
        most = one.tokens if one.kind in ("kept", "shortened") else 0
        if one.tokens < 0 or not least <= one.kept_tokens <= most:
            raise ReportError(
                f"{one.label} is {one.kind} with {one.kept_tokens} of {one.tokens} tokens"
            )
        for figure in (one.score, one.mmr_score, one.similarity):
            if figure is not None and not math.isfinite(figure):
                raise ReportError(f"{one.label} has a score of {figure}: say None when unknown")


def _check_conservation(report: Account) -> None:
    decided: dict[str, Counter[str]] = {source.name: Counter() for source in report.sources}
    for one in report.decisions:
        decided[one.source][one.reason if one.kind == "dropped" else one.kind] += 1
    for source in report.sources:
        figures = (source.quota or 0, source.lent, source.borrowed, source.used)
        if min(figures) < 0:
            raise ReportError(f"source {source.name!r} has a negative figure: {figures}")
        stated = Counter[str](source.dropped)
        stated += Counter(
            kept=source.placed, shortened=source.shortened, summarised=source.summarised
        )
        if stated != decided[source.name] or stated.total() != source.offered:
            raise ReportError(
                f"source {source.name!r} offered {source.offered}; its account says "
                f"{dict(stated)}, its decisions say {dict(decided[source.name])}"
            )
