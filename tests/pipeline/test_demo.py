"""The demonstration does the main job on real text, inside the window it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muntin.demo.__main__ import assemble, main
from muntin.demo.corpus import Passages

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

    monkeypatch.setattr("muntin.demo.__main__.Passages", collected)
    page = tmp_path / "report.html"
    assert main(["--window", "1k", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "[Knowledge]" in printed
    assert "tokens used" in printed
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["--window", "40", "--html", str(page)]) == 3
    assert "raise the budget" in capsys.readouterr().err


@pytest.mark.parametrize("window", ["many", "0", "-3"])
def test_a_window_that_is_no_number_of_tokens_is_a_usage_error(
    window: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([f"--window={window}"])
    assert "window" in capsys.readouterr().err
