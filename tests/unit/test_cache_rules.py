"""Minimums and prices of prompt caches decide what a stable prefix is worth."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import fit_messages
from muntin.errors import ConfigurationError
from muntin.report import AS_OF, CACHE_RULES, AssemblyReport, CacheRules, Piece, cache_rules


@pytest.mark.parametrize(
    ("model", "minimum", "write"),
    [
        ("claude-opus-5-20260901", 512, 1.25), ("claude-opus-4-8", 1024, 1.25),
        ("claude-sonnet-4-5", 1024, 1.25), ("claude-opus-4-7", 2048, 1.25),
        ("claude-haiku-4-5", 4096, 1.25), ("claude-sonnet-5-5", 4096, 1.25),
        ("gpt-4o", 1024, 1.0), ("gpt-5.5", 1024, 1.0), ("gpt-5.6", 1024, 1.25),
        ("gpt-6.2-sol", 1024, 1.25), ("gemini-2.5-pro", 2048, 1.0),
        ("gemini-3.1-pro", 4096, 1.0), ("grok-4", 128, 1.0), ("qwen3-max", 256, 1.0),
    ],
)  # fmt: skip
def test_each_family_has_its_own_row(model: str, minimum: int, write: float) -> None:
    """The minimum of another family makes a worthless prefix look cached."""
    rules = cache_rules(model)

    assert rules is not None
    assert (rules.minimum, rules.write) == (minimum, write)
    assert datetime.date.fromisoformat(AS_OF).year >= 2026


@given(
    rules=st.sampled_from(CACHE_RULES), tokens=st.integers(0, 50_000), shared=st.integers(0, 60_000)
)
def test_a_price_is_between_reading_everything_and_writing_everything(
    rules: CacheRules, tokens: int, shared: int
) -> None:
    """A price outside these bounds would make a cut look cheaper than it is."""
    price = rules.price(tokens, shared=shared)

    assert rules.read * tokens <= price + 1e-9 <= max(rules.write, 1.0) * tokens + 2e-9
    assert price <= rules.price(tokens, shared=0) + 1e-9
    assert rules.cached(shared) <= shared
    if shared < rules.minimum:
        assert rules.cached(shared) == 0


def report(first: int, second: int, text: str = "b") -> AssemblyReport:
    pieces = (Piece.of("0 system", "a" * first, first), Piece.of("1 user", text * second, second))
    return AssemblyReport(
        kind="conversation", budget=90_000, used=first + second, counter="c", exact=True,
        fixed={"system": first + second}, pieces=pieces,
    )  # fmt: skip


@pytest.mark.parametrize(("prefix", "worth"), [(1000, 0), (1023, 0), (1024, 1024), (5000, 5000)])
def test_a_prefix_below_the_minimum_is_worth_nothing(prefix: int, worth: int) -> None:
    """Below the minimum nothing is cached, and no provider reports that."""
    before, after = report(prefix, 500), report(prefix, 700, "c")
    diff = after.diff(before)

    assert diff.stable_prefix_tokens == prefix
    assert diff.cached_tokens("gpt-4o") == worth
    cost = after.cost(input_per_million=1e6, previous=before, cache="gpt-4o")
    assert cost.cached == pytest.approx(0.1 * worth)
    assert cost.input == pytest.approx(prefix + 700 - worth)


def test_what_is_written_to_the_cache_costs_more_where_the_provider_charges_for_it() -> None:
    """A cut makes everything behind it be written again."""
    before, after = report(2000, 500), report(2000, 700, "c")

    cost = after.cost(input_per_million=1e6, previous=before, cache="claude-sonnet-4-5")
    assert (cost.cached, cost.input) == (pytest.approx(200), pytest.approx(1.25 * 700))
    plain = after.cost(input_per_million=1e6, previous=before)
    assert plain.total == pytest.approx(2700)


def test_an_unknown_cache_is_an_error_that_says_what_to_give() -> None:
    """A guessed price is worse than none."""
    fitted: Any = fit_messages([{"role": "user", "content": "Hi"}], budget=99)

    with pytest.raises(ConfigurationError, match="give CacheRules"):
        fitted.report.cost(input_per_million=1, cache="our-own-model")
    with pytest.raises(ConfigurationError, match="at least 1"):
        CacheRules(name="x", minimum=0, read=0.1)


def rows() -> list[str]:
    """Write the table of the docs from the data."""
    lines = ["| cache | smallest prefix | write | read | marks |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.name} | {one.minimum:,} | {one.write:g} | {one.read:g} | {one.marks or '–'} |"
        for one in CACHE_RULES
    ]
    return lines


def test_the_docs_hold_the_table() -> None:
    """A price in the docs that the code does not use misleads every plan that rests on it."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
    text = page.read_text(encoding="utf-8")
    shown = text.partition("<!-- caches: start -->\n")[2].partition("\n<!-- caches: end -->")[0]

    assert shown.splitlines() == rows()
    assert AS_OF in text
