"""`muntin diff`: what changed from one report to the next."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muntin.cli.commands.explain import read_reports
from muntin.cli.failures import DIFFERS, Failure
from muntin.cli.terminal.options import Html, Json, option
from muntin.cli.terminal.output import emit, emit_json
from muntin.cli.terminal.report_files import write_page

if TYPE_CHECKING:
    from muntin.report import AssemblyReport

__all__ = ("diff",)


def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The earlier report.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The later report.")],
    *,
    exit_code: Annotated[
        bool, option("--exit-code", says="End with exit code 1 if anything changed, for scripts.")
    ] = False,
    html: Html = None,
    json: Json = False,
) -> None:
    """Compare two reports: what came in, what went out, how far the prompt cache still holds.

    Example: muntin diff yesterday.json today.json
    """
    earlier, later = _one(before), _one(after)
    found = later.diff(earlier)
    if html is not None:
        write_page(html, later, previous=earlier)
    if json:
        emit_json({"unchanged": found.unchanged, **asdict(found)})
    else:
        emit(str(found))
    if exit_code and not found.unchanged:
        raise typer.Exit(DIFFERS)


def _one(path: Path) -> AssemblyReport:
    reports = read_reports(path)
    if len(reports) != 1:
        raise Failure(f"{path} holds {len(reports)} reports: diff compares files with one each")
    return reports[0]
