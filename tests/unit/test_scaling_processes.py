"""Batches over local processes: the same results in order, and one bad record is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muntin import ConfigurationError, ContextError, count_tokens
from muntin.scaling import Outcome, Progress, map_records
from scaling_functions import double, ends_at_once, killed_by_seven

if TYPE_CHECKING:
    from collections.abc import Iterator


def values(outcomes: Iterator[Outcome[Any]]) -> list[Any]:
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_records(workers: int) -> None:
    """A result beside the wrong record is a wrong answer for another user."""
    found = list(map_records(double, range(10), workers=workers))
    assert [outcome.index for outcome in found] == list(range(10))
    assert values(iter(found)) == [2 * number for number in range(10)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_record_that_raises_is_reported_and_the_batch_goes_on(workers: int) -> None:
    """One broken conversation in a million must not cost the night's run."""
    seen: list[Progress] = []
    records = iter(range(20))
    found = list(map_records(double, records, workers=workers, on_progress=seen.append))
    assert [outcome.index for outcome in found if outcome.error] == [13, 17]
    assert isinstance(found[13].error, ValueError)
    assert "does not load" in str(found[17].error)
    assert found[19].value == 38
    assert seen[-1] == Progress(done=20, failed=2, total=None)


def test_a_record_that_kills_its_worker_is_reported_and_the_batch_goes_on() -> None:
    """The kernel ends the worker whose record needs too much memory; the others are sound."""
    found = list(map_records(killed_by_seven, list(range(12)), workers=2))
    assert [outcome.index for outcome in found if outcome.error] == [7]
    assert isinstance(found[7].error, ContextError)
    assert "worker process ended" in str(found[7].error)
    assert values(iter(found))[8:] == [16, 18, 20, 22]


def test_what_cannot_be_sent_is_reported_for_its_record() -> None:
    """A result with a lock or a lambda in it must not end the batch, nor be lost in silence."""
    found = list(map_records(ends_at_once, [0, 1, 2], workers=2))
    assert [outcome.error is None for outcome in found] == [True, False, True]
    assert "cannot be sent back" in str(found[1].error)
    records: list[Any] = ["a", lambda: "b", "c"]
    sent = list(map_records(count_tokens, records, workers=2))
    assert [outcome.error is None for outcome in sent] == [True, False, True]


def test_records_are_read_as_they_are_needed() -> None:
    """A batch larger than memory must not be read into memory first."""
    taken: list[int] = []

    def records() -> Iterator[int]:
        for number in range(100_000):
            taken.append(number)
            yield number

    first = next(map_records(double, records(), workers=2))
    assert first.value == 0
    assert len(taken) < 1_000


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_a_wrong_number_of_workers_is_refused(workers: Any) -> None:
    with pytest.raises(ConfigurationError, match="workers must be"):
        map_records(double, [1], workers=workers)


def test_a_function_that_cannot_be_sent_is_refused_before_any_process_starts() -> None:
    with pytest.raises(ConfigurationError, match="define it in a module"):
        map_records(lambda number: number, [1, 2], workers=2)
    assert values(map_records(lambda number: number, [1, 2], workers=1)) == [1, 2]


def test_an_empty_batch_has_no_outcomes() -> None:
    assert list(map_records(double, [], workers=2)) == []
