"""`muntin trim`: fit the conversations of a file into a token budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muntin.cli.failures import Failure
from muntin.cli.options import (
    Html,
    Json,
    Model,
    Output,
    Quiet,
    Record,
    Report,
    Write,
    counter_of,
    text_of,
    tokens,
)
from muntin.cli.terminal import heard_warnings, progress

if TYPE_CHECKING:
    from muntin.cli.dumps import Dumped
    from muntin.report import AssemblyReport

__all__ = ("trim",)


def trim(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A conversation: OpenAI, Anthropic, LangChain or LlamaIndex messages as JSON, a "
            "request body around them, or JSON lines; - is stdin.",
        ),
    ] = Path("-"),
    *,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            "-b",
            parser=tokens,
            metavar="TOKENS",
            show_default=False,
            help="Tokens the request may take, framing and tool schemas included: 8000 or 8k.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            "-w",
            parser=tokens,
            metavar="TOKENS",
            show_default=False,
            help="Instead of a budget: the model's window, of which room for the answer is left.",
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            "-q",
            metavar="TEXT",
            show_default=False,
            help="Bring older messages that speak of this back word for word (@FILE reads it).",
        ),
    ] = None,
    keep: Annotated[
        int,
        typer.Option(
            "--keep",
            "-k",
            metavar="N",
            min=0,
            help="Keep the newest N messages as they are, whatever else has to go.",
        ),
    ] = 0,
    tools: Annotated[
        Path | None,
        typer.Option(
            "--tools",
            metavar="FILE",
            show_default=False,
            help="JSON list of the tool schemas sent along; they count. Default: `tools` in FILE.",
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="First mend tool calls without results, and the reverse."),
    ] = False,
    record: Record = None,
    model: Model = None,
    output: Output = None,
    write: Write = False,
    report: Report = None,
    html: Html = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Fit a conversation into a token budget, losing the least.

    System messages, the newest question and the tool round in flight stay as they are, results
    stay with their calls, and a note keeps the facts of what had to go. No model is asked. The
    result has the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin trim chat.json --budget 8k --question "Which order was late?" -o small.json
    """  # fmt: skip
    from muntin.cli.chats import read_chats, read_tools
    from muntin.cli.conversation import check_target, hand_over
    from muntin.cli.files import is_pipe
    from muntin.errors import ContextWindowExceeded
    from muntin.fit import fit_messages

    if budget is None and window is None:
        raise Failure("how far to trim? give --budget (say 8k), or --window")
    if budget is not None and window is not None and budget > window:
        raise Failure(f"the budget of {budget} is over the window of {window}: give one of them")
    check_target(file, output, write=write, record=record)
    chat_file = read_chats(file)
    chats = chat_file.select(record)
    counter = counter_of(model)
    schemas = None if tools is None else read_tools(tools)
    asked = None if question is None else text_of(question)
    if asked is not None and question == "-" and is_pipe(file):
        raise Failure("only one of FILE and --question can be stdin")
    fitted: list[list[Dumped]] = []
    reports: list[AssemblyReport] = []
    with heard_warnings(), progress("trimming", len(chats)) as advance:
        for chat in chats:
            try:
                done = fit_messages(
                    chat.pinned(keep),
                    budget=budget,
                    window=window,
                    tools=chat.tools if schemas is None else schemas,
                    question=asked,
                    counter=counter,
                    repair=repair,
                )
            except ContextWindowExceeded as error:
                error.args = (f"{chat.label}: {error}",)
                raise
            fitted.append(done.messages)
            reports.append(done.report)
            advance(1)
    hand_over(
        chats, fitted, reports, file=chat_file, target=file if write else output,
        report=report, html=html, quiet=quiet, json=json,
    )  # fmt: skip
