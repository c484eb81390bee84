"""What `trim` and `compact` share: where the result goes, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.cli.failures import Failure
from muntin.cli.files import is_pipe, write_bytes, write_reports
from muntin.cli.terminal import emit_json, note, show_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from muntin.cli.chats import Chat, ChatFile
    from muntin.cli.dumps import Dumped
    from muntin.report import AssemblyReport

__all__ = ("check_target", "hand_over")

_SHOWN = 3
"""Reports shown in full; of more conversations only the sum is told."""


def check_target(file: Path, output: Path | None, *, write: bool, record: int | None) -> None:
    """Refuse targets that contradict each other, before any work is done.

    Raises:
        Failure: `--write` meets `--output`, a pipe, or a part of the file.
    """
    if not write:
        return
    if output is not None:
        raise Failure("--write replaces FILE itself and --output names another: give one of them")
    if is_pipe(file):
        raise Failure("--write needs a file and this is stdin: give --output, or redirect stdout")
    if record is not None:
        raise Failure("--write would leave only one record in the file: give --output instead")


def hand_over(
    chats: Sequence[Chat],
    changed: Sequence[Sequence[Dumped]],
    reports: Sequence[AssemblyReport],
    *,
    file: ChatFile,
    target: Path | None,
    report: Path | None,
    html: Path | None,
    quiet: bool,
    json: bool,
) -> None:
    """Write the conversations, then the reports, then tell about them on stderr."""
    if html is not None and len(reports) != 1:
        raise Failure(
            f"--html shows one conversation and there are {len(reports)}: pick one with --record"
        )
    if json:
        emit_json(_told(chats, changed, reports, file, target))
    if target is not None or not json:
        from pathlib import Path

        write_bytes(target or Path("-"), file.write(chats, changed))
    write_reports(reports, report=report, html=html)
    if quiet or json:
        return
    if len(reports) > _SHOWN:
        before = sum(one.tokens for each in reports for one in each.decisions)
        after = sum(each.used for each in reports)
        note(f"{len(reports)} conversations: {before:,} -> {after:,} tokens")
        return
    for chat, one in zip(chats, reports, strict=True):
        note(f"{chat.label}: {chat.form}, {len(chat.messages)} messages")
        show_report(one, to_stderr=True)


def _told(
    chats: Sequence[Chat],
    changed: Sequence[Sequence[Dumped]],
    reports: Sequence[AssemblyReport],
    file: ChatFile,
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
