"""Real agent runs at many budgets: a provider would refuse nothing that comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import MessageCounts, count_messages
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.errors import ContextWindowExceeded
from muntin.messages.shapes import view
from muntin.messages.turns import leading_system, newest_user, pairing_problems
from shared_data import json_lines, needs_data

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGETS = (
    0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.18, 0.2, 0.25, 0.3,
    0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1,
)  # fmt: skip
"""Shares of a run's tokens, from a crumb to more than all of it."""


def _runs(every: int) -> Iterator[list[dict[str, Any]]]:
    for at, record in enumerate(json_lines("trajectories.dev.jsonl.gz")):
        if at % every == 0:
            yield record["messages"]


def _check(messages: list[dict[str, Any]], shares: tuple[float, ...], counts: MessageCounts) -> int:
    """Fit one run into each share of its size; return how many fitted."""
    total = count_messages(messages, counter=counts.counter)
    views = [view(message) for message in messages]
    newest = newest_user(views)
    assert newest is not None
    must = [*messages[: leading_system(views)], messages[newest]]
    fitted = 0
    for share in shares:
        budget = max(1, int(share * total))
        try:
            out = fit_messages(messages, budget=budget, counts=counts).messages
        except ContextWindowExceeded as error:
            needed = error.needed
        else:
            fitted += 1
            assert count_messages(out, counter=counts.counter) <= budget
            assert not pairing_problems([view(message) for message in out])
            assert all(message in out for message in must)
            continue
        assert needed > budget
    return fitted


@needs_data
def test_some_real_runs_at_a_few_budgets() -> None:
    counts = MessageCounts(TiktokenCounter("o200k_base"))
    for messages in _runs(every=30):
        assert _check(messages, (0.05, 0.25, 0.6, 1.1), counts) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@needs_data
def test_every_real_run_at_every_budget() -> None:
    """Most tools orphan results, lose the question or overrun in a third of these."""
    counts = MessageCounts(TiktokenCounter("o200k_base"))
    runs = list(_runs(every=1))
    assert len(runs) == 89
    assert sum(_check(messages, BUDGETS, counts) for messages in runs) > 12 * len(runs)
