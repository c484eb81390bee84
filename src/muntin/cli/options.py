"""The options several commands share, worded once, and how a number of tokens is read."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muntin.cli.files import read_text

if TYPE_CHECKING:
    from muntin.counters import NamedCounter

__all__ = (
    "Html",
    "Json",
    "Model",
    "Output",
    "Quiet",
    "Record",
    "Report",
    "Write",
    "counter_of",
    "text_of",
    "tokens",
)

_UNITS = {"k": 1_000, "m": 1_000_000}

Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object for programs, instead of text.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", help="Do not print the report on stderr.")
]
Model: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="Count as this model does, e.g. gpt-4o: exactly where its vocabulary can be had, by "
        "a calibrated estimate otherwise. Default: the estimate.",
        show_default=False,
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the result to FILE instead of stdout.",
        show_default=False,
    ),
]  # fmt: skip
Write: TypeAlias = Annotated[
    bool, typer.Option("--write", help="Replace FILE itself by the result, in one step.")
]
Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write the report as JSON, for `muntin explain` and `muntin diff`.",
        show_default=False,
    ),
]
Html: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write the report as one self-contained page.",
        show_default=False,
    ),
]  # fmt: skip
Record: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--record",
        metavar="N",
        min=1,
        help="Where FILE holds several conversations, take only the N-th. Default: all of them.",
        show_default=False,
    ),
]


def tokens(text: str | int) -> int:
    """Read a number of tokens: 8000, 8_000, 8k, 1.5k, 1m. A default comes as a number."""
    if isinstance(text, int):
        return text
    given = text.strip().lower().replace("_", "").replace(",", "")
    unit = _UNITS.get(given[-1:], 1)
    try:
        number = Decimal(given[:-1] if unit > 1 else given) * unit
        whole = int(number)
    except (InvalidOperation, OverflowError, ValueError):
        raise typer.BadParameter(f"{text!r} is no number of tokens: try 8000 or 8k") from None
    if whole <= 0 or whole != number:
        raise typer.BadParameter(f"{text!r} is no number of tokens above 0: try 8000 or 8k")
    return whole


def text_of(given: str) -> str:
    """Return a text, or what it points at: `@FILE`, or `-` for stdin."""
    if given == "-":
        return read_text(Path("-")).strip()
    return read_text(Path(given[1:])).strip() if given.startswith("@") else given


def counter_of(model: str | None) -> NamedCounter:
    """Find the counter of a model; a note says where it is an estimate."""
    from muntin.cli.terminal import heard_warnings
    from muntin.counters import counter_for

    with heard_warnings():
        return counter_for(model)
