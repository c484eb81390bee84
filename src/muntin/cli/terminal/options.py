"""How an option is described, the options several commands share, and how their values are read.

A command takes an option by naming its type here, so that it is worded once.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from muntin.cli.failures import Failure
from muntin.cli.terminal.files import read_text
from muntin.cli.terminal.output import many

if TYPE_CHECKING:
    from muntin.counting import NamedCounter

__all__ = (
    "FormName",
    "Html",
    "Json",
    "Model",
    "OutDir",
    "Output",
    "Quiet",
    "Ray",
    "Record",
    "Report",
    "Resume",
    "Workers",
    "Write",
    "chosen",
    "counter_of",
    "option",
    "text_of",
    "tokens",
    "tokens_option",
)

T = TypeVar("T")

_UNITS = {"k": 1_000, "m": 1_000_000}


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
        raise typer.BadParameter(
            f"{text!r} is not a number of tokens: give a positive int such as 8000 or 8k"
        ) from None
    if whole <= 0 or whole != number:
        raise typer.BadParameter(
            f"{text!r} is not a number of tokens above 0: give a positive int such as 8000 or 8k"
        )
    return whole


def option(
    *names: str, says: str, takes: str | None = None, panel: str | None = None, **more: Any
) -> Any:
    """Describe an option: what it takes, what it does, and where the help lists it."""
    return typer.Option(*names, metavar=takes, help=says, rich_help_panel=panel, **more)


def tokens_option(*names: str, says: str) -> Any:
    """Describe an option that takes a number of tokens."""
    return option(*names, takes="TOKENS", says=says, parser=tokens)


_output = partial(option, panel="Output")

Json: TypeAlias = Annotated[
    bool,
    _output("--json", says="Print one JSON object for programs, instead of text."),
]
Quiet: TypeAlias = Annotated[bool, _output("--quiet", says="Do not print the report on stderr.")]
Output: TypeAlias = Annotated[
    Path | None,
    _output("--output", "-o", takes="FILE", says="Write the result to FILE instead of stdout."),
]
Write: TypeAlias = Annotated[
    bool,
    _output("--write", says="Replace FILE itself by the result, in one step."),
]
OutDir: TypeAlias = Annotated[
    Path | None,
    _output(
        "--out-dir",
        takes="FOLDER",
        says="Write the results of several files into FOLDER, under the names they have.",
    ),
]
_several = partial(option, panel="Several files")
Workers: TypeAlias = Annotated[
    int, _several("--workers", takes="N", min=1, says="Work in N processes.")
]
Ray: TypeAlias = Annotated[
    str | None,
    _several(
        "--ray",
        takes="ADDRESS",
        says="Work on a Ray cluster: auto, ray://HOST:10001, or local to start one here. Its "
        "nodes need muntin and the same paths.",
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    _several("--resume", says="Skip files that an earlier run into --out-dir has done."),
]
FormName: TypeAlias = Annotated[
    str | None,
    option(
        "--form",
        takes="NAME",
        says="Form of the conversations, a name that `muntin forms` lists. Default: found out.",
    ),
]
Report: TypeAlias = Annotated[
    Path | None,
    _output(
        "--report",
        takes="FILE",
        says="Write the report as JSON, for `muntin explain` and `muntin diff`.",
    ),
]
Html: TypeAlias = Annotated[
    Path | None,
    _output("--html", takes="FILE", says="Write the report as one self-contained page."),
]
Model: TypeAlias = Annotated[
    str | None,
    option(
        "--model",
        "-m",
        takes="NAME",
        says="Count as this model does, e.g. gpt-4o: exactly where its vocabulary can be had, by "
        "a calibrated estimate otherwise. Default: the estimate.",
    ),
]
Record: TypeAlias = Annotated[
    int | None,
    option(
        "--record",
        takes="N",
        min=1,
        says="Where FILE holds several conversations, take only the N-th. Default: all of them.",
    ),
]


def chosen(found: list[T], record: int | None, what: str) -> list[T]:
    """Return what `--record` asks for of what a file holds: one of it, or all.

    Raises:
        Failure: There is no such one.
    """
    if record is None:
        return found
    if record > len(found):
        raise Failure(f"there is no {what} {record}: the file holds {many(len(found), what)}")
    return [found[record - 1]]


def text_of(given: str) -> str:
    """Return a text, or what it points at: `@FILE`, or `-` for stdin."""
    if given == "-":
        return read_text(Path("-")).strip()
    return read_text(Path(given[1:])).strip() if given.startswith("@") else given


@lru_cache
def counter_of(model: str | None) -> NamedCounter:
    """Find the counter of a model, once, with a note where it is an estimate."""
    from muntin.cli.terminal.output import heard_warnings
    from muntin.counting import counter_for

    with heard_warnings():
        return counter_for(model)
