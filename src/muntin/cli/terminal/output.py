"""Write results to stdout, and notes, tables and progress to stderr.

A terminal gets colours, tables and progress; a pipe gets plain text, so that a script reads
the same in every place. `NO_COLOR` and `TERM=dumb` are honoured by rich.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muntin.report import cells, pad, to_text, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from muntin.report import AssemblyReport

__all__ = (
    "emit",
    "emit_json",
    "heard_warnings",
    "many",
    "note",
    "progress",
    "safe",
    "show_report",
    "show_table",
)

_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan")
_DIM = ".-_+"
_STYLES = {"dropped:": "red", "shortened:": "yellow", "summarised:": "magenta", "note:": "dim"}


_UNSAFE = {
    code: f"\\u{code:04x}"
    for code in (
        *(n for n in range(0x20) if n not in (0x09, 0x0A, 0x0D)),
        *range(0x7F, 0xA0),
        0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),
    )
}  # fmt: skip


def safe(text: str) -> str:
    """Show control characters and bidirectional controls as escapes, which JSON reads as well.

    A terminal would obey them: a file could rewrite what its reader sees.
    """
    return text.translate(_UNSAFE)


def emit(text: str) -> None:
    """Write a result to stdout as UTF-8 with a line end; made safe for a terminal."""
    if sys.stdout.isatty():
        text = safe(text)
    data = (text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def emit_json(value: Any) -> None:
    """Write a result to stdout as JSON."""
    emit(json.dumps(value, ensure_ascii=False, indent=2))


def note(text: str) -> None:
    """Write a note to stderr, on one line."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text(safe(visible(f"muntin: {text}")), style="dim")
    )


def many(number: int, what: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


@contextmanager
def heard_warnings() -> Generator[None]:
    """Turn warnings of the library (an estimate in use, an unknown block) into notes."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in heard):
        note(text)


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Show a bar on a terminal while work goes on; yields what is called with each advance."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _advance: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=max(total, 1))
        yield lambda advance: bar.advance(task, advance)


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: int,
    to_stderr: bool = False,
) -> None:
    """Show rows, the first `right` columns flushed right: as a table, or plainly in a pipe."""
    console = Console(highlight=False, stderr=to_stderr)
    clean = [[safe(visible(cell)) for cell in row] for row in rows]
    if not console.is_terminal:
        text = "\n".join(_plain([list(headings), *clean], right))
        if to_stderr:
            sys.stderr.write(f"{text}\n")
        else:
            emit(text)
        return
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if at < right else "left", overflow="fold")
    for row in clean:
        shown.add_row(*(Text(cell) for cell in row))
    console.print(shown)


def _plain(rows: Sequence[Sequence[str]], right: int) -> list[str]:
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            pad(cell, width, right=at < right)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def show_report(report: AssemblyReport, *, to_stderr: bool = False) -> None:
    """Show the table of a report: in colours on a terminal, as `str(report)` elsewhere."""
    console = Console(stderr=to_stderr, highlight=False, soft_wrap=True)
    # A narrow terminal would wrap the bar; a wide one keeps the width that reports have elsewhere.
    text = safe(to_text(report, min(console.width, 100)) if console.is_terminal else str(report))
    if console.is_terminal:
        console.print(_coloured(text))
    elif to_stderr:
        sys.stderr.write(f"{text}\n")
    else:
        emit(text)


def _coloured(table: str) -> Text:
    """Colour the bar by its letters and the lines by their first word."""
    shown = Text()
    for at, line in enumerate(table.splitlines()):
        if at == 0:
            shown.append(line, style="bold")
        elif line.startswith("[") and line.endswith("]"):
            shown.append_text(_bar(line))
        else:
            shown.append(line, style=_STYLES.get(line.split(" ", 1)[0], ""))
        shown.append("\n")
    shown.rstrip()
    return shown


def _bar(line: str) -> Text:
    letters = [letter for letter in dict.fromkeys(line[1:-1]) if letter not in _DIM]
    styles = {letter: _COLOURS[at % len(_COLOURS)] for at, letter in enumerate(letters)}
    bar = Text("[")
    for letter in line[1:-1]:
        bar.append(letter, style=f"bold {styles[letter]}" if letter in styles else "dim")
    return bar.append("]")
