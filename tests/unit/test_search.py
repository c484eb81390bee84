"""The search for the largest size agrees with trying every size, at few calls."""

from __future__ import annotations

from bisect import bisect_right
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.runtime import fair_limit, fair_shares, largest_within, longest_text, split

COSTS = st.lists(st.integers(0, 9), min_size=1, max_size=200)


@given(COSTS, st.integers(0, 900), st.none() | st.integers(1, 300))
def test_the_result_is_what_trying_every_size_finds(
    steps: list[int], limit: int, start: int | None
) -> None:
    """A search that stops early wastes tokens; one that goes too far overruns the budget."""
    costs = [sum(steps[: n + 1]) for n in range(len(steps))]
    expected = bisect_right(costs, limit) - 1

    found = largest_within(limit, costs.__getitem__, low=-1, high=len(costs) - 1, start=start)

    assert found == max(expected, -1)


@given(st.integers(1, 10**6), st.none() | st.integers(1, 64))
def test_the_number_of_calls_grows_with_the_logarithm(size: int, start: int | None) -> None:
    """Every call counts the tokens of a text, which is the cost of cutting it."""
    calls = 0

    def cost(n: int) -> int:
        nonlocal calls
        calls += 1
        return n

    assert largest_within(size, cost, low=0, high=10**6, start=start) == size
    assert calls <= 2 * log2(10**6) + 4


def test_the_text_of_the_largest_size_is_returned() -> None:
    written: list[int] = []

    def write(n: int) -> str:
        written.append(n)
        return "x" * n

    assert longest_text(write, 5, len, low=0, high=9) == "xxxxx"
    assert longest_text(write, 0, len, low=0, high=9) == ""
    assert longest_text(write, 99, len, low=0, high=9, start=2) == "x" * 9


@pytest.mark.parametrize("tolerance", [0.0, 1 / 64])
def test_a_tolerance_never_exceeds_the_limit(tolerance: float) -> None:
    found = largest_within(5000, lambda n: n, low=0, high=10**5, tolerance=tolerance)

    assert 5000 * (1 - tolerance) - 1 <= found <= 5000


@given(st.lists(st.integers(0, 1000)), st.integers(-5, 5000))
def test_fair_shares_use_the_total_and_exceed_no_want(wants: list[int], total: int) -> None:
    """A share above its want is idle, and so is a total that is not given out."""
    shares = fair_shares(wants, total)

    assert sum(shares) == min(sum(wants), max(total, 0))
    assert all(0 <= share <= want for share, want in zip(shares, wants, strict=True))
    limit = fair_limit(wants, total)
    assert sum(min(want, limit) for want in wants) <= max(total, 0) or not any(wants)


@given(st.integers(0, 10**6), st.dictionaries(st.integers(0, 50), st.integers(0, 1000)))
def test_parts_of_a_split_sum_to_the_total(total: int, weights: dict[int, int]) -> None:
    parts = split(total, weights)

    assert sum(parts.values()) == (total if any(weights.values()) else 0)
    assert all(part == 0 for key, part in parts.items() if not weights[key])
