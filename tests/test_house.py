"""What the house says about itself is so: commands, pages, drawing, the run from README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _nav_pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, list):
        return [page for part in entry for page in _nav_pages(part)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - YAML has no types
    assert isinstance(entry, dict)
    return [page for part in entry.values() for page in _nav_pages(part)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - YAML has no types


def test_the_test_command_of_readme_is_marked_and_is_the_real_one() -> None:
    """The clean-environment run takes its command from README; a newcomer types the same."""
    marked = re.search(r"<!-- test-command -->\n+```\w*\n(.+?)\n```", _text("README.md"), re.DOTALL)

    assert marked is not None
    assert marked[1] == "make test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_target_that_documents_name_exists() -> None:
    """A command in a document that `make` does not know is the first thing a newcomer meets."""
    makefile = _text("Makefile")
    named = {
        target
        for page in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "tests/README.md")
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", _text(page), re.MULTILINE)
    }

    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE) or target.startswith("bench-")


def test_make_help_names_every_target() -> None:
    """A target without a text is one nobody finds."""
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    phony = re.search(r"^\.PHONY: (.+)$", _text("Makefile"), re.MULTILINE)

    assert phony is not None
    assert [target for target in phony[1].split() if f"  {target} " not in shown.stdout] == []


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page() -> None:
    """A page outside the navigation is not found; an entry without a page is a dead link."""
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}

    assert set(_nav_pages(yaml.safe_load(_text("mkdocs.yml"))["nav"])) == pages


def test_every_relative_link_leads_somewhere() -> None:
    """A dead link in README is the impression a reader leaves with."""
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert dead == []


def test_the_architecture_page_is_what_the_code_says() -> None:
    """A drawing that leaves a module out sends the reader looking in the wrong place."""
    script = ROOT / "scripts" / "build_architecture.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], check=False)

    assert checked.returncode == 0, "run python scripts/build_architecture.py"


def test_every_entry_point_leads_to_something() -> None:
    """A misspelt entry point fails on the user's machine, at the first foreign message."""
    from importlib.metadata import EntryPoint

    project = tomllib.loads(_text("pyproject.toml"))["project"]
    declared = [
        EntryPoint(name=name, value=value, group=group)
        for group, entries in (
            *project.get("entry-points", {}).items(),
            ("console_scripts", project.get("scripts", {})),
        )
        for name, value in entries.items()
    ]

    assert declared
    for entry in declared:
        assert entry.load() is not None
