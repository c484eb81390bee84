"""The framing of a chat template is charged in every place that counts messages."""

from __future__ import annotations

from typing import Any

import pytest

from muntin import HistoryCompactor, Message, count_messages, count_tokens, fit_messages
from muntin.conversations import ExtractiveSummarizer
from muntin.counting import MessageCounts, counts_for, with_framing
from muntin.errors import ConfigurationError

TALK = [
    Message(f"{role} {at}: parcel P-{at} is in depot {at}.", role)
    for at in range(60)
    for role in ("user", "assistant")
] + [Message("Where is parcel P-7?")]


@pytest.mark.parametrize("framing", [0, 4, 5, 6, 12])
@pytest.mark.parametrize("budget", [150, 400, 1200])
def test_a_fit_charges_the_framing_it_is_given(framing: int, budget: int) -> None:
    """Two tokens too few a message overrun a small window by a tenth."""
    fitted = fit_messages(TALK, budget=budget, counter=count_tokens, framing=framing)

    real = count_messages(fitted.messages, counter=count_tokens, framing=framing)
    assert real <= budget
    assert fitted.report.used == real


def test_without_framing_the_one_of_the_counter_is_charged() -> None:
    """A default that ignores the counter makes every counter of a family wrong."""
    given = fit_messages(TALK, budget=400, counter=count_tokens, framing=6).messages
    carried = fit_messages(TALK, budget=400, counter=with_framing(count_tokens, 6)).messages

    assert list(given) == list(carried)
    assert len(fit_messages(TALK, budget=400, counter=count_tokens).messages) >= len(carried)


def test_a_compactor_counts_without_the_framing_of_its_counter() -> None:
    """Its triggers are tokens of text: another template must not move them."""
    outcomes: list[Any] = []
    for framing in (0, 4, 9):
        counter = with_framing(count_tokens, framing)
        compactor = HistoryCompactor(
            ExtractiveSummarizer(), trigger_tokens=600, token_counter=counter
        )
        compactor.compact(TALK)
        assert compactor.last_outcome is not None
        outcomes.append(compactor.last_outcome.tokens_before)

    assert len(set(outcomes)) == 1


@pytest.mark.parametrize("framing", [-1, 1.5, "4", True])
def test_a_framing_that_is_no_number_of_tokens_is_refused(framing: Any) -> None:
    """A wrong value has to be refused where it is given, not deep inside a count."""
    with pytest.raises(ConfigurationError, match="framing must be an int"):
        fit_messages(TALK, budget=400, counter=count_tokens, framing=framing)


def test_counts_and_framing_must_agree() -> None:
    """Counts remember what messages cost with their own framing."""
    counts = MessageCounts(count_tokens)
    assert counts.framing == counts_for(count_tokens).framing == 4
    with pytest.raises(ConfigurationError, match="framing is 6"):
        fit_messages(TALK, budget=400, counts=counts, framing=6)
