"""`muntin demo`: the main job on documentation this machine has."""

from __future__ import annotations

from typing import Annotated

import typer

from muntin.cli.failures import no_room
from muntin.cli.terminal.limits import limits_of
from muntin.cli.terminal.options import Html, Json, Model, Quiet, tokens_option
from muntin.cli.terminal.output import emit, emit_json, note, progress, show_report
from muntin.cli.terminal.report_files import write_page
from muntin.demo import QUESTION

__all__ = ("demo",)

_STEPS = 1000
_WINDOW = 2000
"""Window where no option and no model decides it."""


def demo(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to ask about Python.")
    ] = QUESTION,
    *,
    window: Annotated[
        int | None,
        tokens_option(
            "--window",
            "-w",
            says="The model's window. Default: that of --model where it is known, else 2000.",
        ),
    ] = None,
    model: Model = None,
    html: Html = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Watch a window being divided, without any file of your own.

    Asks a question of the documentation of the packages and the standard library on this machine,
    a small memory and a recorded tool result, and prints the assembled context and its report.

    Example: muntin demo "How do I parse dates?" --window 4k --html report.html
    """
    from muntin.demo import Passages, assemble
    from muntin.errors import ConfigurationError

    limits = limits_of(model, window=window, default=_WINDOW)
    whole = limits.window or _WINDOW
    done = 0

    with progress("reading documentation", _STEPS) as advance:

        def told(share: float) -> None:
            nonlocal done
            reached = int(share * _STEPS)
            advance(reached - done)
            done = reached

        passages = Passages(told)
    try:
        context = assemble(
            question, passages, whole, limits.counter, reserve_ratio=limits.reserve_ratio
        )
    except ConfigurationError:
        raise no_room(whole, 3) from None
    if html is not None:
        write_page(html, context.report)
    if json:
        emit_json({"text": context.text, "report": context.report.to_dict()})
        return
    emit(context.text)
    if not quiet:
        note(f"{len(passages):,} passages of documentation were searched")
        show_report(context.report, to_stderr=True)
