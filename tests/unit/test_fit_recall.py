"""Recall: the newest user message brings back what it asks for, unless that is switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from case_messages import A, S, T, U
from muntin.conversations import NEWEST
from muntin.conversations.fit import afit_messages, fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.messages.shapes import view
from strategies import SHAPES

if TYPE_CHECKING:
    from conftest import EntryPoint


def _depots(rounds: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [S]
    for at in range(rounds):
        messages += [U(f"Where is parcel P-{1000 + at}?")]
        messages += [A(text=f"Parcel P-{1000 + at} is in depot lantern-{at}.")]
    return messages


def _said(messages: Any) -> str:
    return "\n".join(view(one).text for one in messages)


@pytest.mark.parametrize("budget", [200, 400, 800])
@pytest.mark.parametrize("asked", [3, 40, 88])
def test_the_newest_message_brings_its_answer_back(
    budget: int, asked: int, entry_point: EntryPoint
) -> None:
    """The answer stood in the history, and the model had to say that it does not know."""
    messages = [*_depots(100), U(f"In which depot was P-{1000 + asked} again?")]
    fitted = entry_point(fit_messages, afit_messages, messages, budget=budget, counter=count_tokens)
    answer = A(text=f"Parcel P-{1000 + asked} is in depot lantern-{asked}.")
    assert answer in fitted.messages
    assert "recalled" in {one.reason for one in fitted.report.decisions}


def test_recall_can_be_switched_off(entry_point: EntryPoint) -> None:
    messages = [*_depots(100), U("In which depot was P-1003 again?")]
    explicit = entry_point(
        fit_messages, afit_messages, messages, budget=400, question=NEWEST, counter=count_tokens
    )
    default = entry_point(fit_messages, afit_messages, messages, budget=400, counter=count_tokens)
    assert explicit.messages == default.messages
    off = entry_point(
        fit_messages, afit_messages, messages, budget=400, question=None, counter=count_tokens
    )
    assert A(text="Parcel P-1003 is in depot lantern-3.") not in off.messages
    assert messages[-5:-1] == off.messages[-5:-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_old_tool_round_comes_back_in_every_shape(shape: str, entry_point: EntryPoint) -> None:
    """Among many rounds the one with the rare word of the question is the one that is needed."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - its own tests

    write = _Writer(shape)
    write.say("user", "Read all tickets.")
    for at in range(60):
        write.answer(write.call("", [f"ticket {at}"]), [f"ticket {at}: owner zubrowka{at}x. " * 6])
    write.say("assistant", "All read.")
    write.say("user", "Who owned the one of zubrowka7x?")
    budget = count_messages(write.messages) // 4
    fitted = entry_point(
        fit_messages, afit_messages, write.messages, budget=budget, counter=count_tokens
    )
    results = [result.text for one in fitted.messages for result in view(one).results]
    assert any("zubrowka7x" in text for text in results)


@pytest.mark.parametrize("share", [0.2, 0.35, 0.5])
def test_a_question_does_not_cost_the_facts_that_stay_without_it(share: float) -> None:
    """With the question given the answer was lost, and without it was kept."""
    paste = "\n".join(f"line {at}: all is well" for at in range(60))
    paste = paste.replace("line 31: all is well", "line 31: process pid: PID-9876-CONFLICT")
    messages = [U("Look at the log."), A(text="Please paste it."), U(paste), A(text="I have it.")]
    for at in range(12):
        messages += [U(f"Noise {at}"), A(text=f"Acknowledged {at}")]
    budget = int(share * count_messages(messages))
    for question in (None, NEWEST, "What is the exact PID that is causing the conflict?"):
        fitted = fit_messages(messages, budget=budget, question=question, counter=count_tokens)
        assert "PID-9876-CONFLICT" in _said(fitted.messages)


def test_a_go_ahead_asks_for_what_it_lets_go_on(entry_point: EntryPoint) -> None:
    messages = [*_depots(60), U("Tell me about P-1003."), A(text="Shall I look?"), U("yes")]
    fitted = entry_point(fit_messages, afit_messages, messages, budget=400, counter=count_tokens)
    assert A(text="Parcel P-1003 is in depot lantern-3.") in fitted.messages


def test_recall_parts_no_call_from_its_result(entry_point: EntryPoint) -> None:
    from muntin.messages import pairing_problems

    messages = [S, U("Read.")]
    for at in range(30):
        messages += [A(f"c{at}"), T(f"c{at}", f"entry K-{at} " * 20)]
    messages += [A(text="Read."), U("What was in K-4?")]
    for budget in range(120, count_messages(messages), 40):
        fitted = entry_point(
            fit_messages, afit_messages, messages, budget=budget, counter=count_tokens
        )
        assert not pairing_problems([view(one) for one in fitted.messages])
        assert fitted.report.used <= budget
