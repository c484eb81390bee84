"""The laws of allocation, for any costs and ratios."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from muntin.passages.placing import allocate
from muntin.runtime import split

names = ("memory", "rag", "tool", "history")
costs = st.dictionaries(st.sampled_from(names), st.lists(st.integers(0, 120), max_size=8))
ratios = st.fixed_dictionaries({name: st.floats(0, 10) for name in names})
regions = st.integers(0, 600)


@given(costs=costs, ratios=ratios, region=regions, borrow=st.booleans(), fill=st.booleans())
def test_nobody_gets_more_than_there_is_or_more_than_it_wants(
    costs: dict[str, list[int]],
    ratios: dict[str, float],
    region: int,
    *,
    borrow: bool,
    fill: bool,
) -> None:
    given_out = allocate(costs, region=region, ratios=ratios, allow_borrow=borrow, fill=fill)
    assert sum(share.used for share in given_out.shares.values()) <= region
    for name, share in given_out.shares.items():
        assert share.used == sum(costs[name][i] for i in share.placed)
        assert len(set(share.placed)) == len(share.placed)
        assert 0 <= given_out.lent(name) <= share.idle
        if not borrow:
            assert share.used <= share.quota


@given(costs=costs, ratios=ratios, region=regions)
def test_nothing_that_fits_is_left_waiting(
    costs: dict[str, list[int]], ratios: dict[str, float], region: int
) -> None:
    given_out = allocate(costs, region=region, ratios=ratios)
    for name, share in given_out.shares.items():
        waiting = [c for i, c in enumerate(costs[name]) if i not in share.placed]
        assert all(cost > given_out.idle for cost in waiting)


@given(costs=costs, ratios=ratios, region=regions, data=st.data())
def test_the_order_of_the_sources_changes_nothing(
    costs: dict[str, list[int]], ratios: dict[str, float], region: int, data: st.DataObject
) -> None:
    shuffled = dict(data.draw(st.permutations(list(costs.items()))))
    first = allocate(costs, region=region, ratios=ratios).shares
    second = allocate(shuffled, region=region, ratios=ratios).shares
    assert {name: first[name] for name in names if name in first} == {
        name: second[name] for name in names if name in second
    }


@given(
    total=st.integers(0, 10_000), weights=st.dictionaries(st.text(max_size=3), st.floats(0, 1e6))
)
def test_shares_sum_exactly(total: int, weights: dict[str, float]) -> None:
    """999 tokens by five ratios left four unassigned in the reference."""
    parts = split(total, weights)
    assert sum(parts.values()) == (total if sum(weights.values()) > 0 else 0)
    whole = sum(weights.values())
    for name, part in parts.items():
        assert abs(part - (total * (weights[name] / whole) if whole else 0)) < 1 + 1e-6


@given(ratios=ratios, region=st.integers(100, 600))
@example(ratios=dict.fromkeys(names, 0.0), region=115)  # the last ten tokens went to the other
def test_a_giant_neither_empties_its_source_nor_takes_from_others(
    ratios: dict[str, float], region: int
) -> None:
    """D-6, D-8: one oversized top hit must not change what the rest gets."""
    small = {"rag": [10] * 5, "tool": [15] * 5}
    with_giant = {"rag": [100_000, *small["rag"]], "tool": small["tool"]}
    without = allocate(small, region=region, ratios=ratios).shares
    found = allocate(with_giant, region=region, ratios=ratios).shares
    assert {n: s.used for n, s in found.items()} == {n: s.used for n, s in without.items()}
    assert found["rag"].placed == tuple(place + 1 for place in without["rag"].placed)
    assert found["tool"].placed == without["tool"].placed
