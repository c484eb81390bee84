"""The promises of the conversation's one entry point, at every budget, for every shape."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counters import characters, superadditive, words
from muntin.conversations.fit import afit_messages, fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ContextWindowExceeded
from muntin.messages.shapes import shape_of, view
from muntin.messages.turns import Division, divide, leading_system, newest_user, pairing_problems
from strategies import SHAPES, any_text, conversations, nasty_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint

counters = st.sampled_from([characters, count_tokens, superadditive, words])
shares = st.floats(0.01, 1.1)


def _fit(messages: list[Any], budget: int, counter: Callable[[str], int]) -> list[Any] | None:
    """Fit, or return None where what must stay is over the budget: the error has to say so."""
    try:
        return fit_messages(messages, budget=budget, counter=counter).messages
    except ContextWindowExceeded as error:
        problem = error
    assert problem.needed > problem.available == budget
    assert sum(problem.parts.values()) == problem.needed
    return None


def _budget(messages: list[Any], share: float, counter: Callable[[str], int]) -> int:
    return max(1, int(share * count_messages(messages, counter=counter)))


@given(conversations(), shares, counters)
def test_the_output_is_never_over_the_budget(
    messages: list[Any], share: float, counter: Callable[[str], int]
) -> None:
    """P1: an overshoot of one token is a refused request, so the final count decides."""
    budget = _budget(messages, share, counter)
    out = _fit(messages, budget, counter)
    if out is not None:
        assert count_messages(out, counter=counter) <= budget


@given(conversations(), shares, counters)
def test_the_error_comes_only_when_what_is_protected_is_too_large(
    messages: list[Any], share: float, counter: Callable[[str], int]
) -> None:
    """P1 and P2: raising the budget to what the error asks for is enough, and one less is not."""
    try:
        fit_messages(messages, budget=_budget(messages, share, counter), counter=counter)
    except ContextWindowExceeded as error:
        needed = error.needed
    else:
        return
    assert _fit(messages, needed, counter) is not None
    assert _fit(messages, needed - 1, counter) is None


@given(conversations(), shares, counters)
def test_what_is_protected_survives_unchanged(
    messages: list[Any], share: float, counter: Callable[[str], int]
) -> None:
    """P2: a lost instruction or question makes the model answer something else."""
    out = _fit(messages, _budget(messages, share, counter), counter)
    if out is None:
        return
    views = [view(message) for message in messages]
    protected = set(range(leading_system(views)))
    protected |= {at for at, one in enumerate(views) if one.pinned}
    newest = newest_user(views)
    protected |= {newest} if newest is not None else set()
    for at in protected:
        assert any(kept == messages[at] for kept in out)


@given(conversations(), shares, counters)
def test_calls_and_results_stay_together(
    messages: list[Any], share: float, counter: Callable[[str], int]
) -> None:
    """P3: one orphan makes every later request of the conversation fail."""
    assert not pairing_problems([view(message) for message in messages])
    out = _fit(messages, _budget(messages, share, counter), counter)
    if out is not None:
        assert not pairing_problems([view(message) for message in out])


@settings(max_examples=6)
@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_every_budget_of_a_small_conversation_holds_every_promise(
    shape: str, data: st.DataObject
) -> None:
    """P1 to P3 have no lucky budgets: all of them from 1 to the total are tried."""
    messages = data.draw(conversations(shape, max_turns=2))
    total = count_messages(messages)
    for budget in range(1, total + 1, max(1, total // 60)):
        out = _fit(messages, budget, count_tokens)
        if out is not None:
            assert count_messages(out) <= budget
            assert not pairing_problems([view(message) for message in out])
            _check_thinking(messages, out)


def _check_thinking(messages: list[Any], out: list[Any]) -> None:
    """Signed thinking and reasoning items must not be edited, nor stand without their turn."""
    signed = [message for message in out if view(message).signed]
    assert all(message in messages for message in signed)
    for at, message in enumerate(out):
        if view(message).leads:
            follower = messages[messages.index(message) + 1]
            assert out[at + 1] == follower


@given(conversations(), shares)
def test_every_message_has_exactly_one_fate(messages: list[Any], share: float) -> None:
    """P4: what is in no decision is lost without a trace."""
    try:
        fitted = fit_messages(
            messages, budget=_budget(messages, share, count_tokens), counter=count_tokens
        )
    except ContextWindowExceeded:
        return
    report = fitted.report
    assert [decision.index for decision in report.decisions] == list(range(len(messages)))
    assert report.used == count_messages(fitted.messages)
    kept = [d.index for d in report.decisions if d.kind == "kept"]
    assert all(any(messages[at] == out for out in fitted.messages) for at in kept)
    gone = [d for d in report.decisions if d.kind in ("summarised", "dropped")]
    notes = sum(report.written.values()) > 0
    assert len(fitted.messages) == len(messages) - len(gone) + notes


@given(conversations(), shares, st.lists(st.booleans(), min_size=4, max_size=9))
def test_every_message_has_exactly_one_fate_when_pairs_are_mended_too(
    messages: list[Any], share: float, stays: list[bool]
) -> None:
    """P4: a result that mending takes out is lost as much as one for which there is no room."""
    broken = [one for at, one in enumerate(messages) if stays[at % len(stays)]]
    try:
        fitted = fit_messages(
            broken, budget=_budget(messages, share, count_tokens), repair=True, counter=count_tokens
        )
    except ContextWindowExceeded:
        return
    report = fitted.report
    assert [decision.index for decision in report.decisions] == list(range(len(broken)))
    assert report.used == count_messages(fitted.messages)
    for decision in report.decisions:
        if decision.kind == "kept" and decision.reason != "repaired":
            assert broken[decision.index] in fitted.messages
        if decision.reason == "orphaned":
            assert broken[decision.index] not in fitted.messages
    assert not pairing_problems([view(message) for message in fitted.messages])


@given(conversations(), shares, counters)
def test_fitting_is_pure_repeatable_and_settled(
    messages: list[Any], share: float, counter: Callable[[str], int]
) -> None:
    """P5: a changed input or a second answer breaks callers that retry, and prompt caches."""
    budget = _budget(messages, share, counter)
    before = copy.deepcopy(messages)
    out = _fit(messages, budget, counter)
    assert messages == before
    if out is None:
        return
    assert _fit(copy.deepcopy(messages), budget, counter) == out
    assert fit_messages(out, budget=budget, counter=counter).messages is out
    if count_messages(messages, counter=counter) <= budget:
        assert out is messages


@given(conversations("openai-chat"), shares, st.lists(any_text, max_size=3), nasty_text)
def test_the_output_can_be_sent(
    messages: list[Any], share: float, said: list[str], result: str
) -> None:
    """P7: half a character anywhere makes the whole body unreadable, for good."""
    messages += [{"role": "user", "content": text} for text in said]
    call = {"id": "z", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": "z", "content": result * 9})
    out = _fit(messages, _budget(messages, share, count_tokens), count_tokens)
    if out is None:
        return
    json.loads(json.dumps(out, ensure_ascii=False).encode())
    for message in out:
        for one in view(message).calls:
            json.loads(one.arguments)


@settings(max_examples=10)
@given(conversations(), shares)
def test_both_entry_points_give_the_same_messages(messages: list[Any], share: float) -> None:
    """A twin that drifts is found by whoever switches from one to the other."""
    import asyncio

    budget = _budget(messages, share, count_tokens)
    plain = _fit(messages, budget, count_tokens)
    if plain is not None:
        fitted = asyncio.run(afit_messages(messages, budget=budget, counter=count_tokens))
        assert fitted.messages == plain


@settings(max_examples=10)
@given(conversations(), st.sampled_from(["A-1009", "order 2024-05-22", "中文"]), shares)
def test_a_question_changes_what_stays_but_no_promise(
    messages: list[Any], question: str, share: float
) -> None:
    """Recall moves messages about; the budget and the pairs hold all the same."""
    budget = _budget(messages, share, count_tokens)
    try:
        fitted = fit_messages(messages, budget=budget, question=question, counter=count_tokens)
    except ContextWindowExceeded:
        return
    assert count_messages(fitted.messages) <= budget
    assert not pairing_problems([view(message) for message in fitted.messages])


@pytest.mark.parametrize("shape", SHAPES)
def test_notes_are_of_the_shape_of_the_conversation(shape: str, entry_point: EntryPoint) -> None:
    """A note of a foreign type fails where the messages are sent."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - its own tests

    write = _Writer(shape)
    for at in range(12):
        write.say("user", f"Where is order A-{1000 + at}? " * 4)
        write.answer(write.call("", ["x"]), [f"order_id: A-{1000 + at} " * 20])
    write.say("user", "And now?")
    messages = write.messages
    budget = count_messages(messages) // 3
    fitted = entry_point(fit_messages, afit_messages, messages, budget=budget)
    assert all(isinstance(message, type(messages[0])) for message in fitted.messages)
    assert all(shape_of(message) for message in fitted.messages)


@given(conversation=conversations(max_turns=4), seen=st.lists(st.floats(0, 1), max_size=3))
def test_dividing_on_from_an_earlier_division_finds_the_same_units(
    conversation: list[Any], seen: list[float]
) -> None:
    """What is remembered of a shorter conversation must not part a late result from its call."""
    views = [view(message) for message in conversation]
    known: Division | None = None
    for share in sorted(seen):
        known = divide(views[: int(share * len(views))], known)
    assert divide(views, known) == divide(views)
