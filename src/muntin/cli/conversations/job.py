"""What `trim` and `compact` have in common: their options, and the way of a file through them.

Such a command says how one conversation is changed; the file it stands in, which of them are meant,
where the result goes and what is said about it are told to a `Job`, which does the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muntin.cli.failures import Failure
from muntin.cli.terminal.files import is_pipe, write_bytes
from muntin.cli.terminal.options import (
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
)
from muntin.cli.terminal.output import emit_json, heard_warnings, many, note, progress, show_report
from muntin.cli.terminal.report_files import write_reports

if TYPE_CHECKING:
    from muntin.cli.conversations.chats import Chat, ChatFile
    from muntin.cli.forms.dumps import Dumped
    from muntin.counting import NamedCounter
    from muntin.report import AssemblyReport

    Changed = tuple[Sequence[Dumped], AssemblyReport]

__all__ = ("Job", "on_conversations")

_SHOWN = 3
"""Reports shown in full; of more conversations only the sum is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Hold what is said on the command line about a file of conversations, and do it.

    Each field is an option, and its help says what it means.
    """

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A conversation: OpenAI, Anthropic, LangChain or LlamaIndex messages as JSON, a "
            "request body around them, or JSON lines; - or nothing is stdin.",
            show_default=False,
        ),
    ] = Path("-")
    record: Record = None
    model: Model = None
    output: Output = None
    write: Write = False
    report: Report = None
    html: Html = None
    quiet: Quiet = False
    json: Json = False

    def question_of(self, given: str | None) -> str | None:
        """Read the question an option gives; see `text_of`.

        Raises:
            Failure: It is to come from stdin, and the conversation is, too.
        """
        self.check_stdin("--question", given)
        return None if given is None else text_of(given)

    def check_stdin(self, name: str, given: object) -> None:
        """Refuse an option that would read stdin when the conversation does: it can be read once.

        Raises:
            Failure: Both are `-`.
        """
        if str(given) == "-" and is_pipe(self.file):
            raise Failure(f"only one of FILE and {name} can be stdin")

    def run(self, doing: str, change: Callable[[Chat, NamedCounter], Changed]) -> None:
        """Change every conversation that is meant, write the result, and tell about it.

        Args:
            doing: What is going on, for the progress bar.
            change: Returns the messages of a conversation as they should be, and the account of it.

        Raises:
            Failure: Options contradict each other, or a file cannot be read or written.
        """
        from muntin.cli.conversations.chats import read_chats

        self._check_target()
        file = read_chats(self.file)
        chats = file.select(self.record)
        if self.html is not None and len(chats) != 1:
            raise Failure(
                f"--html shows one conversation and there are {len(chats)}: pick one with --record"
            )
        counter = counter_of(self.model)
        changed: list[Sequence[Dumped]] = []
        reports: list[AssemblyReport] = []
        with heard_warnings(), progress(doing, len(chats)) as advance:
            for chat in chats:
                messages, report = change(chat, counter)
                changed.append(messages)
                reports.append(report)
                advance(1)
        self._write(file, chats, changed, reports)
        if not self.quiet and not self.json:
            _tell(chats, reports)

    def _check_target(self) -> None:
        """Refuse targets that contradict each other, before any work is done."""
        if not self.write:
            return
        if self.output is not None:
            raise Failure(
                "--write replaces FILE itself and --output names another: give one of them"
            )
        if is_pipe(self.file):
            raise Failure(
                "--write needs a file and this is stdin: give --output, or redirect stdout"
            )
        if self.record is not None:
            raise Failure("--write would leave only one record in the file: give --output instead")

    def _write(
        self,
        file: ChatFile,
        chats: Sequence[Chat],
        changed: Sequence[Sequence[Dumped]],
        reports: Sequence[AssemblyReport],
    ) -> None:
        target = self.file if self.write else self.output
        if self.json:
            emit_json(_facts(file, chats, changed, reports, target))
        if target is not None or not self.json:
            write_bytes(target or Path("-"), file.write(chats, changed))
        write_reports(reports, report=self.report, html=self.html)


def on_conversations(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes a `Job` first take the fields of it as options, beside its own.

    typer reads options off a signature, so this makes one of both.
    """
    ours = inspect.signature(Job, eval_str=True).parameters
    _job, *its_own = inspect.signature(command, eval_str=True).parameters.values()
    argument, *shared = ours.values()
    told = [argument, *its_own, *shared]

    @wraps(command)
    def with_job(**given: Any) -> None:
        job = Job(**{name: given.pop(name) for name in ours})
        command(job, **given)

    with_job.__signature__ = inspect.Signature(told)  # pyright: ignore[reportAttributeAccessIssue] - what `inspect.signature` looks for
    with_job.__annotations__ = {one.name: one.annotation for one in told}
    return with_job


def _tell(chats: Sequence[Chat], reports: Sequence[AssemblyReport]) -> None:
    if len(reports) > _SHOWN:
        before = sum(one.tokens for each in reports for one in each.decisions)
        after = sum(each.used for each in reports)
        note(f"{len(reports)} conversations: {before:,} -> {after:,} tokens")
        return
    for chat, one in zip(chats, reports, strict=True):
        note(f"{chat.label}: {chat.form}, {many(len(chat.messages), 'message')}")
        show_report(one, to_stderr=True)


def _facts(
    file: ChatFile,
    chats: Sequence[Chat],
    changed: Sequence[Sequence[Dumped]],
    reports: Sequence[AssemblyReport],
    target: Path | None,
) -> dict[str, Any]:
    """Make the object that `--json` prints: the result only where no file takes it."""
    told: dict[str, Any] = {"output": None if target is None else str(target)}
    if target is None:
        told["result"] = file.value(chats, changed)
    told["conversations"] = [
        {
            "label": chat.label,
            "form": chat.form,
            "messages_before": len(chat.messages),
            "messages_after": len(messages),
            "report": one.to_dict(),
        }
        for chat, messages, one in zip(chats, changed, reports, strict=True)
    ]
    return told
