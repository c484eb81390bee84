"""Decides how the lists of the page read: decisions, events, notes.

The first rows of the decisions are in the markup, for readers without a script; `page.js`
replaces them by a window onto all of them. It does not shorten texts: previews are short already.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from muntin.report.panes import NOUNS, escaped, percent, words
from muntin.report.reasons import REASONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.report.account import Account
    from muntin.report.reasons import DecisionKind, Reason
    from muntin.report.values import Decision, Event

__all__ = ("KINDS", "MARKS", "decision_list", "events", "notes")

KINDS: tuple[DecisionKind, ...] = ("kept", "shortened", "summarised", "dropped")
"""The kinds in the order the page sorts them."""
MARKS: dict[DecisionKind, str] = {
    "kept": "●",
    "shortened": "◐",
    "summarised": "◇",
    "dropped": "○",
}
"""A symbol for each kind, so that none is shown by colour alone."""

_STATIC_ROWS = 100
_COLUMNS = {
    "item": "Item",
    "decision": "Decision",
    "tokens": "Tokens",
    "score": "Score",
    "mmr": "MMR",
    "similarity": "Resembles",
    "text": "Text",
}


def decision_list(report: Account, shown: Sequence[Decision]) -> str:
    """List what happened to each candidate or message, with search, filters and sorting.

    Args:
        report: The report.
        shown: Its decisions, or the first of them where not all can be carried.
    """
    nouns = NOUNS[report.kind][1]
    heads = "".join(
        f'<th role="columnheader" scope="col"><button type="button" class="mtn-sort" '
        f'data-key="{key}">{name}</button></th>'
        for key, name in _COLUMNS.items()
    )
    scored = any(one.score is not None or one.nearest is not None for one in shown)
    look = "mtn-decisions" if scored else "mtn-decisions mtn-unscored"
    rows = "".join(_row(one, place) for place, one in enumerate(shown[:_STATIC_ROWS]))
    return (
        f'<section><h2>Decisions</h2><p class="mtn-aside">{_counted(report, shown, nouns)}</p>'
        f'<div class="mtn-live">{_tools(nouns)}{_chips(shown)}</div>'
        f'<div class="mtn-scroll" tabindex="0" role="region" aria-label="Decisions, scrollable">'
        f'<table class="{look}" role="table" aria-rowcount="{len(shown) + 1}">'
        f'<caption class="mtn-hidden">What happened to each of the {nouns}, and why</caption>'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table>'
        f'<div class="mtn-none" hidden><p>None of the {nouns} matches.</p>'
        f'<p><button type="button" class="mtn-button">Clear search and filters</button></p></div>'
        f'</div>{_unseen(len(shown))}<dialog class="mtn-dialog" aria-label="One of the {nouns}">'
        f'<form method="dialog"><p class="mtn-dialog-head"></p><button class="mtn-button">Close'
        f'</button></form><pre class="mtn-dialog-text" dir="auto" tabindex="0"></pre></dialog>'
        f"</section>"
    )


def _counted(report: Account, shown: Sequence[Decision], nouns: str) -> str:
    if len(shown) < len(report.decisions):
        return (
            f"The first {len(shown):,} of {len(report.decisions):,} {nouns}; "
            f"<code>to_html(path)</code> writes them all."
        )
    return (
        f"Each of the {nouns} offered is here once, with the reason for its place. "
        f'<span class="mtn-live">Click one to read it.</span>'
    )


def _unseen(count: int) -> str:
    if count <= _STATIC_ROWS:
        return ""
    rest = f"{count - _STATIC_ROWS:,} more are listed when scripts are allowed."
    return f'<p class="mtn-aside mtn-unread">{rest}</p>'


def _tools(nouns: str) -> str:
    return (
        '<div class="mtn-tools"><label class="mtn-search">Search text, source or id'
        '<input type="search" autocomplete="off" spellcheck="false"></label>'
        f'<p class="mtn-count" role="status" aria-label="{nouns} shown"></p>'
        '<button type="button" class="mtn-button mtn-print">Print kept only</button></div>'
    )


def _chips(shown: Sequence[Decision]) -> str:
    kinds = Counter(one.kind for one in shown)
    reasons: Counter[Reason] = Counter(one.reason for one in shown)
    by_kind = [_chip("kind", kind, kinds[kind], MARKS[kind] + " ") for kind in KINDS if kinds[kind]]
    by_reason = [
        _chip("reason", reason, times, "", REASONS[reason])
        for reason, times in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    ]
    return (
        f'<div class="mtn-chips" role="group" aria-label="Filter by decision and reason">'
        f'{"".join(by_kind)}<span class="mtn-break"></span>{"".join(by_reason)}</div>'
    )


def _chip(field: str, value: str, times: int, mark: str, title: str = "") -> str:
    return (
        f'<button type="button" class="mtn-chip" aria-pressed="false" data-field="{field}" '
        f'data-value="{value}" title="{escaped(title)}">{mark}{words(value)}<b>{times:,}</b>'
        "</button>"
    )


def _row(one: Decision, place: int) -> str:
    tokens = f"{one.tokens:,}"
    if one.kind == "shortened":
        tokens = f"{one.kept_tokens:,} of {tokens}"
    twin = one.nearest or ""
    if one.nearest and one.similarity is not None:
        twin = f"{twin} {one.similarity:.3f}"
    cells = (
        ("mtn-item", escaped(one.label)),
        (
            "mtn-decision",
            f'<span class="mtn-mark" aria-hidden="true">{MARKS[one.kind]}</span>{one.kind}'
            f'<span class="mtn-why"> {words(one.reason)}</span>',
        ),
        ("", tokens),
        ("", "–" if one.score is None else f"{one.score:.3f}"),
        ("", "–" if one.mmr_score is None else f"{one.mmr_score:.3f}"),
        ("mtn-twin", escaped(twin)),
        ("mtn-text", escaped(one.preview)),
    )
    inner = "".join(
        f'<td role="cell" class="{name}"{_direction(name)}>{text}</td>' for name, text in cells
    )
    return f'<tr role="row" aria-rowindex="{place + 2}" data-kind="{one.kind}">{inner}</tr>'


def _direction(name: str) -> str:
    """Let free text have its own direction, so that it does not turn its neighbours around."""
    return ' dir="auto"' if name in ("mtn-item", "mtn-text", "mtn-twin") else ""


def events(report: Account) -> str:
    """Show what happened to the whole, in order, each with what it took off."""
    if not report.events:
        return ""
    scale = max(max(event.before, event.after) for event in report.events)
    items = "".join(_event(event, scale) for event in report.events)
    return f'<section><h2>What happened</h2><ol class="mtn-events">{items}</ol></section>'


def _event(event: Event, scale: int) -> str:
    covered = f", {event.covered:,} covered" if event.covered else ""
    detail = f"<small>{escaped(event.detail)}</small>" if event.detail else ""
    return (
        f"<li><strong>{escaped(event.what.capitalize())}</strong><div>"
        f"{event.before:,} → {event.after:,} tokens{covered}"
        f'<span class="mtn-fall" aria-hidden="true">'
        f'<i class="mtn-was" style="width:{percent(event.before, scale)}"></i>'
        f'<i class="mtn-now" style="width:{percent(event.after, scale)}"></i></span>'
        f"{detail}</div></li>"
    )


def notes(report: Account) -> str:
    """Show the sentences the report has for its reader."""
    if not report.notes:
        return ""
    items = "".join(f"<li>{escaped(note)}</li>" for note in report.notes)
    return f'<section><h2>Notes</h2><ul class="mtn-notes">{items}</ul></section>'
