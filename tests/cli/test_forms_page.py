"""The page of forms is what the registry says and what the commands do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from muntin.cli.forms.registry import FORMS

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_forms_is_what_the_commands_do() -> None:
    """A form that is promised on a page and fails in a command is found by its user."""
    checked = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "build_forms.py"), "--check"], check=False
    )
    written = (ROOT / "docs" / "guide" / "conversation-forms.md").read_text(encoding="utf-8")

    assert checked.returncode == 0, "run python scripts/build_forms.py"
    assert all(f"| `{form.name}` |" in written for form in FORMS)
    assert "| no |" not in written
