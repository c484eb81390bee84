"""The written form: strict in reading, so that half a report is never taken for a whole one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from muntin.errors import ReportError
from muntin.report import AssemblyReport
from report_samples import context_report, conversation_report, hostile_report, large_report

if TYPE_CHECKING:
    from collections.abc import Callable


def written() -> dict[str, Any]:
    """Write a sample down, ready to be spoilt."""
    return json.loads(context_report().to_json())


@pytest.mark.parametrize(
    "make", [context_report, conversation_report, hostile_report, large_report]
)
def test_a_report_reads_back_from_its_json(make: Callable[[], AssemblyReport]) -> None:
    report = make()
    assert AssemblyReport.from_dict(json.loads(report.to_json())) == report


def test_the_format_comes_first_and_names_its_version() -> None:
    assert context_report().to_json().startswith('{"format": "muntin.report/1"')


@pytest.mark.parametrize("version", ["muntin.report/2", "muntin.report", None, 1])
def test_another_version_is_refused(version: object) -> None:
    """A newer report may mean other things by the same words."""
    data = written() | {"format": version}
    with pytest.raises(ReportError, match=r"not 'muntin\.report/1'"):
        AssemblyReport.from_dict(data)


def _without(data: dict[str, Any], name: str) -> None:
    del data[name]


SPOILT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "report has no 'budget'": lambda data: _without(data, "budget"),
    "unknown fields: 'extra'": lambda data: data.update(extra=1),
    r"decisions\[3\] has unknown": lambda data: data["decisions"][3].update(extra=1),
    r"decisions\[3\] has no 'id'": lambda data: _without(data["decisions"][3], "id"),
    "report.budget is '6400', not int": lambda data: data.update(budget="6400"),
    "report.budget is True, not int": lambda data: data.update(budget=True),
    "report.exact is 1, not bool": lambda data: data.update(exact=1),
    "report.kind is 'novel'": lambda data: data.update(kind="novel"),
    r"decisions\[0\].reason is 'because'": lambda data: data["decisions"][0].update(
        reason="because"
    ),
    r"decisions\[0\].score is 'high'": lambda data: data["decisions"][0].update(score="high"),
    "notes is 7, not a list": lambda data: data.update(notes=[7]),
    "report.fixed is list, not an object": lambda data: data.update(fixed=[]),
    r"events\[0\] is int, not an object": lambda data: data.update(events=[1]),
    "do not follow from the figures": lambda data: data["parts"][0].update(tokens=1),
    "used 6401 tokens of a budget of 6400": lambda data: data.update(used=6401),
}


@pytest.mark.parametrize("problem", list(SPOILT))
def test_spoilt_data_is_refused_and_the_place_named(problem: str) -> None:
    """A hand-edited or torn file must not become a report that looks right."""
    data = written()
    SPOILT[problem](data)
    with pytest.raises(ReportError, match=problem):
        AssemblyReport.from_dict(data)


def test_reading_leaves_the_data_as_it_was() -> None:
    data = written()
    before = json.dumps(data)
    AssemblyReport.from_dict(data)
    assert json.dumps(data) == before


def test_texts_of_pieces_are_not_written() -> None:
    """A report may travel where the documents may not."""
    pieces = cast("list[dict[str, Any]]", written()["pieces"])
    assert set(pieces[0]) == {"label", "digest", "characters", "tokens"}
