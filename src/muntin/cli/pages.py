"""How a report becomes a page with budgets to try: half of what was given, and twice that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.errors import ContextError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muntin.report import AssemblyReport

__all__ = ("page_of",)


def page_of(report: AssemblyReport, *, previous: AssemblyReport | None = None) -> str:
    """Write the page of a report, with those other budgets that can be tried."""
    return report.to_html(previous=previous, what_if=list(_possible(report)))


def _possible(report: AssemblyReport) -> Iterator[int]:
    given = report.budget + (report.reserve if report.kind == "context" else 0)
    for budget in (given // 2, given * 2):
        try:
            report.what_if(max_tokens=budget)
        except ContextError:
            continue  # too small for what must be kept, or read from a file without its texts
        yield budget
