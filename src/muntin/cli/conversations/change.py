"""Change every conversation of one file, and account for it.

This is what a worker process does with each of many files, so it prints nothing and asks nothing:
what went wrong is raised, what was done is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from muntin.cli.conversations.opening import opened_chats
from muntin.cli.failures import DOES_NOT_FIT, Failure
from muntin.cli.terminal.files import output_to
from muntin.counting import forget_shared_counts
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from pathlib import Path

    from muntin.cli.conversations.chat_file import Chat
    from muntin.cli.forms.message import FileMessage
    from muntin.report import AssemblyReport

__all__ = ("Change", "Changed", "FileDone", "change_file")

Changed: TypeAlias = "tuple[Sequence[FileMessage], AssemblyReport, str]"
"""Messages of a conversation as they should be, the report, and a note for the user or `""`."""
Change: TypeAlias = "Callable[[Chat], Changed]"
Account: TypeAlias = "Callable[[Chat, Sequence[FileMessage], AssemblyReport], None]"


@dataclass(slots=True, kw_only=True)
class FileDone:
    """Account for one file that was read and changed."""

    conversations: int = 0
    form: str = ""
    messages_before: int = 0
    messages_after: int = 0
    before: int = 0
    """Tokens that the requests took as they were given."""
    after: int = 0
    """Tokens that the requests take now."""
    notes: list[str] = field(default_factory=list[str])
    result: Any = None
    """What the file would hold, where it is not written."""


def change_file(
    path: Path,
    change: Change,
    *,
    target: Path | None,
    form: str | None = None,
    record: int | None = None,
    report: Account | None = None,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> FileDone:
    """Change the conversations of a file and write the result.

    Args:
        path: The file, or `-`.
        change: Returns the messages of a conversation as they should be, the account of it, and
            a note for the user or `""`.
        target: Where the result goes; None returns it.
        form: Name of the form; None finds it.
        record: Number of the only conversation that is meant; None means all.
        report: Called for every conversation; None is not called.
        advance: Called with the characters that are done.

    Raises:
        Failure: The file cannot be read or written, has no such conversation, or nothing of one
            fits.
        ContextWindowExceeded: What must be kept of a conversation is over the budget.
    """
    done = FileDone()
    results: list[Any] = []
    with opened_chats(path, form) as file, ExitStack() as stack:
        out = None if target is None else stack.enter_context(output_to(target))
        only = record if file.layout in ("lines", "records") else None
        listed = file.layout == "records" and only is None
        written: list[Any] = []
        is_same = True
        for part in file.parts():
            number = done.conversations
            done.conversations += len(part.chats)
            if only is not None and not number < only <= done.conversations:
                continue
            messages = [
                _changed(chat, change, report, done)
                if record is None or number + n + 1 == record
                else chat.messages
                for n, chat in enumerate(part.chats)
            ]
            if out is None:
                results.append(part.changed(messages))
            elif listed:
                is_same = is_same and part.is_same(messages)
                written.append(part.changed(messages))
            else:
                out.write(file.write(part, messages, not out.tell()))
            forget_shared_counts()  # the conversation does not come again, and there may be many
            advance(part.size)
        if record is not None and record > done.conversations:
            has = f"{done.conversations:,} conversation{'s' * (done.conversations != 1)}"
            raise Failure(f"there is no conversation {record}: the file holds {has}")
        done.form = file.form.name
        if out is not None and listed:
            out.write(file.records(written, is_same=is_same))
    is_list = listed or (file.layout == "lines" and only is None)
    done.result = results if is_list else results[0] if results else None
    return done


def _changed(
    chat: Chat,
    change: Change,
    report: Account | None,
    done: FileDone,
) -> Sequence[FileMessage]:
    try:
        messages, account, note = change(chat)
    except ContextWindowExceeded as error:
        error.args = (f"{chat.label}: {error}",)
        raise
    if chat.messages and not messages:
        raise Failure(
            f"{chat.label}: nothing of the conversation fits: raise the budget", code=DOES_NOT_FIT
        )
    if note:
        done.notes.append(f"{chat.label}: {note}")
    done.messages_before += len(chat.messages)
    done.messages_after += len(messages)
    fixed = sum(account.fixed.values())
    done.before += fixed + sum(one.tokens for one in account.decisions)
    done.after += account.used
    if report is not None:
        report(chat, messages, account)
    return messages
