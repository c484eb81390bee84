"""Decides how a report reads in a terminal: a sentence, a bar, a table, at most 100 cells wide.

The bar and its legend are ASCII, so that every console shows them; each part of the window has
a letter of its own. It does not list single decisions: that is what the page is for.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

from muntin.report.columns import cells, cut, figure, table, visible, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muntin.report.account import Account
    from muntin.report.values import Part, SourceReport

__all__ = ("terminal_width", "to_text")

_WIDTH = 100
"""Width of a report where nothing asks for another, in terminal cells."""
_NARROWEST = 40
_NAME_WIDTH = 26
"""Cells of the name of a source."""
_LEAST_NAME = 8
_ALWAYS = ("offered", "kept", "dropped", "used")
"""Columns that are shown whatever they hold."""
_MARKS = {"structure": "+", "idle": ".", "outside": "_", "reserve": "-"}


def terminal_width() -> int:
    """Return the cells of the terminal that the output goes to, at most 100; 100 without one."""
    if not sys.stdout.isatty():
        return _WIDTH
    return min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)


def to_text(report: Account, width: int = _WIDTH) -> str:
    """Write a report as lines for a terminal.

    Args:
        report: The report.
        width: Cells of the widest line; below 40 it is taken as 40.
    """
    width = max(width, _NARROWEST)
    return "\n".join(cut(visible(line), width) for line in _lines(report, width))


def _lines(report: Account, width: int) -> Iterator[str]:
    yield (
        f"{report.kind}: {report.used:,} of {report.budget:,} tokens used, {report.idle:,} idle, "
        f"counted with {report.counter} ({'exact' if report.exact else 'estimate'})"
    )
    if report.question:
        yield f"question: {report.question}"
    parts = report.parts
    letters = _letters(parts)
    yield f"[{_bar(report.whole, parts, letters, width - 4)}]"
    yield from wrap(
        (
            f"{letter} {part.name} {part.tokens:,}"
            for part, letter in zip(parts, letters, strict=True)
        ),
        width=width,
        indent="  ",
    )
    if report.sources:
        yield ""
        yield from _source_table(report, width)
    yield from _after(report, width)


def _bar(whole: int, parts: Sequence[Part], letters: Sequence[str], length: int) -> str:
    """Draw the window: borders are rounded, not widths, so that the bar is always full."""
    drawn = ""
    border = 0
    for part, letter in zip(parts, letters, strict=True):
        border += part.width
        drawn += letter * (round(border * length / max(1, whole)) - len(drawn))
    return drawn


def _letters(parts: Sequence[Part]) -> list[str]:
    """Give each part a letter of its name (capital for sources), else a digit, else `#`."""
    taken: set[str] = set()
    letters: list[str] = []
    for part in parts:
        name = part.name.upper() if part.group == "source" else part.name.lower()
        wanted = [c for c in name if c.isascii() and c.isalnum()] + list("123456789")
        mark = _MARKS.get(part.group) or next((c for c in wanted if c not in taken), "#")
        taken.add(mark)
        letters.append(mark)
    return letters


def _source_table(report: Account, width: int) -> list[str]:
    """Write the table of sources; on a narrow terminal without columns of zeros."""
    quotas = any(source.quota is not None for source in report.sources)
    summaries = any(source.summarised for source in report.sources)
    rows = [_heading(report, quotas=quotas, summaries=summaries)]
    rows += [_row(source, quotas=quotas, summaries=summaries) for source in report.sources]
    lines = table(rows, first_width=_NAME_WIDTH)
    if max(map(cells, lines)) <= width:
        return lines
    kept = [
        at
        for at, column in enumerate(zip(*rows, strict=True))
        if at == 0 or column[0] in _ALWAYS or any(cell not in ("0", "-") for cell in column[1:])
    ]
    rows = [[row[at] for at in kept] for row in rows]
    figures = max(map(cells, table([["", *row[1:]] for row in rows], first_width=1)))
    return table(rows, first_width=max(_LEAST_NAME, min(_NAME_WIDTH, width - figures)))


def _heading(report: Account, *, quotas: bool, summaries: bool) -> list[str]:
    return [
        "source" if report.kind == "context" else "role",
        "offered",
        "kept",
        "short",
        *(["summed"] if summaries else []),
        "dropped",
        "double",
        *(["quota", "lent", "borrowed"] if quotas else []),
        "used",
    ]


def _row(source: SourceReport, *, quotas: bool, summaries: bool) -> list[str]:
    counts = [source.offered, source.placed, source.shortened]
    counts += [source.summarised] if summaries else []
    counts += [source.dropped_total, source.duplicates]
    grants = [source.quota, source.lent, source.borrowed] if quotas else []
    return [source.name, *map(figure, [*counts, *grants, source.used])]


def _after(report: Account, width: int) -> Iterator[str]:
    for kind in ("shortened", "summarised", "dropped"):
        reasons = Counter(one.reason for one in report.decisions if one.kind == kind)
        if reasons:
            by_count = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
            pieces = [f"{reason} {times:,}" for reason, times in by_count]
            yield from wrap([f"{kind}:", *pieces], width=width)
    for event in report.events:
        change = f"{event.what}: {event.before:,} -> {event.after:,} tokens"
        covered = f", {event.covered:,} covered" if event.covered else ""
        yield f"{change}{covered}{'; ' + event.detail if event.detail else ''}"
    for note in report.notes:
        yield f"note: {note}"
