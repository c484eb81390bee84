"""The demonstration does the main job on real text, inside the window it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muntin.cli import main
from muntin.demo import Passages, assemble

if TYPE_CHECKING:
    from pathlib import Path

    from muntin.counting.counters import NamedCounter


@pytest.fixture(scope="module")
def passages() -> Passages:
    """Collect the documentation of this environment once."""
    shares: list[float] = []
    found = Passages(shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    return found


def counter_of(name: str) -> NamedCounter:
    from muntin import counter_for

    return counter_for("gpt-4o" if name == "exact" else None)


@pytest.mark.parametrize("count", ["estimate", "exact"])
def test_real_documentation_fits_the_window(passages: Passages, count: str) -> None:
    counter = counter_of(count)
    context = assemble("How do I compare two dates?", passages, 1500, counter)
    assert counter(context.text) <= 1200
    assert context.report.idle < 30
    assert {section.name for section in context.sections} == {"memory", "rag", "tool"}
    assert any("date" in c.content.lower() for c in context.candidates if c.source == "rag")


def test_the_command_prints_the_context_and_writes_the_page(
    passages: Passages,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def collected(_progress: object) -> Passages:
        return passages

    monkeypatch.setattr("muntin.demo.Passages", collected)
    page = tmp_path / "report.html"
    assert main(["demo", "--window", "1k", "--html", str(page)]) == 0
    shown = capsys.readouterr()
    assert "[Knowledge]" in shown.out
    assert "tokens used" in shown.err
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
