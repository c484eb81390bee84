"""What `trim` and `compact` have in common: their options, and the way of a file through them.

Such a command changes one conversation. A `Job` does the rest: it reads one file or
many, writes the results, and reports on them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muntin.cli.conversations.change import change_file
from muntin.cli.conversations.many import change_many
from muntin.cli.conversations.selection import conversation_files, is_one_file
from muntin.cli.failures import Failure
from muntin.cli.terminal.files import is_pipe
from muntin.cli.terminal.options import (
    FormName,
    Html,
    Json,
    Model,
    OutDir,
    Output,
    Quiet,
    Ray,
    Record,
    Report,
    Resume,
    Workers,
    Write,
    text_of,
)
from muntin.cli.terminal.output import (
    emit_json,
    heard_warnings,
    many,
    note,
    progress,
    show_report,
)
from muntin.cli.terminal.report_files import ReportFile, write_page

if TYPE_CHECKING:
    from muntin.cli.conversations.change import Change
    from muntin.cli.conversations.chat_file import Chat
    from muntin.cli.forms.message import FileMessage
    from muntin.report import AssemblyReport

__all__ = ("Job", "on_conversations")

_SHOWN = 3
"""Reports shown in full; of more conversations only the sum is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Hold the options for files of conversations; each field is an option."""

    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Conversations in any form that `muntin forms` lists: files, folders or patterns; "
            "- or nothing is stdin.",
            show_default=False,
        ),
    ] = None
    record: Record = None
    form: FormName = None
    model: Model = None
    output: Output = None
    out_dir: OutDir = None
    write: Write = False
    workers: Workers = 1
    ray: Ray = None
    resume: Resume = False
    report: Report = None
    html: Html = None
    quiet: Quiet = False
    json: Json = False

    @property
    def paths(self) -> list[Path]:
        """The files, folders and patterns; stdin where none is given."""
        return list(self.files or [Path("-")])

    def question_of(self, given: str | None) -> str | None:
        """Read the question an option gives; see `text_of`.

        Raises:
            Failure: The question and the conversation are both to come from stdin.
        """
        self.check_stdin("--question", given)
        return None if given is None else text_of(given)

    def check_stdin(self, name: str, given: object) -> None:
        """Refuse an option that would read stdin when the conversation does: it can be read once.

        Raises:
            Failure: Both are `-`.
        """
        if str(given) == "-" and any(map(is_pipe, self.paths)):
            raise Failure(f"only one of FILE and {name} can be stdin")

    def run(self, doing: str, change: Change) -> None:
        """Change every conversation that is meant, write the results, and report.

        Args:
            doing: What is going on, for the progress bar.
            change: Returns the messages of a conversation as they should be, the account of it,
                and a note or `""`. It must pickle, for worker processes.

        Raises:
            Failure: Options contradict each other, or a file cannot be read or written.
        """
        self._check_options()
        if is_one_file(self.paths) and self.out_dir is None:
            if self.ray is not None:
                raise Failure("--ray is for several files: give --out-dir, or leave it out")
            self._run_one(self.paths[0], doing, change)
            return
        for name, given in (("--output", self.output), ("--html", self.html),
                            ("--record", self.record)):  # fmt: skip
            if given is not None:
                raise Failure(f"{name} is for one file: give --out-dir for several, or one FILE")
        if self.out_dir is None and not self.write:
            what = next(
                (f"{one} is a folder" for one in self.paths if one.is_dir()), "several files"
            )
            raise Failure(f"{what}: give --out-dir for the results, or --write")
        files, missing = conversation_files(self.paths)
        change_many(
            files,
            missing,
            change,
            doing=doing,
            out_dir=self.out_dir,
            form=self.form,
            workers=self.workers,
            ray=self.ray,
            resume=self.resume,
            report=self.report,
            quiet=self.quiet,
            json=self.json,
        )

    def _check_options(self) -> None:
        """Refuse options that contradict each other, before any work is done."""
        if self.ray is not None and self.workers != 1:
            raise Failure("--ray decides where to work: leave --workers out")
        if self.resume and self.out_dir is None:
            raise Failure("--resume continues a run into --out-dir: give the folder of that run")
        if not self.write:
            return
        for name, given in (("--output", self.output), ("--out-dir", self.out_dir)):
            if given is not None:
                raise Failure(
                    f"--write replaces FILE itself and {name} names another: give one of them "
                    f"(--output, --out-dir or --write)"
                )
        if any(map(is_pipe, self.paths)):
            raise Failure(
                "--write needs a file and this is stdin: give --output, or redirect stdout"
            )
        if self.record is not None:
            raise Failure("--write would leave only one record in the file: give --output instead")

    def _run_one(self, path: Path, doing: str, change: Change) -> None:
        target = path if self.write else self.output
        shown: list[tuple[str, str, int, AssemblyReport]] = []
        facts: list[dict[str, Any]] = []
        size = 1 if is_pipe(path) or not path.is_file() else path.stat().st_size
        reports = ReportFile(self.report)

        def account(chat: Chat, messages: Sequence[FileMessage], report: AssemblyReport) -> None:
            if len(shown) <= _SHOWN:
                shown.append((chat.label, chat.form, len(chat.messages), report))
            if self.html is not None and len(shown) > 1:
                raise Failure("--html shows one conversation and the file has several: pick one "
                              "with --record")  # fmt: skip
            reports.add(report)
            if self.json:
                facts.append(_facts(chat, messages, report))

        with reports, heard_warnings(), progress(doing, size) as advance:
            done = change_file(
                path,
                change,
                target=None if self.json and target is None else target or Path("-"),
                form=self.form,
                record=self.record,
                report=account,
                advance=advance,
            )
        if self.html is not None:
            write_page(self.html, shown[0][-1])
        if self.json:
            told: dict[str, Any] = {"output": None if target is None else str(target)}
            if target is None:
                told["result"] = done.result
            emit_json({**told, "conversations": facts})
        elif not self.quiet:
            for one in done.notes:
                note(one)
            _show(shown, done.before, done.after, 1 if self.record else done.conversations)


def on_conversations(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes a `Job` take the fields of it as options, besides its own.

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


def _show(
    shown: Sequence[tuple[str, str, int, AssemblyReport]],
    before: int,
    after: int,
    conversations: int,
) -> None:
    if len(shown) > _SHOWN:
        note(f"{conversations:,} conversations: {before:,} -> {after:,} tokens")
        return
    for label, form, messages, report in shown:
        note(f"{label}: {form}, {many(messages, 'message')}")
        show_report(report, to_stderr=True)


def _facts(chat: Chat, messages: Sequence[FileMessage], report: AssemblyReport) -> dict[str, Any]:
    return {
        "label": chat.label,
        "form": chat.form,
        "messages_before": len(chat.messages),
        "messages_after": len(messages),
        "report": report.to_dict(),
    }
