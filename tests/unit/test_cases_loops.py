"""Cases: compacting again and again, or not at all, or at the wrong time.

A pass that frees little is followed by the next one; a trigger that looks at user turns sleeps
through a run that has one. The properties are `test_a_fit_is_settled_at_once` and
`test_compacting_on_every_message_asks_now_and_then`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import A, S, T, U, fit_or_none, saying, sound, steps, talk, text_of
from chats import Recorder, chat
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ContextWindowExceeded
from muntin.messages.shapes import view
from muntin.state.agent_state import AgentState
from muntin.state.reinjection import is_state_block, reinject
from muntin.state.store import StateStore
from strategies import conversations

# --- after a cut ---------------------------------------------------------------------------------


def test_what_was_used_before_a_cut_does_not_trigger_the_next_one() -> None:
    """A count kept from before, 68,000 of 60,000, compacts on every prompt that follows."""
    history = [S, *talk(200, words=170), U("so?")]
    assert count_messages(history) > 60_000
    short = fit_messages(history, budget=60_000, counter=count_tokens)
    assert short.changed
    assert short.report.used == count_messages(short.messages)
    grown = [*short.messages, A(text="So it is."), U("and?")]
    assert fit_messages(grown, budget=60_000, counter=count_tokens).messages is grown

    summarize = Recorder("They spoke.")
    compactor = HistoryCompactor(
        summarize, keep_recent=4, trigger_tokens=60_000, max_input_tokens=100_000
    )
    out = compactor.compact(history)
    outcome = compactor.last_outcome
    assert outcome is not None
    assert outcome.tokens_before > 60_000
    assert outcome.tokens_after == sum(count_tokens(m["content"]) for m in out) < 9_000
    for at in range(20):
        out = [*out, U(f"more {at}"), A(text="yes")]
        assert compactor.compact(out) is out
    assert summarize.calls == 1


@pytest.mark.parametrize("fed_back", [False, True])
@pytest.mark.parametrize("tokens", [240, 450, 900])
def test_a_tail_near_the_trigger_is_not_compacted_on_every_message(
    tokens: int, *, fed_back: bool
) -> None:
    """Where what must stay is nine tenths of the trigger, each pass is followed by the next."""
    summarize = Recorder("They spoke.")
    compactor = HistoryCompactor(summarize, keep_recent=4, trigger_tokens=2_000)
    history: list[Any] = []
    for at in range(100):
        history = [*history, *chat(1, tokens=tokens, start=at)]
        out = compactor.compact(history)
        history = out if fed_back else history
        assert compactor.last_outcome is not None
        assert compactor.last_outcome.tokens_after <= 2_000 + 4 * tokens
    assert 1 < summarize.calls <= 100 * tokens // 667 + 1


@pytest.mark.parametrize("share", [0.90, 0.95, 0.99])
def test_overhead_that_fills_the_budget_cuts_once_or_says_so(share: float) -> None:
    """Nothing that is left out makes schemas smaller: compact, lose, compact."""
    tools = [{"name": f"tool_{at}", "description": "does things " * 20} for at in range(100)]
    overhead = count_messages([S], tools)
    budget = int(overhead / share)
    history = [S, *talk(30), U("so?")]
    fitted = fit_or_none(history, budget, tools=tools)
    if fitted is None:
        with pytest.raises(ContextWindowExceeded, match="tools and framing"):
            fit_messages(history, budget=budget, tools=tools, counter=count_tokens)
        return
    assert (
        fit_messages(fitted.messages, budget=budget, tools=tools, counter=count_tokens).messages
        is fitted.messages
    )


def test_fourteen_passes_that_free_a_hundredth_are_not_made() -> None:
    """Each of them costs a model call and the provider's cache, and frees next to nothing."""
    summarize = Recorder("x")
    history: list[Any] = [U("note " * 8), *chat(40, tokens=100)]
    compactor = HistoryCompactor(
        summarize, keep_recent=40, trigger_tokens=3_900, min_gain_tokens=390
    )
    for at in range(14):
        history = [*history, U(f"note {at}")] if at else history
        assert compactor.compact(history[:41]) == history[:41]
        assert compactor.last_outcome is not None
        assert compactor.last_outcome.reason == "too_little_to_fold"
    assert summarize.calls == 0


