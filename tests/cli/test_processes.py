"""The command as a process: pipes, terminals, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = (sys.executable, "-m", "muntin")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")


def _run(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **more
    )


def test_commands_are_piped_into_each_other(chat_file: Path, tmp_path: Path) -> None:
    """Stdout is the result and nothing but the result, so the next program can read it."""
    line = (
        f"'{sys.executable}' -m muntin trim - -b 1200 --report r.json < '{chat_file}' | "
        f"'{sys.executable}' -m muntin compact --trigger 500 --summary 200 | "
        f"'{sys.executable}' -m muntin count --chat --json"
    )
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert 100 < json.loads(done.stdout)["total"]["tokens"]["estimate"] <= 1200
    assert (tmp_path / "r.json").exists()


@pytest.mark.parametrize("ends", ["result", "help"])
def test_a_reader_that_goes_away_is_no_error(ends: str, tmp_path: Path) -> None:
    """`| head -1` must not end in a traceback."""
    (tmp_path / "x.txt").write_text("words of a long text\n" * 50_000)
    what = f"trim '{tmp_path / 'chat.json'}' -b 90k" if ends == "result" else "assemble --help"
    talk = [{"role": "user", "content": "words " * 50_000}]
    (tmp_path / "chat.json").write_text(json.dumps(talk))
    done = subprocess.run(
        f"'{sys.executable}' -m muntin {what} --quiet | head -c 1 > /dev/null",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def _heed_interrupts() -> None:
    """A run of the tests in the background ignores SIGINT, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("how", [["-o", "out.json"], ["--report", "r.json"]])
def test_ctrl_c_leaves_nothing_half_written(how: list[str], chat_file: Path) -> None:
    """What stood there before stands there after, whole, and the shell learns what happened."""
    folder = chat_file.parent
    (folder / how[1]).write_text("as it was")
    process = subprocess.Popen(
        [*COMMAND, "trim", "-", "-b", "1200", *how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
        preexec_fn=_heed_interrupts,
    )  # fmt: skip
    assert process.stdin is not None
    # More than a pipe holds: once this returns, the command is in the middle of reading.
    process.stdin.write(b"[" + b" " * (1 << 20))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert out == b""
    assert err == b"muntin: interrupted; nothing was left half-written\n"
    assert (folder / how[1]).read_text() == "as it was"
    assert sorted(path.name for path in folder.iterdir()) == sorted(["chat.json", how[1]])


def test_ctrl_c_while_a_file_is_written_leaves_the_old_one(
    chat_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal may come between any two bytes."""
    from typer.testing import CliRunner

    from muntin.cli.app import app

    def interrupted(_handle: int) -> None:
        raise KeyboardInterrupt

    before = chat_file.read_bytes()
    monkeypatch.setattr(os, "fsync", interrupted)
    done = CliRunner().invoke(app, ["trim", str(chat_file), "-b", "1200", "--write"])

    assert done.exit_code == 130
    assert chat_file.read_bytes() == before
    assert [path.name for path in chat_file.parent.iterdir()] == ["chat.json"]


def _on_a_terminal(*arguments: str, cwd: Path, **variables: str) -> str:
    """Run with stdout and stderr on a terminal, and return what it showed."""
    import pty

    mine, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **variables}
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        if name not in variables:
            environment.pop(name, None)
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, cwd=cwd,
        env=environment,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 65_536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    process.wait(timeout=60)
    os.close(mine)
    return shown.decode()


def test_a_terminal_gets_colours_and_no_colour_takes_them_away(chat_file: Path) -> None:
    """Colours are for eyes; NO_COLOR is how many say they want none."""
    folder = chat_file.parent
    arguments = ("trim", "chat.json", "-b", "1200", "-o", "/dev/null")

    assert COLOUR.search(_on_a_terminal(*arguments, cwd=folder))
    assert not COLOUR.search(_on_a_terminal(*arguments, cwd=folder, NO_COLOR="1"))
    assert "\x1b" not in _on_a_terminal(*arguments, cwd=folder, TERM="dumb")
    piped = _run(*arguments, cwd=folder)
    assert "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.parametrize("columns", ["40", "72", "160"])
def test_the_bar_fits_the_width_of_the_terminal(columns: str, chat_file: Path) -> None:
    """A bar that wraps is no picture of anything."""
    shown = _on_a_terminal("trim", "chat.json", "-b", "1200", "-o", "/dev/null",
                           cwd=chat_file.parent, COLUMNS=columns, NO_COLOR="1")  # fmt: skip
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "").split("\n")
    [bar] = [line for line in lines if line.startswith("[")]

    assert bar.endswith("]")
    assert len(bar) == min(int(columns), 100) - 2
    table = lines[lines.index(bar) :]
    assert max(map(len, table)) <= min(int(columns), 100)


def test_tables_have_frames_on_a_terminal_only(chat_file: Path) -> None:
    """The same figures, dressed for who reads them."""
    shown = _on_a_terminal("count", "chat.json", cwd=chat_file.parent)

    assert "─" in shown
    assert "─" not in _run("count", "chat.json", cwd=chat_file.parent).stdout


def test_long_work_shows_progress_on_a_terminal(tmp_path: Path) -> None:
    """Ten silent seconds look like a command that hangs."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for n in range(20):
        (docs / f"{n}.txt").write_text("refunds take five days\n\n" * 20_000)
    shown = _on_a_terminal("assemble", "-q", "refunds?", "--docs", "docs", cwd=tmp_path)

    assert "reading documents" in shown
    assert re.search(r"[1-9][0-9]?%", shown)


def test_a_run_over_many_files_shows_a_bar_and_one_table(chat_file: Path) -> None:
    """Ten thousand files in silence look like a command that hangs."""
    folder = chat_file.parent / "chats"
    folder.mkdir()
    for n in range(30):
        (folder / f"{n}.json").write_bytes(chat_file.read_bytes())
    shown = _on_a_terminal("trim", "chats", "-b", "1200", "--out-dir", "out", cwd=chat_file.parent)

    assert "trimming" in shown
    assert re.search(r"[1-9][0-9]?%", shown)
    assert shown.count("tokens before") == 1
    assert len(list((chat_file.parent / "out").glob("*.json"))) == 30


def test_a_target_that_is_no_file_is_written_through(chat_file: Path) -> None:
    """Replacing /dev/null by a file would break the machine."""
    done = _run("trim", chat_file, "-b", "1200", "-o", "/dev/null")

    assert done.returncode == 0
    assert not os.path.isfile("/dev/null")  # noqa: PTH113 - it is the device that is asked about


def test_a_link_still_points_where_it_did(chat_file: Path) -> None:
    """The file behind the link is replaced, not the link."""
    link = chat_file.with_name("link.json")
    link.symlink_to(chat_file.name)
    before = chat_file.read_bytes()

    assert _run("trim", link, "-b", "1200", "--write").returncode == 0
    assert link.is_symlink()
    assert chat_file.read_bytes() != before


def test_a_folder_that_is_missing_is_said_before_anything_is_lost(chat_file: Path) -> None:
    """`-o results/x.json` without the folder is a slip of every day."""
    done = _run("trim", chat_file, "-b", "1200", "-o", "nowhere/x.json")

    assert done.returncode == 2
    assert "make its folder first" in done.stderr
    assert done.stderr.count("\n") == 1
