"""`muntin schema`: the JSON schema of what `--json` and `--report` write."""

from __future__ import annotations

from typing import Annotated

import typer

from muntin.cli.failures import Failure
from muntin.cli.terminal.output import emit_json
from muntin.cli.terminal.schemas import SCHEMAS, schema_of

__all__ = ("schema",)


def schema(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help=f"One of: {', '.join(SCHEMAS)}."),
    ] = "report",
) -> None:
    """Print the JSON schema of a command's --json, or of a report.

    Example: muntin schema trim > trim.schema.json
    """
    if name not in SCHEMAS:
        raise Failure(f"there is no schema {name!r}: there are {', '.join(SCHEMAS)}")
    emit_json(schema_of(name))
