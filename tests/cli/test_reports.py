"""`muntin explain` and `muntin diff`: reports read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from muntin import AssemblyReport

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin


@pytest.fixture
def reports(muntin: Muntin, chat_file: Path) -> tuple[str, str]:
    """Two reports of one conversation, at two budgets."""
    for budget in ("1200", "900"):
        muntin("trim", chat_file, "-b", budget, "--report", f"{budget}.json", "-o", "/dev/null")
    return "1200.json", "900.json"


def test_a_report_reads_as_it_was_shown(
    reports: tuple[str, str], muntin: Muntin, tmp_path: Path
) -> None:
    """Explaining later must tell the same as telling at once."""
    report = AssemblyReport.from_dict(json.loads((tmp_path / reports[0]).read_text()))

    assert muntin("explain", reports[0]).out == f"{report}\n"
    assert muntin("explain", "-", stdin=report.to_json()).out == f"{report}\n"


def test_decisions_are_listed_by_kind_and_by_words(
    reports: tuple[str, str], muntin: Muntin
) -> None:
    """Why this is not in the prompt is asked of one passage among hundreds."""
    summarised = muntin("explain", reports[0], "--decisions", "summarised").out
    found = muntin("explain", reports[0], "--find", "HOUSE 7.").out

    assert summarised.count("digested") > 50
    assert "protected" not in summarised
    assert found.count("Where is order A-7?") == 1
    assert "no decision" in muntin("explain", reports[0], "--find", "nowhere").err


def test_json_holds_the_report_and_what_the_reasons_mean(
    reports: tuple[str, str], muntin: Muntin
) -> None:
    """A dashboard shows the sentence, not the word."""
    told = muntin("explain", reports[0], "-d", "kept", "--json").json

    assert told["reports"][0]["report"]["format"] == "muntin.report/1"
    assert told["reports"][0]["listed"]
    assert told["reasons"]["protected"]


def test_a_page_is_written(reports: tuple[str, str], muntin: Muntin, tmp_path: Path) -> None:
    """A report that travelled as JSON becomes a page where it is read."""
    assert muntin("explain", reports[0], "--html", "one.html").code == 0
    assert muntin("diff", *reports, "--html", "two.html").code == 0
    assert (tmp_path / "two.html").stat().st_size > (tmp_path / "one.html").stat().st_size


def test_what_a_command_printed_as_json_is_explained_too(muntin: Muntin, chat_file: Path) -> None:
    """`muntin trim --json | muntin explain -` is the obvious thing to type."""
    printed = muntin("trim", chat_file, "-b", "1200", "--json").out

    assert muntin("explain", "-", stdin=printed).out.startswith("conversation: ")


def test_diff_tells_what_changed_and_answers_scripts(
    reports: tuple[str, str], muntin: Muntin
) -> None:
    """Exit code 1 only on request: a difference is no failure."""
    changed = muntin("diff", *reports)

    assert changed.code == 0
    assert "tokens used" in changed.out
    assert muntin("diff", *reports, "--exit-code").code == 1
    assert muntin("diff", reports[0], reports[0], "--exit-code").code == 0
    assert muntin("diff", *reports, "--json").json["unchanged"] is False


@pytest.mark.parametrize(
    "content", ["", "nonsense", "[]", "7", "{}", '{"format": "muntin.report/9"}', '{"report": {}}']
)
def test_what_is_no_report_is_refused_in_one_line(
    content: str, muntin: Muntin, tmp_path: Path
) -> None:
    """Half a report misleads more than none."""
    (tmp_path / "x.json").write_text(content)
    for command in (["explain", "x.json"], ["diff", "x.json", "x.json"]):
        ended = muntin(*command)

        assert ended.code == 2
        assert ended.err.startswith("muntin: x.json")
        assert ended.err.count("\n") == 1
