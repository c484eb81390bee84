"""`muntin count`: how many tokens files take, for one model or several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muntin.cli.failures import DOES_NOT_FIT, SOURCE_FAILED, Failure, NoConversation, Skipped
from muntin.cli.terminal.files import is_pipe, name_of, read_text
from muntin.cli.terminal.limits import window_of
from muntin.cli.terminal.options import FormName, Json, counter_of, option, tokens_option
from muntin.cli.terminal.output import emit_json, heard_warnings, note, progress, show_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muntin.cli.conversations.chat_file import Chat
    from muntin.counting import NamedCounter

__all__ = ("count",)

_PART = 8 << 20
"""Bytes counted at once; a larger file is counted in parts, so that memory stays flat."""


@dataclass(frozen=True, slots=True)
class _Counted:
    path: Path
    characters: int
    tokens: list[int]


def count(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", show_default=False, help="Files and folders; - or nothing is stdin."
        ),
    ] = None,
    *,
    model: Annotated[
        list[str] | None,
        option(
            "--model",
            "-m",
            takes="NAME",
            says="Count as this model does, e.g. gpt-4o; repeat it to compare models. "
            "Default: a calibrated estimate.",
        ),
    ] = None,
    chat: Annotated[
        bool,
        option(
            "--chat",
            says="FILEs are conversations: count messages as they are sent, "
            "with framing, tool calls and tool schemas, not the JSON around them.",
        ),
    ] = False,
    form: FormName = None,
    budget: Annotated[
        int | None,
        tokens_option("--budget", "-b", says="End with exit code 3 if the total is over this."),
    ] = None,
    json: Json = False,
) -> None:
    """Count the tokens of files, each and in total.

    An exact count needs the model's vocabulary, which only OpenAI's models have here; every other
    number is an estimate, and a note names it. Binary files are skipped with a note.

    Example: muntin count docs/ README.md --model gpt-4o --model claude-sonnet-4-5
    """  # fmt: skip
    counters = {name: counter_of(name) for name in dict.fromkeys(model or ())}
    counters = counters or {"estimate": counter_of(None)}
    with heard_warnings():
        if chat:
            counted = _count_chats(files or [Path("-")], list(counters.values()), form)
        else:
            counted = _count_texts(files or [Path("-")], list(counters.values()))
    totals = [sum(each) for each in zip(*(one.tokens for one in counted), strict=True)]
    if json:
        emit_json(_facts(counters, counted, totals))
    else:
        _show(counters, counted, totals)
    if budget is not None and max(totals) > budget:
        over = max(totals) - budget
        raise Failure(
            f"{max(totals):,} tokens are over the budget of {budget:,}: {over:,} have to go",
            code=DOES_NOT_FIT,
        )


def _count_chats(
    paths: Sequence[Path], counters: Sequence[NamedCounter], form: str | None
) -> list[_Counted]:
    from muntin.cli.conversations.opening import opened_chats
    from muntin.cli.conversations.selection import conversation_files, is_one_file

    files, missing = [(paths[0], True)], list[Path]()
    if not is_one_file(paths):
        chosen, missing = conversation_files(paths)
        files = [(one.path, one.was_named) for one in chosen]
    for path in missing:
        raise Failure(f"{path} is not there: check the name", code=SOURCE_FAILED)
    found: list[_Counted] = []
    with progress("counting", len(files)) as advance:
        for path, was_named in files:
            try:
                with opened_chats(path, form) as file:
                    for part in file.parts():
                        found += [_of_chat(chat, counters) for chat in part.chats]
            except NoConversation as error:
                if was_named:
                    raise
                note(f"skipped {error}")
            advance(1)
    if not found:
        raise Failure("no conversation to count: name files or folders that hold some")
    return found


def _of_chat(chat: Chat, counters: Sequence[NamedCounter]) -> _Counted:
    from muntin.counting import count_messages
    from muntin.messages import canonical_json, view

    each = [count_messages(chat.messages, chat.tools, counter=one) for one in counters]
    characters = len(canonical_json(chat.tools)) if chat.tools else 0
    for message in chat.messages:
        read = view(message)
        characters += len(read.text) + len(read.reasoning) + sum(map(len, read.server))
        characters += sum(len(one.name) + len(one.arguments) for one in read.calls)
        characters += sum(len(one.text) for one in read.results)
        characters += sum(len(text) for _, text in read.unknown)
    return _Counted(Path(chat.label), characters, each)


def _count_texts(paths: Sequence[Path], counters: Sequence[NamedCounter]) -> list[_Counted]:
    from muntin.cli.documents.find import find_documents

    piped = [path for path in paths if is_pipe(path)]
    documents, skipped = find_documents([path for path in paths if not is_pipe(path)])
    found = [_counted(path, [read_text(path)], counters) for path in piped]
    with progress("counting", sum(one.size for one in documents)) as advance:
        for document in documents:
            try:
                found.append(_counted(document.path, document.parts(_PART), counters))
            except Skipped as reason:
                skipped.append((document.path, str(reason)))
            advance(document.size)
    for path, reason in skipped:
        note(f"skipped {path}: {reason}")
    if not found:
        raise Failure("no text to count: name files or folders that hold some")
    return found


def _counted(path: Path, texts: Iterable[str], counters: Sequence[NamedCounter]) -> _Counted:
    characters = parts = 0
    each = [0] * len(counters)
    for text in texts:
        parts += 1
        characters += len(text)
        each = [sum_ + one(text) for sum_, one in zip(each, counters, strict=True)]
    if parts > 1:
        note(f"{path} was counted in {parts} parts: the sum may be off by a token for each")
    return _Counted(path, characters, each)


def _facts(
    counters: Mapping[str, NamedCounter], counted: Sequence[_Counted], totals: Sequence[int]
) -> dict[str, object]:
    names = list(counters)
    return {
        "counters": {
            name: {"counter": one.name, "exact": one.exact, "window": window_of(name)}
            for name, one in counters.items()
        },
        "files": [
            {
                "path": str(one.path),
                "characters": one.characters,
                "tokens": dict(zip(names, one.tokens, strict=True)),
            }
            for one in counted
        ],
        "total": {
            "characters": sum(one.characters for one in counted),
            "tokens": dict(zip(names, totals, strict=True)),
        },
    }


def _show(
    counters: Mapping[str, NamedCounter], counted: Sequence[_Counted], totals: Sequence[int]
) -> None:
    rows = [
        [*(f"{tokens:,}" for tokens in one.tokens), f"{one.characters:,}", name_of(one.path)]
        for one in counted
    ]
    if len(counted) > 1:
        characters = sum(one.characters for one in counted)
        rows.append([*(f"{tokens:,}" for tokens in totals), f"{characters:,}", "total"])
    show_table([*counters, "characters", "file"], rows, right=len(counters) + 1)
    for name, one in counters.items():
        kind = "exact" if one.exact else "an estimate"
        window = window_of(name) if name != "estimate" else None
        limit = f"; its window is {window:,}" if window else ""
        note(f"{name}: counted with {one.name}, {kind}{limit}")
