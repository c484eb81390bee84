"""Files that are broken, hostile or very large: one clear line, the right exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli_runs import Muntin

COMMANDS = (["trim", "-b", "8k"], ["compact"], ["count", "--chat"])
_MESSAGE = '{"role": "user", "content": "Hi"}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
        (f"[{_MESSAGE}, {{\"role\": \"user\", \"content\": \"x\", \"n\": NaN}}]".encode(), "NaN"),
        (f'{{"messages": [{_MESSAGE}], "score": -Infinity}}'.encode(), "-Infinity"),
        (f'{{"messages": [{_MESSAGE}], "score": 1e999}}'.encode(), "1e999"),
        (f'{{"messages": [{_MESSAGE}], "messages": []}}'.encode(), "'messages' twice"),
        (f"[{_MESSAGE}]".encode("utf-16"), "UTF-16"),
        (f"[{_MESSAGE}]".encode("utf-16-le"), "NUL"),
        (f"[{_MESSAGE}]\0".encode(), "NUL"),
        (b'[{"role": "user", "content": "\xff"}]', "not UTF-8 (line 1"),
        (b"PK\x03\x04rest", "ZIP"),
        (b"SQLite format 3\0", "SQLite"),
        (b'{"requests": [], "responderUsername": "GitHub Copilot"}', "Copilot"),
        (b'[{"ts": 1, "type": "say", "say": "text"}]', "ui_messages.json"),
        (b'[{"type": "message", "ts": "1.2", "user": "U1", "text": "hi"}]', "Slack"),
        (b"no speaker here\n", "names no speakers"),
        (f"{_MESSAGE}\n{_MESSAGE}\n{{torn".encode(), "line 3 is not JSON"),
        (f'{{"messages": [{_MESSAGE}]}}\n{{"messages": 3}}'.encode(), "line 2 holds no conver"),
        (f'[{{"messages": [{_MESSAGE}]}}, {{"other": 1}}]'.encode(), "record 2 holds no conver"),
        (b'{"mapping": {"a": {"parent": null, "message": {"author": 3}}}}', "chatgpt-export"),
    ],
)  # fmt: skip
def test_a_broken_file_gets_one_line_that_names_the_form_or_the_place(
    content: bytes, said: str, muntin: Muntin, tmp_path: Path
) -> None:
    """A traceback, a loss in silence, or NaN written out again: each was seen."""
    (tmp_path / "x").write_bytes(content)
    for command in COMMANDS:
        ended = muntin(*command, "x")

        assert ended.code == 2, command
        assert said in ended.err
        assert ended.err.count("\n") == 1
        assert ended.out == ""


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_byte_order_mark_and_line_ends_are_kept(
    end: str, muntin: Muntin, tmp_path: Path, chat: list[dict[str, Any]]
) -> None:
    """Editors on Windows write both, and the next reader may depend on them."""
    lines = [json.dumps({"messages": chat[:n]}) for n in (9, 121)]
    text = ("\ufeff" + "".join(f"{line}{end or chr(10)}" for line in lines)).encode()
    (tmp_path / "x.jsonl").write_bytes(text)
    fits = muntin("trim", "x.jsonl", "-b", "100k", "-o", "out")
    assert fits.code == 0
    assert (tmp_path / "out").read_bytes() == text
    muntin("trim", "x.jsonl", "-b", "2k", "-o", "out")
    written = (tmp_path / "out").read_bytes()
    assert written.startswith(b"\xef\xbb\xbf{")
    assert written.count((end or "\n").encode()) == 2
    assert written.splitlines()[0] == text.splitlines()[0]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "usual"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_style_of_changed_json_is_that_of_the_file(
    separators: tuple[str, str], indent: int | None, *, ascii_only: bool, muntin: Muntin,
    tmp_path: Path, chat: list[dict[str, Any]],
) -> None:  # fmt: skip
    """A diff shows what was trimmed and nothing else."""
    chat[-1]["content"] = "Und die nächste? 漢字"
    comma = "," if indent else separators[0]
    style: dict[str, Any] = {
        "separators": (comma, separators[1]), "indent": indent, "ensure_ascii": ascii_only,
    }  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(chat, **style), encoding="utf-8")
    out = muntin("trim", "x.json", "-b", "1200", "--quiet").out

    assert out == json.dumps(json.loads(out), **style)


def test_numbers_and_escapes_of_untouched_records_stay_as_they_are(
    muntin: Muntin, tmp_path: Path, chat: list[dict[str, Any]]
) -> None:
    r"""`1.50`, `1E5` and `\/` are read and written otherwise by most programs."""
    kept = '{"messages": [{"role": "user", "content": "a\\/b"}], "x": 1.50, "y": 1E5}'
    text = f"{kept}\n{json.dumps({'messages': chat})}\n"
    (tmp_path / "x.jsonl").write_text(text)
    out = muntin("trim", "x.jsonl", "-b", "1200", "--quiet").out

    assert out.splitlines()[0] == kept
    assert out != text


_ESCAPES = "\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 \x9b2J"


@pytest.mark.parametrize("command", ["trim", "count", "assemble", "forms"])
def test_control_characters_of_files_do_not_reach_the_terminal(
    command: str, tmp_path: Path
) -> None:
    """An escape sequence in a file name or document can rewrite what the user reads."""
    name = f"chat{_ESCAPES.replace('/', '')}.json"
    chat = [{"role": "user", "content": f"refund {_ESCAPES}"}]
    (tmp_path / name).write_text(json.dumps(chat))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / f"{_ESCAPES.replace('/', '')}.md").write_text(f"refund {_ESCAPES} text")
    arguments = {
        "trim": ["trim", name, "-b", "500"],
        "count": ["count", "--chat", name],
        "assemble": ["assemble", "-q", f"refund {_ESCAPES}", "--docs", "docs"],
        "forms": ["forms", name],
    }[command]
    shown = _terminal(arguments, tmp_path)

    assert "\x1b[31m" not in shown
    assert "\x1b]0;" not in shown
    for bad in ("\x07", "\u202e", "\u2066", "\x9b"):
        assert bad not in shown


def _terminal(arguments: list[str], cwd: Path) -> str:
    import pty

    mine, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "90"}
    process = subprocess.Popen(
        [sys.executable, "-m", "muntin", *arguments], stdout=theirs, stderr=theirs,
        stdin=subprocess.DEVNULL, cwd=cwd, env=environment,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait(timeout=60)
    os.close(mine)
    return shown.decode("utf-8", "replace")


_PEAK = """
import re, sys
from muntin.cli import main
code = main(sys.argv[1:])
status = open('/proc/self/status').read()
sys.stderr.write(re.search(r'VmHWM:\\s*(\\d+)', status)[1])
sys.exit(code)
"""


def _peak(*arguments: str, cwd: Path) -> int:
    done = subprocess.run([sys.executable, "-c", _PEAK, *arguments], capture_output=True, text=True,
                          cwd=cwd, check=True)  # fmt: skip
    return int(done.stderr.split()[-1]) << 10


def _lines_of(path: Path, megabytes: int, chat: list[dict[str, Any]]) -> None:
    line = f"{json.dumps({'messages': chat})}\n"
    with path.open("w") as file:
        for _ in range((megabytes << 20) // len(line)):
            file.write(line)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("size", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_large_file_of_lines_takes_little_more_memory_than_a_small_one(
    size: int, tmp_path: Path, chat: list[dict[str, Any]]
) -> None:
    """A log of 200 MB took 691 MB of memory: on a small machine it cannot be trimmed at all."""
    long = [{"role": "system", "content": "word " * 20_000}, *chat[:9]]
    _lines_of(tmp_path / "small.jsonl", 1, long)
    _lines_of(tmp_path / "large.jsonl", size, long)
    arguments = ("-b", "100k", "-o", "out.jsonl", "--quiet")
    small = _peak("trim", "small.jsonl", *arguments, cwd=tmp_path)
    large = _peak("trim", "large.jsonl", *arguments, cwd=tmp_path)

    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "large.jsonl").read_bytes()
    assert large - small < 20 << 20
