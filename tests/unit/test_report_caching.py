"""Warnings about what moves in the stable part of a prompt."""

from __future__ import annotations

import pytest

from muntin.report import cache_warnings


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Today is 2024-01-17.", "a date at character 9"),
        ("Today is 17.01.2024.", "a date at character 9"),
        ("It is 09:41.", "a clock time at character 6"),
        ("Run 123e4567-e89b-12d3-a456-426614174000.", "a random id at character 4"),
    ],
)
def test_what_moves_is_found_where_it_stands(text: str, what: str) -> None:
    """One clock in a system prompt makes every call pay for the whole prompt again."""
    (warning,) = cache_warnings(text)
    assert warning.startswith(what)


@pytest.mark.parametrize(
    "text", ["", "You answer briefly.", "Ratio 3:2, version 1.20.3, chapter 4-01.", "1" * 100_000]
)
def test_what_stays_is_left_alone(text: str) -> None:
    assert cache_warnings(text) == ()


def test_only_the_first_places_are_told() -> None:
    """Nothing behind the first change is reused, so the hundredth is noise."""
    assert len(cache_warnings("at 09:41 " * 100)) == 5
