"""`muntin forms`: the forms of conversations, or the form of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muntin.cli.conversations.opening import opened_chats
from muntin.cli.conversations.selection import conversation_files, is_one_file
from muntin.cli.failures import Failure, NoConversation
from muntin.cli.forms.registry import FORMS
from muntin.cli.terminal.options import Json
from muntin.cli.terminal.output import emit_json, note, show_table

__all__ = ("forms",)


def forms(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", show_default=False, help="Files and folders to find the form of."
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List the forms in which conversations are read and written, or find the form of files.

    The name of a form is what --form takes.

    Example: muntin forms exports/
    """
    if not files:
        rows = [[form.name, form.title] for form in FORMS]
        if json:
            emit_json({"forms": [{"name": name, "title": title} for name, title in rows]})
        else:
            show_table(["form", "what it is"], rows, right=0)
        return
    found: list[dict[str, object]] = []
    problem: Failure | None = None
    for path, was_named in _chosen(files):
        fact: dict[str, object] = {"path": str(path)}
        try:
            with opened_chats(path) as file:
                chats = [chat for part in file.parts() for chat in part.chats]
            messages = sum(len(chat.messages) for chat in chats)
            fact |= {"form": file.form.name, "conversations": len(chats), "messages": messages}
        except Failure as error:
            fact["error"] = str(error)
            if was_named or not isinstance(error, NoConversation):
                problem = problem or error
        found.append(fact)
    if json:
        emit_json({"files": found})
    else:
        rows = [
            [
                f"{one['conversations']:,}",
                f"{one['messages']:,}",
                str(one["form"]),
                str(one["path"]),
            ]
            for one in found
            if "error" not in one
        ]
        show_table(["conversations", "messages", "form", "file"], rows, right=2)
        for one in found:
            if "error" in one:
                note(str(one["error"]))
    if problem is not None:
        raise typer.Exit(problem.code)


def _chosen(files: list[Path]) -> list[tuple[Path, bool]]:
    if is_one_file(files):
        return [(files[0], True)]
    chosen, missing = conversation_files(files)
    return [*((one.path, one.was_named) for one in chosen), *((path, True) for path in missing)]
