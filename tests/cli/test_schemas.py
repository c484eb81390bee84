"""What `--json` prints is what its schema says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from muntin.cli.terminal.schemas import SCHEMAS, schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin

RUNS: list[tuple[str, list[str]]] = [
    ("count", ["count", "notes.md", "--model", "gpt-4o"]),
    ("count", ["count", "--chat", "chat.json"]),
    ("assemble", ["assemble", "-q", "late?", "--docs", ".", "--history", "chat.json"]),
    ("assemble", ["assemble", "-q", "late?", "--memory", "notes.md"]),
    ("trim", ["trim", "chat.json", "-b", "1200"]),
    ("trim", ["trim", "chat.json", "-b", "1200", "-o", "out.json"]),
    ("trim", ["trim", ".", "torn.json", "-b", "1200", "--out-dir", "out"]),
    ("compact", ["compact", "chat.json"]),
    ("explain", ["explain", "report.json", "--decisions", "dropped"]),
    ("diff", ["diff", "report.json", "report.json"]),
    ("forms", ["forms"]),
    ("forms", ["forms", "chat.json", "torn.json"]),
]


@pytest.mark.parametrize(("name", "arguments"), RUNS)
def test_json_is_what_its_schema_says(
    name: str, arguments: list[str], muntin: Muntin, chat_file: Path
) -> None:
    """A key that comes, goes or changes its type breaks the programs that read it."""
    folder = chat_file.parent
    (folder / "notes.md").write_text("- A-7 is late.\n")
    (folder / "torn.json").write_text("{")
    muntin("trim", "chat.json", "-b", "1200", "--report", "report.json", "-o", "small.json")
    told = muntin(*arguments, "--json").json
    jsonschema.validate(told, schema_of(name))
    report: Any = json.loads((folder / "report.json").read_text())
    jsonschema.validate(report, schema_of("report"))

    for key in set(told) - {"result"}:  # of any type: it is what the file would hold
        broken = {**told, key: object()}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema_of(name))
        if key not in ("result", "searched", "skipped", "forms", "files"):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({k: v for k, v in told.items() if k != key}, schema_of(name))


def test_every_command_with_json_has_a_schema(muntin: Muntin) -> None:
    """The guide promises one for each."""
    from muntin.cli.app import app

    names = {one.callback.__name__ for one in app.registered_commands if one.callback}

    assert names - {"schema"} == set(SCHEMAS) - {"report"}
    for name in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(muntin("schema", name).json)
    assert muntin("schema", "nothing").code == 2
