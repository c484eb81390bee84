"""`muntin compact`: fold the older part of a conversation into a recap, without a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from muntin.cli.terminal import heard_warnings, note, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.cli.chats import Chat
    from muntin.cli.dumps import Dumped
    from muntin.report import AssemblyReport
    from muntin.summarize import ExtractiveSummarizer

__all__ = ("compact",)


def compact(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A conversation: OpenAI, Anthropic, LangChain or LlamaIndex messages as JSON, a "
            "request body around them, or JSON lines; - is stdin.",
        ),
    ] = Path("-"),
    *,
    trigger: Annotated[
        int,
        typer.Option(
            "--trigger",
            "-t",
            parser=tokens,
            metavar="TOKENS",
            help="Fold only conversations with more tokens than this.",
        ),
    ] = 2000,
    keep: Annotated[
        int,
        typer.Option(
            "--keep", "-k", metavar="N", min=1, help="Newest messages that stay word for word."
        ),
    ] = 4,
    summary: Annotated[
        int,
        typer.Option(
            "--summary", "-s", parser=tokens, metavar="TOKENS", help="Tokens the recap may take."
        ),
    ] = 1000,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            "-q",
            metavar="TEXT",
            show_default=False,
            help="Prefer sentences that speak of this (@FILE reads it).",
        ),
    ] = None,
    record: Record = None,
    model: Model = None,
    output: Output = None,
    write: Write = False,
    report: Report = None,
    html: Html = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Fold the older part of a conversation into one recap, and keep the rest word for word.

    The recap is made of sentences of the conversation itself, those that carry most; no model is
    asked. Unlike `trim` it aims at no budget: it shortens what is over --trigger. The result has
    the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin compact chat.json --trigger 4k --keep 6 -o short.json
    """  # fmt: skip
    from muntin.cli.chats import read_chats
    from muntin.cli.conversation import check_target, hand_over
    from muntin.cli.recap import account_of
    from muntin.compaction import HistoryCompactor
    from muntin.summarize import ExtractiveSummarizer

    check_target(file, output, write=write, record=record)
    chat_file = read_chats(file)
    chats = chat_file.select(record)
    counter = counter_of(model)
    asked = None if question is None else text_of(question)
    folded: list[Sequence[Dumped]] = []
    reports: list[AssemblyReport] = []
    with heard_warnings(), progress("compacting", len(chats)) as advance:
        for chat in chats:
            # A role that may stand anywhere: Anthropic takes no second system message.
            compactor = HistoryCompactor(
                partial(_extract, ExtractiveSummarizer(counter=counter), asked),
                keep_recent=keep,
                trigger_tokens=trigger,
                max_summary_tokens=summary,
                token_counter=counter,
                recap_role="system" if _takes_system(chat) else "user",
            )
            done = compactor.fold(chat.messages)
            folded.append(done.messages)
            reports.append(account_of(chat, done, counter))
            if done.messages is chat.messages and not quiet:
                note(f"{chat.label}: left as it is ({done.outcome.reason.replace('_', ' ')})")
            advance(1)
    hand_over(
        chats, folded, reports, file=chat_file, target=file if write else output,
        report=report, html=html, quiet=quiet, json=json,
    )  # fmt: skip


def _takes_system(chat: Chat) -> bool:
    return chat.form in ("openai", "openai-responses") and chat.beside is None


def _extract(
    extract: ExtractiveSummarizer,
    question: str | None,
    text: str,
    instruction: str,
    *,
    max_tokens: int,
) -> str:
    """Summarise with the question in mind."""
    return extract(text, instruction, max_tokens=max_tokens, question=question)
