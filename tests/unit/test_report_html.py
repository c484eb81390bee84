"""The page as text: self-contained, inert whatever the documents say, the same bytes each time."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from muntin import CallableSource, ContextBuilder
from muntin.errors import ConfigurationError
from muntin.report.html import to_fragment
from report_samples import (
    ATTACKS,
    context_report,
    conversation_report,
    hostile_report,
    large_report,
    later_context_report,
)

if TYPE_CHECKING:
    from pathlib import Path

    from muntin.report import AssemblyReport


class Tags(HTMLParser):
    """Collects what a browser would take for an element or for a handler."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def test_hostile_texts_make_no_element_and_no_handler() -> None:
    """A retrieved document must not run in the browser of whoever debugs it."""
    report = hostile_report()
    calm = dataclasses.replace(report, question="calm")
    for page in (report.to_html(previous=report), to_fragment(report)):
        tags = Tags(page)
        assert "img" not in tags.names
        assert not [name for name, _ in tags.attributes if name.startswith("on")]
        assert tags.names.count("script") == 2
    assert Tags(report.to_html()).names == Tags(calm.to_html()).names


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_stands_in_the_page_as_it_is(attack: str) -> None:
    assert attack not in hostile_report().to_html()


def test_the_page_fetches_nothing() -> None:
    """It is opened where there is no network, and a report must not tell anybody it was read."""
    page = context_report().to_html(previous=later_context_report())
    links = [value for name, value in Tags(page).attributes if name in ("src", "href", "action")]
    assert links == ["data:,"]
    assert not re.findall(r"url\(|@import|https?://", page)
    assert "default-src 'none'" in page


def test_the_page_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page = context_report().to_html(path)
    assert path.read_bytes() == page.encode("utf-8")
    assert context_report().to_html() == page


@pytest.mark.parametrize("report", [context_report(), later_context_report(), large_report(50)])
def test_the_drawn_bar_adds_up_to_the_window(report: AssemblyReport) -> None:
    bar = report.to_html().partition('class="mtn-legend"')[0]
    assert sum(map(int, re.findall(r'data-width="(\d+)"', bar))) == report.whole


def test_a_fragment_has_no_ids_so_that_several_share_a_notebook() -> None:
    both = to_fragment(context_report()) + to_fragment(conversation_report())
    assert "id" not in [name for name, _ in Tags(both).attributes]


def test_every_rule_of_the_style_sheet_stays_inside_the_report() -> None:
    """A rule for all tables would restyle the notebook around the report."""
    style = re.sub(
        r"/\*.*?\*/", "", to_fragment(context_report()).partition("</style>")[0], flags=re.S
    )
    selectors = [
        match.strip()
        for match in re.findall(r"(?:^|[{}])([^{}@]+)\{", style.removeprefix("<style>"))
    ]
    assert len(selectors) > 80
    assert not [one for one in selectors if ".muntin" not in one and ".mtn-page" not in one]


def test_a_fragment_of_many_decisions_stays_small() -> None:
    """Ten thousand rows in a cell would grow the notebook by megabytes and stall its editor."""
    fragment = to_fragment(large_report())
    assert len(fragment) < 250_000
    assert "The first 500 of 10,000 candidates" in fragment


def test_the_page_reads_without_a_script() -> None:
    page = conversation_report().to_html()
    assert page.count('class="mtn-text"') == 60
    assert "older reads of two files" in page


def test_budgets_to_try_are_computed_beforehand_and_need_a_replay() -> None:
    def replay(budget: int) -> AssemblyReport:
        return dataclasses.replace(context_report(), budget=budget)

    report = dataclasses.replace(context_report(), replay=replay)
    page = report.to_html(what_if=[6_300, 6_592, 6_300])
    assert re.findall(r'data-budget="([\d,]+) tokens"', page) == ["6,300", "6,400", "6,592"]
    with pytest.raises(ConfigurationError):
        context_report().to_html(what_if=[6_300])


def test_a_comparison_shows_both_windows_and_the_cache() -> None:
    page = later_context_report().to_html(previous=context_report())
    assert page.count('class="mtn-bar mtn-small"') == 2
    assert "can come from a prompt cache" in page


def test_one_candidate_is_not_called_candidates() -> None:
    """A wrong plural reads like a mistake in the figures too."""
    source = CallableSource("rag", lambda _query: ["Only this."])
    page = ContextBuilder().assemble("What?", sources=[source], budget=500).report.to_html()
    assert "Of 1 candidate, <b>1</b> is in word for word" in page
