"""`muntin assemble`: one context out of documents, notes, a conversation and tool results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from muntin.cli.failures import Failure, no_room
from muntin.cli.terminal.files import read_text, write_bytes
from muntin.cli.terminal.limits import Reserve, limits_of
from muntin.cli.terminal.options import (
    Html,
    Json,
    Model,
    Output,
    Quiet,
    Report,
    option,
    text_of,
    tokens_option,
)
from muntin.cli.terminal.output import emit, emit_json, heard_warnings, show_report
from muntin.cli.terminal.report_files import write_reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.passages import Candidate

__all__ = ("assemble",)

_source = partial(option, panel="Sources")
_WINDOW = 8000
"""Window where no option and no model decides it."""
_TEXTS = (".txt", ".md", ".markdown", ".rst")
"""Ends of names of files that hold a text and not a conversation."""
_RATIOS = {"rag": 0.45, "history": 0.25, "memory": 0.15, "tool": 0.15}
"""What each source may take before the others leave something; documents are asked for most."""


def assemble(
    *,
    question: Annotated[
        str,
        option(
            "--question",
            "-q",
            takes="TEXT",
            says="The question; @FILE reads it from a file, - from stdin.",
        ),
    ],
    docs: Annotated[
        list[Path] | None,
        _source(
            "--docs",
            "-d",
            takes="PATH",
            says="Folder or file to search by BM25: Markdown, text, source code, notebooks, and "
            "with the extra `documents` HTML, Word and PDF files. May be repeated.",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        _source(
            "--history", takes="FILE", says="Conversation so far, in any form `muntin trim` reads."
        ),
    ] = None,
    memory: Annotated[
        list[Path] | None,
        _source(
            "--memory",
            takes="FILE",
            says="Notes in Markdown; each item or paragraph is one. May be repeated.",
        ),
    ] = None,
    tool: Annotated[
        list[Path] | None,
        _source("--tool", takes="FILE", says="Text of a tool result. May be repeated."),
    ] = None,
    given: Annotated[
        list[Path] | None,
        _source(
            "--given",
            takes="FILE",
            says="What the model has already: a conversation as for --history, or a text (.txt, "
            ".md). Passages in it are left out. May be repeated.",
        ),
    ] = None,
    top: Annotated[
        int,
        _source("--top", takes="N", min=1, says="Passages of --docs to choose from."),
    ] = 50,
    include: Annotated[
        list[str] | None,
        _source(
            "--include",
            takes="PATTERN",
            says="Search only files of this name, e.g. '*.md'. May be repeated.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        _source(
            "--exclude",
            takes="PATTERN",
            says="Leave files of this name or path out. May be repeated.",
        ),
    ] = None,
    system: Annotated[
        str, option("--system", takes="TEXT", says="System prompt; @FILE reads it.")
    ] = "",
    window: Annotated[
        int | None,
        tokens_option(
            "--window",
            "-w",
            says="Tokens the model reads and writes in one call: 8000 or 8k. Default: the window "
            "of --model where it is known, else 8000.",
        ),
    ] = None,
    reserved: Reserve = None,
    layout: Annotated[
        Literal["plain", "xml"], option("--layout", says="How sections are marked.")
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
    from muntin.cli.documents.reading import facts_of, searched, tell_of
    from muntin.config import ContextConfig
    from muntin.errors import ConfigurationError
    from muntin.passages import ContextBuilder, GivenSource, Layout

    asked = text_of(question)
    if not asked.strip():
        raise Failure("the question is empty: give --question a text")
    limits = limits_of(model, window=window, reserved=reserved, default=_WINDOW)
    whole = limits.window or _WINDOW
    offered: dict[str, list[Candidate]] = {}
    search = None
    with heard_warnings():
        if memory:
            offered["memory"] = _notes(memory, asked)
        if docs:
            search = searched(docs, asked, include or (), exclude or ())
            offered["rag"] = search.best(top)
        if history is not None:
            offered["history"] = _said(history, asked)
        if tool:
            from muntin.cli.documents.notes import from_texts

            offered["tool"] = from_texts([(path, read_text(path)) for path in tool])
        had = _had(given or ())
        if not offered:
            raise Failure("nothing to assemble from: give --docs, --history, --memory or --tool")
        config = ContextConfig(
            max_tokens=whole,
            output_reserve_ratio=limits.reserve_ratio,
            source_ratios={name: _RATIOS[name] for name in offered},
            min_chunk_tokens=0,  # what does not fit is shortened, so no quota is too small
            shorten=True,
        )
        chosen = Layout.xml() if layout == "xml" else Layout()
        chosen = replace(chosen, ordering="document")  # a conversation reads from old to new
        try:
            builder = ContextBuilder(config, counter=limits.counter, layout=chosen)
        except ConfigurationError:
            raise no_room(whole, len(offered)) from None
        context = builder.assemble(
            asked,
            sources=[GivenSource(name, found) for name, found in offered.items()],
            system_prompt=text_of(system),
            given=had,
        )
    tell_of(search, len(offered.get("rag", ())))
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


def _had(paths: Sequence[Path]) -> list[object]:
    """Read what the model has already: texts and messages."""
    from muntin.cli.conversations.opening import read_chat

    had: list[object] = []
    for path in paths:
        if path.suffix.lower() in _TEXTS:
            had.append(read_text(path))
        else:
            had.extend(read_chat(path).messages)
    return had


def _notes(paths: Sequence[Path], question: str) -> list[Candidate]:
    from muntin.cli.documents.notes import from_notes

    return from_notes("\n\n".join(read_text(path) for path in paths), question)


def _said(path: Path, question: str) -> list[Candidate]:
    from muntin.cli.conversations.opening import read_chat
    from muntin.cli.documents.notes import from_messages

    return from_messages(read_chat(path).messages, question)
