"""Where reports go: into a file for `explain` and `diff`, and onto a page with budgets to try.

The budgets of a page are what was given, half of it, and twice that, as far as they are possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.cli.terminal.files import write_bytes
from muntin.cli.terminal.output import note
from muntin.errors import ContextError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from muntin.report import AssemblyReport

__all__ = ("write_page", "write_reports")


def write_reports(
    reports: Sequence[AssemblyReport], *, report: Path | None, html: Path | None
) -> None:
    """Write reports where the command line says: JSON, one a line if several, and a page of one.

    Raises:
        Failure: A file cannot be written.
    """
    if report is not None:
        indent = 2 if len(reports) == 1 else None
        lines = [f"{one.to_json(indent=indent)}\n" for one in reports]
        write_bytes(report, "".join(lines).encode())
        note(f"report written to {report}")
    if html is not None:
        write_page(html, reports[0])


def write_page(
    path: Path, report: AssemblyReport, *, previous: AssemblyReport | None = None
) -> None:
    """Write the page of a report, beside that of an earlier one if there is one.

    Raises:
        Failure: The file cannot be written.
    """
    page = report.to_html(previous=previous, what_if=list(_possible(report)))
    write_bytes(path, page.encode())
    note(f"page written to {path}")


def _possible(report: AssemblyReport) -> Iterator[int]:
    given = report.budget + (report.reserve if report.kind == "context" else 0)
    for budget in (given // 2, given * 2):
        try:
            report.what_if(max_tokens=budget)
        except ContextError:
            continue  # too small for what must be kept, or read from a file without its texts
        yield budget
