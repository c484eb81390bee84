"""The page of figures says what was measured, misses included."""

from __future__ import annotations

from typing import Any

from benchmarks.make_figures import page


def _part(*, reached: bool) -> dict[str, Any]:
    goal = {"at_least": 30.0, "reached": reached, "unit": "x", "value": 26.3}
    return {
        "machine": {"cores": 2, "processor": "A processor", "system": "Linux"},
        "markdown": "### A table",
        "tables": [{"columns": ["size", "speed"], "notes": [], "rows": [[1000, goal]]}],
        "versions": {"muntin": "0.1.0", "numpy": "2.0.0"},
    }


def test_a_missed_goal_is_counted_at_the_top_of_the_page() -> None:
    """A page that hides its misses is an advertisement."""
    shown = page({"bench_selection": _part(reached=False), "bench_build": _part(reached=True)})

    assert "| [Building a context](#building-a-context) | 1 | – |" in shown
    assert "| [Selection](#selection) | 0 | 1 |" in shown


def test_every_part_stands_with_its_machine_and_versions_known_ones_first() -> None:
    """A figure without its surroundings cannot be checked; a new part must not be left out."""
    shown = page({"bench_anew": _part(reached=True), "bench_build": _part(reached=True)})

    assert shown.index("## Building a context") < shown.index("## Anew")
    assert shown.count("<small>A processor, 2 cores; muntin 0.1.0, numpy 2.0.0.</small>") == 2