def test_a_hundred_texts_without_a_tool_are_cut_in_one_go() -> None:
    """Removing "20 % of tool output" five times sends the same request five times."""
    history = [S, *talk(50), U("?")]
    asked = Recorder("They spoke.")
    fitted = fit_messages(history, budget=500, summarizer=asked, counter=count_tokens)
    assert fitted.report.used <= 500
    assert asked.calls == 1
    with pytest.raises(ContextWindowExceeded, match="newest user message"):
        fit_messages([S, U("word " * 2_000)], budget=500, summarizer=asked, counter=count_tokens)
    assert asked.calls == 1


@settings(max_examples=20)
@given(conversations(), st.floats(0.05, 1.0))
def test_a_fit_is_settled_at_once(messages: list[Any], share: float) -> None:
    """The kind's property: what came out fits, so it is never cut a second time."""
    budget = max(1, int(share * count_messages(messages)))
    fitted = fit_or_none(messages, budget)
    if fitted is not None:
        assert (
            fit_messages(fitted.messages, budget=budget, counter=count_tokens).messages
            is fitted.messages
        )


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=10, max_size=60),
    trigger=st.integers(60, 400),
    keep=st.integers(1, 6),
)
def test_compacting_on_every_message_asks_now_and_then(
    sizes: list[int], trigger: int, keep: int
) -> None:
    """The kind's second property: every pass frees the stated gain, so few can be made."""
    summarize = Recorder("They spoke.")
    compactor = HistoryCompactor(summarize, keep_recent=keep, trigger_tokens=trigger)
    history: list[Any] = []
    for at, size in enumerate(sizes):
        history = [*history, *chat(1, tokens=size, start=at)]
        done = compactor.fold(history)
        assert done.outcome.tokens_after <= done.outcome.tokens_before
        if done.outcome.model_calls:
            assert done.outcome.reason == "compacted"
    gain = max(1, trigger // 10)
    assert summarize.calls <= sum(max(size, 3) for size in sizes) // gain + 1


# --- when to look --------------------------------------------------------------------------------


@pytest.mark.parametrize("entry_point", ["fit_messages", "reduce_agent"])
def test_a_long_tool_loop_is_looked_at_before_every_call(entry_point: str) -> None:
    """Looked at between user turns only, sixty steps of 3,000 pass a window of 128,000 unseen."""
    messages: list[Any] = [S, U("the only request")]
    cuts = 0
    for at in range(60):
        messages = [*messages, A(f"{at}"), T(f"{at}", f"row {at} " * 1_715)]
        if entry_point == "fit_messages":
            out = fit_messages(messages, budget=128_000, counter=count_tokens).messages
        else:
            out = reduce_agent_sync(
                messages, summarize=saying("Rows were read."), budget=128_000, turn_start=2
            )
        assert count_messages(out) <= 128_000
        cuts += out is not messages
        messages = list(out)
    assert count_messages(messages) > 30_000
    assert 1 <= cuts <= 9
    assert U("the only request") in messages


def test_recent_means_steps_and_tokens_and_not_turns_of_a_user() -> None:
    """A run without a person has one user message: pruning that waits for two never begins."""
    messages = [U("the only request"), *steps(200)]
    fitted = fit_messages(messages, budget=2_000, counter=count_tokens)
    assert U("the only request") in fitted.messages
    assert fitted.report.used <= 2_000
    assert fitted.messages[-2:] == messages[-2:]
    out = HistoryCompactor(saying("Rows."), keep_recent=4, trigger_tokens=2_000).compact(messages)
    assert len(out) < 60
    assert sound(out)


def test_one_turn_of_three_calls_counts_by_its_tokens() -> None:
    """An interval in turns never comes in a turn that makes three large calls."""
    history = [U("look"), *steps(3, text="row " * 400), U("so?")]
    summarize = Recorder("Rows were read.")
    compactor = HistoryCompactor(summarize, keep_recent=3, trigger_tokens=1_000)
    out = compactor.compact(history)
    assert summarize.calls == 1
    assert out[-3:] == history[-3:]


def test_the_next_step_does_not_overflow_at_once() -> None:
    """Cutting at every step moves the prefix every time, and the provider's cache with it."""
    messages: list[Any] = [S, U()]
    cuts = 0
    for at in range(60):
        messages = [*messages, A(f"{at}"), T(f"{at}", f"row {at} " * 12)]
        fitted = fit_messages(messages, budget=2_000, counter=count_tokens)
        cuts += fitted.changed
        messages = fitted.messages
    assert 0 < cuts <= 20


# --- what is put back ----------------------------------------------------------------------------


def blocks(messages: Any) -> list[str]:
    return [view(message).text for message in messages if is_state_block(view(message).text)]


def test_what_is_put_back_has_a_budget_of_its_own(tmp_path: Any) -> None:
    """A plan of 3,000 and diffs of 150,000 put back without a cap overflow at once, for ever."""
    plan: list[Any] = [f"step {at}: " + "do " * 30 for at in range(30)]
    findings: list[Any] = [f"diff {at}: " + "+ line " * 3_000 for at in range(30)]
    state = AgentState(goal="Ship it", plan=plan, key_findings=findings)
    history = [S, U(), *steps(160), A(), U("and?")]
    fitted = fit_messages(history, budget=4_000, state=state, counter=count_tokens)
    assert fitted.report.used <= 4_000
    assert fitted.changed
    assert len(blocks(fitted.messages)) == 1
    assert count_tokens(blocks(fitted.messages)[0]) <= 0.15 * 4_000
    assert (
        fit_messages(fitted.messages, budget=4_000, state=state, counter=count_tokens).messages
        is fitted.messages
    )
    # It is on disk, so a restart puts back the same.
    StateStore.directory(tmp_path).save(state)
    restored = StateStore.directory(tmp_path).load()
    assert blocks(
        fit_messages(history, budget=4_000, state=restored, counter=count_tokens).messages
    ) == blocks(fitted.messages)


def test_a_state_for_which_there_is_no_room_is_left_out_and_said() -> None:
    """One try with it, one without: the request goes out."""
    state = AgentState(goal="Ship it " * 400)
    history = [S, *talk(10), U("and? " * 12)]
    least = count_messages([S, history[-1]])
    fitted = fit_messages(history, budget=least + 12, state=state, counter=count_tokens)
    assert fitted.report.used <= least + 12
    assert blocks(fitted.messages) == []
    assert any("state did not fit" in note for note in fitted.report.notes)


def test_it_is_put_back_once_over_three_turns_and_a_retry() -> None:
    """Put in at the start only it is gone after a cut; put in by each retry it piles up."""
    state = AgentState(goal="Ship it", plan=["build", "test"], completed_steps=["build"])
    messages: list[Any] = [S, U(), *steps(40), A(), U("and?")]
    for turn in range(3):
        fitted = fit_messages(messages, budget=900, state=state, counter=count_tokens)
        again = fit_messages(messages, budget=900, state=state, counter=count_tokens)
        assert again.messages == fitted.messages
        assert len(blocks(fitted.messages)) == 1
        assert text_of(fitted.messages).count("[DONE] build") == 1
        assert reinject(state, fitted.messages, max_tokens=135) is fitted.messages
        state.key_findings.append(f"found in turn {turn}")
        once_more = reinject(state, fitted.messages, max_tokens=200)
        assert len(blocks(once_more)) == 1
        assert f"found in turn {turn}" in blocks(once_more)[0]
        messages = [*fitted.messages, *steps(20), A(), U(f"turn {turn}?")]
