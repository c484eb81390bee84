"""Where reports go: into a file for `explain` and `diff`, and onto a page with budgets to try.

The budgets of a page are what was given, half of it, and twice that, as far as they are possible.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from muntin.cli.terminal.files import output_to, write_bytes
from muntin.cli.terminal.output import note
from muntin.errors import ContextError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO

    from muntin.report import AssemblyReport

__all__ = ("ReportFile", "write_page", "write_reports")


class ReportFile:
    """Write reports as JSON as they are made: one indented, several one a line.

    Args:
        path: The file; None writes nothing.
        always_lines: Whether one report is written on a line, too.
    """

    def __init__(self, path: Path | None, *, always_lines: bool = False) -> None:
        self._path = path
        self._lines = always_lines
        self._first: AssemblyReport | None = None
        self._stack = ExitStack()
        self._out: BinaryIO | None = None

    def __enter__(self) -> ReportFile:
        if self._path is not None:
            self._out = self._stack.enter_context(output_to(self._path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._out is not None and kind is None and self._first is not None:
            self._out.write(f"{self._first.to_json(indent=2)}\n".encode())
        self._stack.__exit__(kind, error, trace)
        if self._path is not None and kind is None:
            note(f"report written to {self._path}")

    def add(self, report: AssemblyReport) -> None:
        """Write one report."""
        if self._out is None:
            return
        if not self._lines and self._first is None:
            self._first = report
            return
        if self._first is not None:
            first, self._first, self._lines = self._first, None, True
            self.add_lines([first.to_json(indent=None)])
        self.add_lines([report.to_json(indent=None)])

    def add_lines(self, lines: Iterable[str]) -> None:
        """Write reports that are JSON text on one line each."""
        if self._out is not None:
            self._out.writelines(f"{line}\n".encode() for line in lines)


def write_reports(
    reports: Sequence[AssemblyReport], *, report: Path | None, html: Path | None
) -> None:
    """Write reports to the files that the options name: JSON, and a page of one report.

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
    """Write the page of a report, compared with an earlier one if there is one.

    Raises:
        Failure: The file cannot be written.
    """
    page = report.to_html(previous=previous, what_if=list(_possible(report)), texts=True)
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
