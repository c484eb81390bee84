"""What the tests of the command line share: running it as a user would, in a folder of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cli_runs import Ended, Muntin
from muntin.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def muntin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Muntin:
    """Run the command in an empty folder; only exits on purpose are exits."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Ended:
        done = runner.invoke(app, [str(one) for one in arguments], input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ended(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def chat() -> list[dict[str, Any]]:
    """A conversation with tool rounds, far over a small budget."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You look after orders."}]
    for n in range(30):
        asked = {"name": "find", "arguments": json.dumps({"order": f"A-{n}"})}
        call = {"id": f"c{n}", "type": "function", "function": asked}
        messages += [
            {"role": "user", "content": f"Where is order A-{n}? It was sent to house {n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}",
             "content": f"order: A-{n}\nstatus: late by {n} days\n" + "log line\n" * 40},
            {"role": "assistant", "content": f"Order A-{n} is late by {n} days."},
        ]  # fmt: skip
    return [*messages, {"role": "user", "content": "And the first one?"}]


@pytest.fixture
def chat_file(tmp_path: Path, chat: list[dict[str, Any]]) -> Path:
    """The same in a file."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat, indent=2), encoding="utf-8")
    return path
