"""The figures in README are only worth what the harness behind them is worth."""

from __future__ import annotations

import pytest
from benchmarks._harness import Table, at_least, at_most, compare, exponent, peer, versions


@pytest.mark.parametrize("power", [1.0, 2.0, 0.5])
def test_the_exponent_of_a_power_law_is_its_power(power: float) -> None:
    """A quadratic loop must not be reported as linear."""
    points = [(size, 3e-6 * size**power) for size in (100.0, 1000.0, 10000.0)]

    assert exponent(points) == pytest.approx(power)


def test_a_missed_goal_is_shown_and_counted() -> None:
    """A figure below its goal must not look like one above it."""
    table = Table(
        title="Speed",
        columns=("work", "times faster", "exponent"),
        rows=(("select", at_least(12.0, 30, "x"), at_most(1.05, 1.2)), ("build", None, None)),
    )

    assert [goal.value for goal in table.missed] == [12.0]
    assert "| select | 12x (≥ 30x: **missed**) | 1.05 (≤ 1.2: reached) |" in table.markdown()
    assert "| build | – | – |" in table.markdown()


def test_a_row_of_the_wrong_width_is_refused() -> None:
    """A cell that slips under another heading is a wrong figure."""
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        Table(title="t", columns=("a", "b"), rows=(("only",),))


@pytest.mark.slow
def test_the_order_of_the_two_sides_alternates() -> None:
    """Whoever always runs second finds warm caches."""
    calls: list[str] = []

    made = compare(
        lambda: calls.append("ours"), lambda: calls.append("theirs"), rounds=4, shortest=0
    )

    assert made.rounds == 4
    assert calls[-8:] == ["ours", "theirs", "theirs", "ours"] * 2


def test_an_absent_peer_is_none() -> None:
    """One missing peer must not stop the comparison with the others."""
    assert peer("a_peer_that_nobody_wrote") is None
    assert peer("json") is not None
    assert "python" in versions()
