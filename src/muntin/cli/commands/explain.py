"""`muntin explain`: read a report back, as a table, as single decisions, or as a page."""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from muntin.cli.failures import Failure
from muntin.cli.terminal.files import name_of, read_text
from muntin.cli.terminal.options import Html, Json, Record, chosen, option
from muntin.cli.terminal.output import emit, emit_json, note, show_report, show_table
from muntin.cli.terminal.report_files import write_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muntin.report import AssemblyReport, Decision

__all__ = ("explain", "read_reports")


def explain(
    file: Annotated[
        Path, typer.Argument(metavar="REPORT", help="A report written with --report; - is stdin.")
    ],
    *,
    decisions: Annotated[
        Literal["all", "kept", "shortened", "summarised", "dropped"] | None,
        option(
            "--decisions",
            "-d",
            takes="KIND",
            says="List what happened to each passage or message, and why: all of them, or those "
            "kept, shortened, summarised or dropped.",
        ),
    ] = None,
    find: Annotated[
        str | None,
        option(
            "--find",
            takes="TEXT",
            says="List only decisions whose beginning, id or source holds TEXT.",
        ),
    ] = None,
    record: Record = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Show where every token went and why everything else stayed out.

    Reads what `assemble`, `trim` and `compact` write with --report.

    Example: muntin explain report.json --decisions dropped --find refund
    """  # fmt: skip
    from muntin.report import REASONS

    reports = read_reports(file, record=record)
    if html is not None:
        if len(reports) != 1:
            raise Failure(f"{file} holds {len(reports)} reports: pick one with --record")
        write_page(html, reports[0])
    listed = [list(_listed(report, decisions, find)) for report in reports]
    if json:
        found = [
            {"report": report.to_dict(), "listed": [one.label for one in shown]}
            for report, shown in zip(reports, listed, strict=True)
        ]
        emit_json({"reports": found, "reasons": dict(REASONS)})
        return
    for at, (report, shown) in enumerate(zip(reports, listed, strict=True)):
        if at:
            emit("")
        show_report(report)
        if decisions is not None or find is not None:
            emit("")
            _show(shown)


def read_reports(path: Path, *, record: int | None = None) -> list[AssemblyReport]:
    """Read one report, or several, one a line.

    Raises:
        Failure: The file cannot be read or holds no report, or no N-th one; a report is of
            another version or contradicts itself.
    """
    from muntin.errors import ReportError
    from muntin.report import AssemblyReport

    written = list(_documents(path))
    try:
        return [AssemblyReport.from_dict(one) for one in chosen(written, record, "report")]
    except ReportError as error:
        raise Failure(f"{name_of(path)}: {error}") from None


def _documents(path: Path) -> Iterable[Mapping[str, object]]:
    """Read the JSON: a report, what a command printed with --json, or one of them a line."""
    text = read_text(path)
    try:
        values: list[Any] = [jsons.loads(text)]
    except ValueError:
        try:
            values = [jsons.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            values = []
    if not values:
        raise Failure(_no_report(path))
    for value in values:
        yield from _reports_in(value, path)


def _no_report(path: Path) -> str:
    return f"{name_of(path)} is not a report: give a file written with --report"


def _reports_in(value: Any, path: Path) -> Iterable[Mapping[str, object]]:
    if not isinstance(value, Mapping):
        raise Failure(_no_report(path))
    known = cast("Mapping[str, Any]", value)
    inner = known.get("report") or known.get("reports") or known.get("conversations")
    if isinstance(inner, Mapping):
        yield cast("Mapping[str, object]", inner)
    elif isinstance(inner, list):
        for one in cast("list[Any]", inner):
            yield from _reports_in(one, path)
    elif "format" in known:
        yield known
    else:
        raise Failure(_no_report(path))


def _listed(report: AssemblyReport, kind: str | None, find: str | None) -> Iterable[Decision]:
    wanted = (find or "").casefold()
    for one in report.decisions:
        if kind not in (None, "all", one.kind):
            continue
        if wanted in f"{one.source}\n{one.id}\n{one.preview}".casefold():
            yield one


def _show(decisions: list[Decision]) -> None:
    if not decisions:
        note("no decision is of that kind")
        return
    rows = [
        [
            f"{one.tokens:,}",
            f"{one.kept_tokens:,}",
            "-" if one.score is None else f"{one.score:.3f}",
            one.kind,
            one.reason,
            f"{one.source}:{one.index}",
            one.id or "-",
            one.preview[:60],
        ]
        for one in decisions
    ]
    headings = ["tokens", "in", "score", "decision", "reason", "place", "id", "beginning"]
    show_table(headings, rows, right=3)
