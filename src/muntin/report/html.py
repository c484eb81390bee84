"""Write a report as a page: one self-contained file, or a fragment for a notebook.

The style is in `page.css`, the behaviour in `page.js`, the frame in `page.html`; `panes`, `entries`
and `compared` make its regions. Everything is readable without the script, which adds sorting,
searching, the slider and the theme. Nothing is fetched: the page's content policy forbids it.

Free text (previews, names, notes) reaches the page escaped, and the data block as JSON without a
single `<`, so a passage that holds `</script>` is shown, not run.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from muntin.report.columns import visible
from muntin.report.compared import comparison
from muntin.report.entries import KINDS, MARKS, decision_list, events, notes
from muntin.report.panes import NOUNS, escaped, head, view
from muntin.report.reasons import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muntin.report.account import Account
    from muntin.report.values import Decision

__all__ = ("to_fragment", "to_html")

_NOTEBOOK_ROWS = 500
"""Decisions a notebook cell carries; more belongs in a file, or the notebook grows by megabytes."""


def to_html(
    report: Account,
    path: str | Path | None = None,
    *,
    previous: Account | None = None,
    alternatives: Sequence[Account] = (),
    texts: bool = False,
) -> str:
    """Write a report as one self-contained page and return it; `AssemblyReport.to_html` is this."""
    body = "\n".join(_body(report, previous, alternatives, texts=texts))
    page = Template(_resource("page.html")).substitute(
        title=escaped(report.question or f"{report.kind} report"),
        style=_resource("page.css"),
        script=_resource("page.js"),
        body=body,
    )
    if path is not None:
        from muntin.runtime import write_file

        write_file(Path(path), page.encode())
    return page


def to_fragment(report: Account) -> str:
    """Write the part of the page a notebook shows; several in one notebook do not clash."""
    shown = report.decisions[:_NOTEBOOK_ROWS]
    body = [head(report, page=False), f'<div class="mtn-view">{view(report)}</div>']
    if report.decisions:
        body += [decision_list(report, shown), _data_block(report, shown, ())]
    body += [events(report), notes(report)]
    return (
        f"<style>{_resource('page.css')}</style>"
        f'<div class="muntin mtn-fragment">{"".join(body)}</div>'
        f"<script>{_resource('page.js')}</script>"
    )


def _body(
    report: Account, previous: Account | None, alternatives: Sequence[Account], *, texts: bool
) -> Iterator[str]:
    yield head(report, page=True)
    ladder = _ladder(report, alternatives)
    if len(ladder) > 1:
        yield _slider(ladder, ladder.index(report))
    yield f'<div class="mtn-view">{view(report)}</div>'
    if previous is not None:
        yield comparison(previous, report)
    if report.decisions:
        yield decision_list(report, report.decisions)
        budgets = ladder if len(ladder) > 1 else ()
        yield _data_block(report, report.decisions, budgets, texts=texts)
    yield events(report)
    yield notes(report)
    yield _foot(report)


def _ladder(report: Account, alternatives: Sequence[Account]) -> list[Account]:
    """Order the budgets of the slider, the report's own among them and each once."""
    by_budget = {other.budget: other for other in alternatives} | {report.budget: report}
    return [by_budget[budget] for budget in sorted(by_budget)]


def _slider(ladder: Sequence[Account], at: int) -> str:
    templates = "".join(
        f'<template data-budget="{other.budget:,} tokens">{view(other)}</template>'
        for other in ladder
    )
    now = f"{ladder[at].budget:,} tokens"
    return (
        f'<div class="mtn-whatif mtn-live"><label for="mtn-whatif">What if the budget were</label>'
        f'<input id="mtn-whatif" type="range" min="0" max="{len(ladder) - 1}" value="{at}" '
        f'aria-valuetext="{now}"><output for="mtn-whatif">{now}</output></div>{templates}'
    )


def _data_block(
    report: Account, shown: Sequence[Decision], ladder: Sequence[Account], *, texts: bool = False
) -> str:
    data = {
        "nouns": NOUNS[report.kind],
        "kinds": KINDS,
        "marks": MARKS,
        "reasons": REASONS,
        "rows": [
            [
                *(one.index, one.source, one.id, one.kind, one.reason, one.tokens),
                *(one.kept_tokens, one.score, one.mmr_score, one.nearest, one.similarity),
                one.preview,
            ]
            for one in shown
        ],
        "texts": [one.text or "" for one in shown] if texts else [],
        "alternatives": [_outcomes(other, shown) for other in ladder],
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    inert = visible(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" class="mtn-data">{inert}</script>'


def _outcomes(other: Account, shown: Sequence[Decision]) -> list[list[str | int] | None]:
    """Return the decisions for the same candidates under another budget, in the same order."""
    found = {(one.source, one.index): one for one in other.decisions}
    twins = (found.get((one.source, one.index)) for one in shown)
    return [twin and [twin.kind, twin.reason, twin.kept_tokens] for twin in twins]


def _foot(report: Account) -> str:
    exact = "the model's own count" if report.exact else "an estimate"
    return (
        f'<footer class="mtn-foot">Every figure is in tokens as counted by '
        f"{escaped(report.counter)}, {exact}. The parts of the window add up to "
        f"{report.whole:,}.</footer>"
    )


@cache
def _resource(name: str) -> str:
    return files("muntin.report").joinpath(name).read_text("utf-8")
