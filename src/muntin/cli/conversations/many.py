"""Change the conversations of many files, in worker processes, and sum up.

A file that fails does not stop the others. What is done is written to a run file in the folder of
results, so that a run that was interrupted can go on where it stopped.
"""

from __future__ import annotations

import hashlib
import json as jsons
import pickle
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, chdir, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from muntin.cli.conversations.change import FileDone, change_file
from muntin.cli.failures import ALL_FAILED, SOME_FAILED, Failure, NoConversation, code_of
from muntin.cli.terminal.output import emit_json, many, note, progress, show_table
from muntin.cli.terminal.report_files import ReportFile
from muntin.errors import ContextError
from muntin.scaling import map_records, map_records_on_ray

if TYPE_CHECKING:
    from muntin.cli.conversations.change import Change
    from muntin.cli.conversations.selection import ChosenFile
    from muntin.report import AssemblyReport

__all__ = ("change_many",)

_RUN = ".muntin-run.jsonl"
"""File in the folder of results that names the files that are done."""
_NAMED = 10
"""Failures that are listed; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    """Change one file. It is sent to worker processes, so it holds plain values."""

    change: Change
    out_dir: Path | None
    form: str | None
    with_reports: bool
    folder: Path | None = None
    """Folder that paths are relative to, where it is not the current one."""

    def __call__(self, file: ChosenFile) -> tuple[FileDone, list[str]]:
        with nullcontext() if self.folder is None else chdir(self.folder):
            return self._done(file)

    def _done(self, file: ChosenFile) -> tuple[FileDone, list[str]]:
        reports: list[str] = []

        def account(_chat: object, _messages: object, report: AssemblyReport) -> None:
            if self.with_reports:
                reports.append(report.to_json(indent=None))

        target = file.path if self.out_dir is None else self.out_dir / file.inside
        target.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            done = change_file(
                file.path, self.change, target=target, form=self.form, report=account
            )
        done.notes += dict.fromkeys(str(one.message) for one in heard)
        return done, reports


@dataclass(slots=True, kw_only=True)
class _Sum:
    """Add up what was done."""

    files: int = 0
    conversations: int = 0
    before: int = 0
    after: int = 0
    by_form: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def add(self, done: FileDone) -> None:
        self.files += 1
        self.conversations += done.conversations
        self.before += done.before
        self.after += done.after
        row = self.by_form.setdefault(done.form, [0, 0, 0, 0])
        for n, more in enumerate((1, done.conversations, done.before, done.after)):
            row[n] += more


def change_many(
    files: Sequence[ChosenFile],
    missing: Sequence[Path],
    change: Change,
    *,
    doing: str,
    out_dir: Path | None,
    form: str | None,
    workers: int,
    ray: str | None,
    resume: bool,
    report: Path | None,
    quiet: bool,
    json: bool,
) -> None:
    """Change many files and print one table.

    Args:
        files: The files.
        missing: Paths that were named and are not there; each counts as failed.
        change: Changes one conversation; must pickle.
        doing: What is going on, for the progress bar.
        out_dir: Folder of the results; None replaces each file by its result.
        form: Name of the form of every file; None finds it for each.
        workers: Processes to work in.
        ray: Address of a Ray cluster to work on instead; None works in processes here.
        resume: Whether to skip files that an earlier run into `out_dir` has done.
        report: File for the reports, one a line.
        quiet: Whether to print no table.
        json: Whether to print a JSON object instead of the table.

    Raises:
        Failure: There are no files, or some of them failed (with the exit code for it).
    """
    if not files and not missing:
        raise Failure("no file of conversations was found: name files, or a folder that has some")
    failed: list[tuple[Path, str, int]] = [
        (path, "is not there: check the name", 4) for path in missing
    ]
    run = _Run(out_dir, resume=resume, settings=_digest(change, form))
    todo = [one for one in files if not run.has(one)]
    total, skipped, facts = _Sum(), list[tuple[Path, str]](), list[dict[str, Any]]()
    notes: Counter[str] = Counter()
    worker = _Worker(
        change=change,
        out_dir=out_dir,
        form=form,
        with_reports=report is not None,
        folder=None if ray is None else Path.cwd(),
    )
    work = partial(map_records, workers=workers)
    if ray is not None:
        work = partial(map_records_on_ray, address=ray)
    with ExitStack() as stack:
        reports = stack.enter_context(ReportFile(report, always_lines=True))
        stack.enter_context(run)
        advance = stack.enter_context(progress(doing, len(todo)))
        for outcome in work(worker, todo, on_progress=lambda _done: advance(1)):
            file = todo[outcome.index]
            fact: dict[str, Any] = {"path": str(file.path)}
            if outcome.value is not None:
                done, lines = outcome.value
                total.add(done)
                notes.update(done.notes)
                reports.add_lines(lines)
                run.add(file)
                fact |= _fact(done, file.path if out_dir is None else out_dir / file.inside)
            elif isinstance(outcome.error, NoConversation) and not file.was_named:
                skipped.append((file.path, str(outcome.error)))
                fact["skipped"] = str(outcome.error)
            else:
                code, text = _told(outcome.error)
                failed.append((file.path, text, code))
                fact |= {"error": text, "exit_code": code}
            if json:
                facts.append(fact)
    if json:
        facts += [{"path": str(p), "error": text, "exit_code": code} for p, text, code in
                  failed[: len(missing)]]  # fmt: skip
        emit_json({
            "files": facts, "done": total.files, "failed": len(failed), "skipped": len(skipped),
            "already_done": len(files) - len(todo), "conversations": total.conversations,
            "tokens_before": total.before, "tokens_after": total.after,
        })  # fmt: skip
    elif not quiet:
        _show(total, failed, skipped, len(files) - len(todo), notes)
    if failed:
        for path, text, _ in failed[:_NAMED]:
            note(text if str(path) in text else f"{path}: {text}")
        everything = len(failed) == len(files) + len(missing)
        whole = many(len(files) + len(missing), "file")
        note(f"{len(failed):,} of {whole} failed")
        raise typer.Exit(ALL_FAILED if everything else SOME_FAILED)


def _told(error: Exception | None) -> tuple[int, str]:
    """Return the exit code and the text of what ended a file."""
    if isinstance(error, (Failure, ContextError)):
        return code_of(error), str(error).partition("\n")[0]
    if error is None:
        raise AssertionError("an outcome has neither a value nor an error")
    return 1, f"{type(error).__name__}: {error}"


def _fact(done: FileDone, target: Path) -> dict[str, Any]:
    return {
        "output": str(target), "form": done.form, "conversations": done.conversations,
        "messages_before": done.messages_before, "messages_after": done.messages_after,
        "tokens_before": done.before, "tokens_after": done.after,
    }  # fmt: skip


def _show(
    total: _Sum,
    failed: Sequence[tuple[Path, str, int]],
    skipped: Sequence[tuple[Path, str]],
    already: int,
    notes: Counter[str],
) -> None:
    rows = [
        [*(f"{number:,}" for number in row), _share(row[2], row[3]), name]
        for name, row in sorted(total.by_form.items())
    ]
    if len(rows) != 1:
        whole = (total.files, total.conversations, total.before, total.after)
        rows.append([*(f"{one:,}" for one in whole), _share(total.before, total.after), "total"])
    headings = ["files", "conversations", "tokens before", "after", "left", "form"]
    show_table(headings, rows, right=5, to_stderr=True)
    for text, times in notes.most_common(_NAMED):
        note(text if times == 1 else f"{text} ({times:,} times)")
    if already:
        note(f"{many(already, 'file')} had been done before")
    if skipped:
        note(f"skipped {many(len(skipped), 'file')} without a conversation, such as "
             f"{skipped[0][0]}")  # fmt: skip
    del failed


def _share(before: int, after: int) -> str:
    return f"{after / before:.0%}" if before else "-"


def _digest(change: Change, form: str | None) -> str:
    """Name the settings of a run, so that another run with other ones does it all again."""
    return hashlib.sha256(pickle.dumps((change, form), protocol=4)).hexdigest()[:16]


class _Run:
    """Keep the list of files that are done, in the folder of results."""

    def __init__(self, out_dir: Path | None, *, resume: bool, settings: str) -> None:
        self._path = None if out_dir is None else out_dir / _RUN
        self._settings = settings
        self._resume = resume
        self._done: dict[str, list[int]] = {}
        self._file: Any = None
        if resume and self._path is not None and self._path.is_file():
            for line in self._path.read_text("utf-8").splitlines():
                try:
                    entry = jsons.loads(line)
                except ValueError:
                    continue  # the last line of a run that was killed
                if entry.get("settings") == settings:
                    self._done[entry["file"]] = entry["state"]

    def __enter__(self) -> _Run:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a" if self._resume else "w", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def has(self, file: ChosenFile) -> bool:
        """Return whether a file was done before and has not changed since."""
        if self._path is None or str(file.path) not in self._done:
            return False
        result = self._path.parent / file.inside
        return result.exists() and self._done[str(file.path)] == _state(file.path)

    def add(self, file: ChosenFile) -> None:
        """Note that a file is done."""
        if self._file is None:
            return
        entry = {"file": str(file.path), "state": _state(file.path), "settings": self._settings}
        self._file.write(f"{jsons.dumps(entry)}\n")
        self._file.flush()


def _state(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]
