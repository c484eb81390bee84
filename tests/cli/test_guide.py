"""The commands of the guide run, and print what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "cli.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Shown(NamedTuple):
    """A command and what the guide says it prints."""

    command: str
    output: str


def shown_in(text: str) -> list[Shown]:
    """Read the commands of a page in order."""
    found: list[Shown] = []
    for block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Shown(line[2:], ""))
            else:
                found[-1] = Shown(found[-1].command, f"{found[-1].output}{line}\n")
    return found


def outputs_of(commands: list[Shown], folder: Path) -> list[str]:
    """Run commands as a user would, and return what each printed on either stream."""
    shims = folder.parent / "bin"
    shims.mkdir()
    shim = shims / "muntin"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m muntin "$@"\n')
    shim.chmod(0o755)
    path = f"{shims}{os.pathsep}{os.environ['PATH']}"
    return [
        subprocess.run(
            ["/bin/sh", "-c", one.command], cwd=folder, env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
        ).stdout
        for one in commands
    ]  # fmt: skip


def test_the_commands_of_the_guide_print_what_it_says(tmp_path: Path) -> None:
    """A guide that shows another output than the reader gets has lost the reader."""
    commands = shown_in(GUIDE.read_text(encoding="utf-8"))
    folder = tmp_path / "empty"
    folder.mkdir()
    outputs = outputs_of(commands, folder)

    assert len(commands) > 8
    for one, output in zip(commands, outputs, strict=True):
        assert output == one.output, one.command


def test_the_guide_names_every_command_and_every_exit_code() -> None:
    """What is not in the guide is not promised, and so cannot be relied on."""
    from muntin.cli import failures
    from muntin.cli.app import app

    text = GUIDE.read_text(encoding="utf-8")
    names = [command.callback.__name__ for command in app.registered_commands if command.callback]
    codes = {value for value in vars(failures).values() if isinstance(value, int)}

    assert [name for name in names if f"`muntin {name}`" not in text] == []
    assert [code for code in codes if f"| {code} |" not in text] == []


if __name__ == "__main__":
    # Writes the true outputs into the guide: python tests/cli/test_guide.py
    import tempfile

    page = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as root:
        inside = Path(root) / "empty"
        inside.mkdir()
        told = iter(outputs_of(shown_in(page), inside))

        def renewed(match: re.Match[str]) -> str:
            """Write one block anew."""
            lines = [line for line in match[1].splitlines() if line.startswith("$ ")]
            return "```console\n" + "".join(f"{line}\n{next(told)}" for line in lines) + "```"

        GUIDE.write_text(_BLOCK.sub(renewed, page), encoding="utf-8")
