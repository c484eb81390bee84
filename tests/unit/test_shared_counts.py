"""What a process remembers of messages is bounded, and can be switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muntin import ConfigurationError, count_messages, fit_messages
from muntin.counting import counts_for, forget_shared_counts, limit_shared_counts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Give the other tests of this process the limits that they expect."""
    yield
    limit_shared_counts()


def chat(tenant: int) -> list[dict[str, Any]]:
    said = {"role": "user", "content": f"Tenant {tenant} asks about order {tenant}. " * 20}
    return [said, {"role": "assistant", "content": "It left. " * 40}, said]


def test_a_process_can_remember_nothing_of_what_it_counted() -> None:
    """A service that may not hold what a tenant wrote beyond the request must be able to say so."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return len(text) // 4

    count_messages(chat(1), counter=counter)
    once = len(counted)
    count_messages(chat(1), counter=counter)
    assert len(counted) - once < once
    limit_shared_counts(capacity=0)
    counted.clear()
    count_messages(chat(1), counter=counter)
    alone = len(counted)
    count_messages(chat(1), counter=counter)
    assert len(counted) == 2 * alone
    assert fit_messages(chat(1), budget=200, counter=counter).report.used <= 200


def test_limits_hold_and_what_was_held_is_forgotten_when_they_change() -> None:
    counts = counts_for()
    limit_shared_counts(capacity=10, max_characters=2_000)
    assert counts_for() is not counts
    assert (counts_for().capacity, counts_for().max_characters) == (10, 2_000)


@pytest.mark.parametrize("wrong", [-1, 1.5, "10", None, True])
def test_a_wrong_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="capacity must be an int"):
        limit_shared_counts(capacity=wrong)
    with pytest.raises(ConfigurationError, match="max_characters must be an int"):
        limit_shared_counts(max_characters=wrong)


def test_forgetting_frees_what_was_counted_and_keeps_the_limits() -> None:
    """A worker that trims ten thousand files must not keep the messages of all of them."""
    limit_shared_counts(capacity=3)
    before = counts_for()
    forget_shared_counts()

    assert counts_for() is not before
    assert counts_for().capacity == 3
