"""Decides how two reports are shown side by side on the page.

Both windows are drawn on one scale, so that a longer bar is a larger window; beneath them what a
prompt cache can reuse, what each part gained or lost, and what went out and came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.report.diff import diff_reports
from muntin.report.panes import bar, escaped, percent, signed, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.report.account import Account
    from muntin.report.diff import Change, PartChange, ReportDiff

__all__ = ("comparison",)

_MOST_ROWS = 300
"""Rows of a list of changes; the rest is counted, not listed."""


def comparison(previous: Account, report: Account) -> str:
    """Show what changed from the previous report to this one."""
    diff = diff_reports(previous, report)
    scale = max(previous.whole, report.whole)
    figures = "".join(
        f"<figure><figcaption>{name} <b>{one.used:,} used</b></figcaption>"
        f"{bar(one, scale, small=True)}</figure>"
        for name, one in (("Before", previous), ("Now", report))
    )
    return (
        f'<section class="mtn-diff"><h2>Compared with the previous one</h2>'
        f'<p class="mtn-aside">{_cache(diff, report)}</p>'
        f'<div class="mtn-compare">{figures}</div>{_parts(diff.parts)}'
        f'<div class="mtn-columns">{_moved("Went out", diff.went_out)}'
        f"{_moved('Came in', diff.came_in)}"
        f"{_moved('Changed its size', diff.resized) if diff.resized else ''}</div></section>"
    )


def _cache(diff: ReportDiff, report: Account) -> str:
    if not report.pieces:
        return "The pieces of the text were not recorded, so the shared prefix is unknown."
    if diff.first_changed is None:
        return f"The text is the same: all {report.used:,} tokens can come from a prompt cache."
    share = percent(diff.stable_prefix_tokens, report.used)
    return (
        f"The first {diff.stable_prefix_tokens:,} tokens ({float(share[:-1]):.1f} %) are unchanged "
        f"and can come from a prompt cache. The first change is in "
        f"{escaped(diff.first_changed)}, at character {diff.first_changed_character:,}."
    )


def _parts(parts: Sequence[PartChange]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escaped(part.name)}</th>'
        f"<td>{signed(part.before)}</td>"
        f"<td>{signed(part.after)}</td>"
        f"<td>{_signed(part.after - part.before)}</td></tr>"
        for part in parts
        if part.before != part.after
    )
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Part", "Before", "Now", "Change"))
    return f'<table class="mtn-parts"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _signed(tokens: int) -> str:
    if not tokens:
        return '<span class="mtn-zero">0</span>'
    look = "mtn-up" if tokens > 0 else "mtn-down"
    sign = "+" if tokens > 0 else "−"
    return f'<span class="{look}">{sign}{abs(tokens):,}</span>'


def _moved(title: str, changes: Sequence[Change]) -> str:
    items = "".join(_moved_row(change) for change in changes[:_MOST_ROWS])
    rest = len(changes) - _MOST_ROWS
    more = f'<p class="mtn-aside">and {rest:,} more</p>' if rest > 0 else ""
    listed = f'<ul class="mtn-moved" tabindex="0" aria-label="{title}">{items}</ul>'
    return f"<div><h3>{title} ({len(changes):,})</h3>{listed if items else ''}{more}</div>"


def _moved_row(change: Change) -> str:
    one = change.one
    why = "not offered" if change.after is None else f"{one.kind}, {words(one.reason)}"
    return (
        f"<li>{_signed(change.tokens)}<span>{escaped(one.label)}</span>"
        f"<small>{why}. {escaped(one.preview)}</small></li>"
    )
