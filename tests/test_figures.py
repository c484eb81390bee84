"""The pages of figures show what was measured, misses and better peers included."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.make_figures import RESULTS, appendix, charts, files, page


def _part(*, reached: bool, muntin: float = 0.9) -> dict[str, Any]:
    goal = {"at_least": 0.95, "reached": reached, "unit": "", "value": muntin}
    rows = [["naive greedy", *[0.8] * 5, ""], ["muntin", goal, *[0.9] * 4, ""]]
    return {
        "machine": {"cores": 2, "processor": "A processor", "system": "Linux"},
        "markdown": "### A table",
        "tables": [{"title": "A table", "columns": ["a"] * 7, "notes": [], "rows": rows}],
        "versions": {"muntin": "0.2.0", "numpy": "2.0.0"},
    }


def test_a_missed_goal_is_counted_and_named() -> None:
    """A page that hides its misses is an advertisement."""
    results = {"quality_multihop": _part(reached=False), "bench_build": _part(reached=True)}
    shown = appendix(results)

    assert "| [Building a context](#building-a-context) | 1 | – |" in shown
    assert "| [Two-step questions](#two-step-questions) | 0 | 1 |" in shown
    assert "Two-step questions, A table, muntin: 0.900, the goal was ≥ 0.950." in page(results)


def test_a_better_peer_is_listed_and_a_worse_one_is_not() -> None:
    """A reader decides by the rows that the authors would rather leave out."""
    worse = page({"quality_multihop": _part(reached=False, muntin=0.7)})
    better = page({"quality_multihop": _part(reached=True)})

    assert "| 256 tokens | passages by score | 0.800 | 0.700 |" in worse
    assert "passages by score | 0.800 | 0.900" not in better
    assert "In no row above." in better


def test_versions_are_given_once_and_deviations_at_their_part() -> None:
    """A figure without its surroundings cannot be checked; repeated ones are not read."""
    other = {**_part(reached=True), "versions": {"muntin": "0.2.0", "numpy": "2.4.0"}}
    results = {
        "bench_build": _part(reached=True),
        "bench_anew": other,
        "quality_multihop": _part(reached=True),
    }

    assert page(results).count("| numpy | 2.0.0 |") == 1
    assert page(results).count("A processor, 2 cores") == 1
    shown = appendix(results)
    assert "Measured with other versions than the rest: numpy 2.4.0." in shown
    assert shown.index("## Building a context") < shown.index("## Anew")


def test_every_claim_has_a_chart_for_light_and_dark_with_its_numbers_as_text() -> None:
    """A chart without text is lost to readers who do not see it."""
    drawn = charts({"quality_multihop": _part(reached=True)})

    assert sorted(drawn) == ["two-steps-dark.svg", "two-steps-light.svg"]
    for svg in drawn.values():
        root = ElementTree.fromstring(svg)
        described = root.findtext("{http://www.w3.org/2000/svg}desc") or ""
        assert "muntin: 256 tokens 0.900" in described
        assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_committed_pages_are_those_of_the_committed_results() -> None:
    """A figure that was edited by hand is not measured."""
    if not RESULTS.exists():
        pytest.skip("benchmarks/results.json is not here")
    results = json.loads(RESULTS.read_text("utf-8"))
    stale = [
        str(path)
        for path, text in files(results).items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    assert stale == [], "run `python -m benchmarks.make_figures`"
