"""Where a fit takes its counter, its budget and its reserve from."""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest

from muntin import ConfigurationError, WindowBudgetConfig, counter_for, fit_messages

HASHES = " ".join(sha256(bytes([at])).hexdigest() for at in range(30))
HISTORY = [{"role": "user" if at % 2 == 0 else "assistant", "content": HASHES} for at in range(61)]


def test_text_that_costs_more_than_it_looks_stays_inside_by_default() -> None:
    """A hash costs twice what its length suggests, and a request of 15,000 tokens is refused."""
    fitted = fit_messages(HISTORY, budget=8_000)
    assert fitted.report.counter == "estimate_tokens"
    exact = fit_messages(fitted.messages, budget=100_000, counter="gpt-4o").report.used
    assert 4_000 < exact <= 8_000


@pytest.mark.parametrize(
    "model", ["gpt-4o", SimpleNamespace(model="gpt-4o", context_window=128_000)]
)
def test_the_model_gives_what_is_not_given(model: Any) -> None:
    """The model is all that the window and the counter depend on."""
    report = fit_messages(HISTORY[-1:], model=model).report
    reserve = WindowBudgetConfig().output_reserve(window=128_000, model_max_output=None)
    assert (report.window, report.reserve) == (128_000, reserve)
    assert report.budget == 128_000 - reserve
    assert report.counter == counter_for(model).name


def test_a_counter_and_a_budget_win_over_the_model() -> None:
    """A figure that is given is the figure that is used."""
    report = fit_messages(HISTORY[-1:], model="gpt-4o", budget=5_000, counter=len).report
    assert (report.budget, report.reserve, report.window) == (5_000, 0, None)
    assert report.counter == "len"


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        ({"window": 9_000, "reserve": 500}, 8_500),
        ({"window": 9_000, "reserve": 0}, 9_000),
        ({"window": 9_000, "budget": 7_000, "reserve": 2_000}, 7_000),
    ],
)
def test_the_reserve_is_kept_for_the_answer(given: dict[str, Any], budget: int) -> None:
    """An answer that is cut off is an answer that was paid for in vain."""
    report = fit_messages(HISTORY[-1:], **given).report
    assert report.budget == budget
    assert report.reserve == given["reserve"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give a budget, or the window or model"),
        ({"window": 900, "reserve": 900}, "leaves nothing of a window of 900"),
        ({"window": 900, "budget": 800, "reserve": 200}, "over the window of 900 tokens"),
        ({"window": 900, "reserve": -1}, "reserve must be an int of at least 0"),
        ({"model": "a model that has no name anywhere"}, "context window of .* is unknown"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(given: dict[str, Any], message: str) -> None:
    """A budget that nobody gave is a guess, and a guess is refused later by the provider."""
    with pytest.raises(ConfigurationError, match=message):
        fit_messages(HISTORY[-1:], **given)
