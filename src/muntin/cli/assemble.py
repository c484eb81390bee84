"""`muntin assemble`: one context out of documents, notes, a conversation and tool results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muntin.cli.failures import DOES_NOT_FIT, Failure
from muntin.cli.files import read_text, write_bytes, write_reports
from muntin.cli.options import (
    Html,
    Json,
    Model,
    Output,
    Quiet,
    Report,
    counter_of,
    text_of,
    tokens,
)
from muntin.cli.terminal import emit, emit_json, heard_warnings, show_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.candidates import Candidate

__all__ = ("assemble",)

_RATIOS = {"rag": 0.45, "history": 0.25, "memory": 0.15, "tool": 0.15}
"""What each source may take before the others leave something; documents are asked for most."""


def assemble(
    *,
    question: Annotated[
        str,
        typer.Option(
            "--question",
            "-q",
            metavar="TEXT",
            help="The question; @FILE reads it from a file, - from stdin.",
        ),
    ],
    docs: Annotated[
        list[Path] | None,
        typer.Option(
            "--docs",
            "-d",
            metavar="PATH",
            show_default=False,
            help="Folder or file to search by BM25: Markdown, text, source code, and PDF "
            "where pypdf is installed. May be repeated.",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            metavar="FILE",
            show_default=False,
            help="Conversation so far, in any form `muntin trim` reads.",
        ),
    ] = None,
    memory: Annotated[
        list[Path] | None,
        typer.Option(
            "--memory",
            metavar="FILE",
            show_default=False,
            help="Notes in Markdown; each item or paragraph is one. May be repeated.",
        ),
    ] = None,
    tool: Annotated[
        list[Path] | None,
        typer.Option(
            "--tool",
            metavar="FILE",
            show_default=False,
            help="Text of a tool result. May be repeated.",
        ),
    ] = None,
    system: Annotated[
        str, typer.Option("--system", metavar="TEXT", help="System prompt; @FILE reads it.")
    ] = "",
    window: Annotated[
        int,
        typer.Option(
            "--window",
            "-w",
            parser=tokens,
            metavar="TOKENS",
            help="Tokens the model reads and writes in one call: 8000 or 8k.",
        ),
    ] = 8000,
    reserve: Annotated[
        float,
        typer.Option(
            "--reserve",
            metavar="SHARE",
            min=0.0,
            max=0.95,
            help="Share of the window left free for the answer.",
        ),
    ] = 0.2,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", min=1, help="Passages of --docs to choose from."),
    ] = 50,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="PATTERN",
            show_default=False,
            help="Search only files of this name, e.g. '*.md'. May be repeated.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            show_default=False,
            help="Leave files of this name or path out. May be repeated.",
        ),
    ] = None,
    layout: Annotated[
        Literal["plain", "xml"], typer.Option("--layout", help="How sections are marked.")
    ] = "plain",
    model: Model = None,
    output: Output = None,
    report: Report = None,
    html: Html = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Assemble the text a model should read for a question, inside its window.

    Takes the best passages of your documents, notes, earlier conversation and tool results,
    without repeating any, and prints the context to stdout and where every token went to stderr.

    Example: muntin assemble -q "How are refunds made?" --docs handbook/ --history chat.json
    --window 8k --model gpt-4o --html report.html
    """  # fmt: skip
    from muntin.builder import ContextBuilder
    from muntin.cli.reading import facts_of, searched, tell_of
    from muntin.config import ContextConfig
    from muntin.errors import ConfigurationError
    from muntin.layout import Layout
    from muntin.sources import CallableSource

    asked = text_of(question)
    if not asked.strip():
        raise Failure("the question is empty: give --question a text")
    given: dict[str, list[Candidate]] = {}
    search = None
    with heard_warnings():
        if memory:
            given["memory"] = _notes(memory, asked)
        if docs:
            search = searched(docs, asked, include or (), exclude or ())
            given["rag"] = search.best(top)
        if history is not None:
            given["history"] = _said(history, asked)
        if tool:
            from muntin.cli.notes import from_texts

            given["tool"] = from_texts([(path, read_text(path)) for path in tool])
        if not given:
            raise Failure("nothing to assemble from: give --docs, --history, --memory or --tool")
        config = ContextConfig(
            max_tokens=window,
            output_reserve_ratio=float(reserve),
            source_ratios={name: _RATIOS[name] for name in given},
            min_chunk_tokens=0,  # what does not fit is shortened, so no quota is too small
            shorten=True,
        )
        dress = Layout.xml() if layout == "xml" else Layout()
        dress = replace(dress, ordering="document")  # a conversation reads from old to new
        counter = counter_of(model)
        try:
            builder = ContextBuilder(config, token_counter=counter, layout=dress)
        except ConfigurationError:
            raise Failure(
                f"a window of {window} tokens has no room for {len(given)} sources: raise --window",
                code=DOES_NOT_FIT,
            ) from None
        context = builder.assemble(
            asked,
            sources=[CallableSource(name, _handing(found)) for name, found in given.items()],
            system_prompt=text_of(system),
        )
    tell_of(search, len(given.get("rag", ())))
    if output is not None:
        write_bytes(output, f"{context.text}\n".encode("utf-8", "replace"))
    write_reports([context.report], report=report, html=html)
    if json:
        emit_json({"text": context.text, "report": context.report.to_dict(), **facts_of(search)})
        return
    if output is None:
        emit(context.text)
    if not quiet:
        show_report(context.report, to_stderr=True)


def _handing(found: list[Candidate]) -> Callable[[str], list[Candidate]]:
    """Make a source of what was found already."""
    return lambda _query: found


def _notes(paths: Sequence[Path], question: str) -> list[Candidate]:
    from muntin.cli.notes import from_notes

    return from_notes("\n\n".join(read_text(path) for path in paths), question)


def _said(path: Path, question: str) -> list[Candidate]:
    from muntin.cli.chats import read_chats
    from muntin.cli.notes import from_messages

    chats = read_chats(path).chats
    if len(chats) > 1:
        raise Failure(f"{path} holds {len(chats)} conversations: --history takes a file with one")
    return from_messages(chats[0].messages, question)
