"""Cases: the question, the task or the rules go missing, and the model answers something else.

Also what is as bad: an answered question that reads like an open one, a finished plan that comes
back as open, a message that is neither kept nor covered. The properties are
`test_what_is_protected_survives_every_entry_point` and `test_every_message_is_somewhere`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import (
    ENTRY_POINTS,
    A,
    S,
    T,
    U,
    budgets,
    fit_or_none,
    saying,
    sound,
    steps,
    talk,
    text_of,
    trimmed,
)
from chats import Recorder
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ContextWindowExceeded
from muntin.messages.message import Message
from muntin.messages.shapes import view
from muntin.messages.shapes.neutral import INJECTED
from muntin.messages.turns import in_flight, leading_system, newest_user, units
from muntin.state.agent_state import AgentState
from muntin.state.reinjection import is_state_block
from strategies import conversations

if TYPE_CHECKING:
    from muntin.messages.message import Role

RULES = {"role": "system", "content": "rule " * 300}

CROWDED: dict[str, list[dict[str, Any]]] = {
    "an injected summary that fills the budget": [
        RULES, U("[Earlier messages: 9 left out]\n" + "fact: x-1 " * 150), U("the new question")
    ],
    "memory in front of the question": [
        S, {"role": "system", "content": "memory " * 400}, *talk(4), U("the new question")
    ],
    "a question behind forty turns": [S, *talk(40), U("the new question")],
    "a question behind two hundred rounds": [S, U(), *steps(200), A(), U("the new question")],
}  # fmt: skip


@pytest.mark.parametrize("name", CROWDED)
def test_the_new_question_outlives_everything_else(name: str) -> None:
    """Evicting by index, whatever is injected, drops what was just asked."""
    messages = CROWDED[name]
    views = [view(message) for message in messages]
    least = count_messages([*messages[: leading_system(views)], messages[-1]])
    for budget in (least, least + 20, least + 200):
        fitted = fit_messages(messages, budget=budget, counter=count_tokens)
        assert fitted.messages[-1] == U("the new question")
        assert fitted.report.used <= budget
    with pytest.raises(ContextWindowExceeded, match="newest user message") as caught:
        fit_messages(messages, budget=least - 1, counter=count_tokens)
    assert (caught.value.needed, caught.value.available) == (least, least - 1)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_a_question_stored_before_the_cut_is_not_cut(entry_point: str) -> None:
    """Where the new row is in the store already, "compact all rows" takes it along."""
    stored = [S, *talk(12), U("stored a moment ago")]
    out = trimmed(entry_point, stored, 240)
    assert out is not None
    assert len(out) < len(stored)
    assert out[-1] is stored[-1]


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("budget", [40, 80, 160])
def test_the_system_message_is_kept_and_counted(budget: int, entry_point: str) -> None:
    """A list filtered of system messages for the cut comes back without them."""
    messages = [S, *talk(10, words=9)]
    out = trimmed(entry_point, messages, budget)
    if out is None:
        assert (
            entry_point == "reduce_agent"
        )  # it keeps the newest step whatever that costs, and says so
        return
    assert out[0] is S
    assert out.count(S) == 1
    if entry_point == "fit_messages":
        assert count_messages(out) <= budget


@pytest.mark.parametrize(("keep", "stay"), [(1, 2), (2, 2), (3, 3)])
def test_one_recent_message_is_a_number_like_any_other(keep: int, stay: int) -> None:
    """Keeping one message beside the system's ended in an index error; the question stays too."""
    history = [S, *talk(10)]
    compactor = HistoryCompactor(saying("They spoke."), keep_recent=keep, trigger_tokens=100)
    out = compactor.compact(history)
    assert [out[0], *out[2:]] == [S, *history[-stay:]]


@settings(max_examples=20)
@given(conversations(), st.floats(0.01, 1.1), st.sampled_from(sorted(ENTRY_POINTS)))
def test_what_is_protected_survives_every_entry_point(
    messages: list[Any], share: float, entry_point: str
) -> None:
    """The kind's property: leading system messages, pins, the newest request, calls in flight."""
    out = trimmed(entry_point, messages, max(1, int(share * count_messages(messages))))
    if out is None:
        return
    views = [view(message) for message in messages]
    held = {*range(leading_system(views)), *(at for at, one in enumerate(views) if one.pinned)}
    newest = newest_user(views)
    if newest is not None:
        held.add(newest)
    assert all(any(one == messages[at] for one in out) for at in held)
    tail = in_flight(views, units(views))
    running = {one for at in (tail.indices if tail else ()) for one in views[at].calls}
    assert running <= {one for message in out for one in view(message).calls}


# --- neither kept nor covered --------------------------------------------------------------------


def test_nothing_falls_between_recap_and_tail() -> None:
    """Summarising up to the cut and clearing up to the end loses what lies between."""
    history = [U(f"message {at} " * 9) if at % 2 == 0 else A(text=f"message {at} " * 9)
               for at in range(8)]  # fmt: skip
    for keep in range(1, 8):
        summarize = Recorder("They spoke.")
        compactor = HistoryCompactor(summarize, keep_recent=keep, trigger_tokens=60)
        out = compactor.compact(history)
        told = "".join(summarize.texts)
        for message in history:
            assert (message["content"].strip() in told) is (message not in out)


def test_four_results_of_which_two_are_folded() -> None:
    """The same with tool rounds: each result is told or there, and none is both."""
    history = [U("look everywhere"), *steps(4)]
    summarize = Recorder("Two places were empty.")
    compactor = HistoryCompactor(summarize, keep_recent=4, trigger_tokens=60)
    out = compactor.compact(history)
    results = [message for message in history if message["role"] == "tool"]
    assert [message in out for message in results] == [False, False, True, True]
    assert [message["content"] in summarize.texts[0] for message in results] == [
        True, True, False, False
    ]  # fmt: skip


@settings(max_examples=20)
@given(conversations(), st.floats(0.05, 0.9))
def test_every_message_is_somewhere(messages: list[Any], share: float) -> None:
    """The kind's second property: kept or told to the summariser, each message, at each size."""
    fitted = fit_or_none(messages, max(1, int(share * count_messages(messages))))
    if fitted is None:
        return
    decisions = fitted.report.decisions
    assert [decision.index for decision in decisions] == list(range(len(messages)))
    stays = [d.index for d in decisions if d.kind in ("kept", "shortened")]
    notes = sum(one not in messages and view(one).injected for one in fitted.messages)
    assert len(fitted.messages) - len(stays) in (0, 1, notes)


# --- who asked what ------------------------------------------------------------------------------


def test_a_heartbeat_is_nobodys_question() -> None:
    """A message the program sends in the user's name pushes the real question out."""
    question = Message("Where is my order?", "user")
    rounds: list[Any] = [Message("Be brief.", "system"), Message("hello " * 30, "user")]
    rounds += [Message("hi " * 30, "assistant"), question, Message("I look.", "assistant")]
    beat = Message("[heartbeat]", "user", metadata={INJECTED: True})
    assert view(beat).injected
    for entry_point in ENTRY_POINTS:
        out = trimmed(entry_point, [*rounds, beat], 60)
        assert out is not None
        assert question in out
        assert out.count(rounds[0]) == 1


@pytest.mark.parametrize("entry_point", ["fit_messages", "HistoryCompactor"])
def test_a_finished_task_is_told_as_finished_and_the_open_one_stays_last(entry_point: str) -> None:
    """After a cut an agent does again what it had done, if the cut says only what was asked."""
    messages = [
        S,
        U("Do X: rename the branch."),
        A(text="Done: X, the branch is renamed to main-2. " * 12),
        U("Do Y: tag the release."),
        A("t"),
        T("t", "tagging " * 30),
    ]
    told: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        told.append(text)
        return "The branch was renamed to main-2."

    if entry_point == "fit_messages":
        out = fit_messages(
            messages, budget=150, summarizer=summarize, counter=count_tokens
        ).messages
    else:
        out = HistoryCompactor(summarize, keep_recent=1, trigger_tokens=50).compact(messages)
    assert "Done: X, the branch is renamed" in told[0]
    assert "Do Y" not in told[0]
    assert "renamed to main-2" in text_of(out[:2])
    assert [view(m).text for m in out[2:] if view(m).is_user_turn] == ["Do Y: tag the release."]
    assert [view(m).role for m in out[-3:]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("last", "is_open"), [(U("go on"), True), (A(text="done"), False), (T("s0_0"), True)]
)
def test_the_result_says_whether_a_turn_is_open(*, last: dict[str, Any], is_open: bool) -> None:
    """A made-up "continue" sets an agent to work nobody asked for."""
    messages = [S, U(), A("s0_0"), *([T("s0_0")] if last["role"] != "tool" else []), last]
    fitted = fit_messages(messages, budget=1_000, counter=count_tokens)
    assert fitted.turn_open is is_open
    assert fitted.messages[-1] == last


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_no_turn_is_opened_by_a_cut(entry_point: str) -> None:
    """After a finished answer nothing is added: no request, no recap behind it."""
    messages = [S, *talk(12), U("and the last thing?"), A(text="That is all done.")]
    out = trimmed(entry_point, messages, 200)
    assert out is not None
    assert len(out) < len(messages)
    assert out[-1] == messages[-1]
    added = [message for message in out if message not in messages]
    assert added in ([], [out[1]])


def test_an_answered_question_is_not_left_as_the_last_word() -> None:
    """A recap behind an old request reads as: do this now."""
    messages = [S, *talk(10), U("the old request"), A(text="Which of both do you mean?")]
    for keep in (1, 2, 3):
        compactor = HistoryCompactor(saying("They spoke."), keep_recent=keep, trigger_tokens=80)
        out = compactor.compact(messages)
        assert out[-1] == messages[-1]
        assert out.index(messages[-1]) > out.index(next(m for m in out if "[Recap]" in str(m)))
    for budget in budgets(count_messages(messages), 40):
        fitted = fit_or_none(messages, budget)
        if fitted and messages[-1] in fitted.messages:
            assert fitted.messages[-1] == messages[-1]
            assert fitted.turn_open is False


# --- rules and plans -----------------------------------------------------------------------------


@pytest.mark.parametrize("entry_point", ["fit_messages", "HistoryCompactor"])
def test_rules_that_are_pinned_survive_every_cut(entry_point: str) -> None:
    """Project rules that are summarised with the chat lose their force."""
    rules = Message("Never deploy on Fridays.", "user", pinned=True)
    messages: list[Any] = [Message("Be brief.", "system"), rules]
    roles: tuple[Role, Role] = ("user", "assistant")
    cuts = 0
    for at in range(50):
        messages += [Message(f"message {at} " * 8, role) for role in roles]
        before = len(messages)
        messages = list(trimmed(entry_point, messages, 300) or messages)
        cuts += len(messages) < before
    assert cuts >= 3
    assert messages.count(rules) == 1
    assert text_of(messages).count("Never deploy") == 1


PLAN: list[Any] = ["read", "plan", "build", "test", "ship"]


def test_a_plan_comes_back_with_what_is_done_and_where_to_go_on() -> None:
    """A plan without marks is made again, and again."""
    state = AgentState(goal="Ship it", plan=PLAN, completed_steps=PLAN[:3])
    fitted = fit_messages(
        [S, U(), *steps(20), A(), U("and?")], budget=900, state=state, counter=count_tokens
    )
    block = next(view(m).text for m in fitted.messages if is_state_block(view(m).text))
    assert [line for line in block.splitlines() if line.startswith("[DONE]")] == [
        "[DONE] read", "[DONE] plan", "[DONE] build"
    ]  # fmt: skip
    assert "[CURRENT] test" in block
    assert "continue at step 4 of 5, test" in block
    assert fitted.messages[-1] == U("and?")
    assert fitted.report.used <= 900


def test_a_finished_plan_comes_back_as_finished() -> None:
    """Completed steps that come back as open are done twice."""
    state = AgentState(goal="Ship it", plan=PLAN, completed_steps=PLAN)
    fitted = fit_messages(
        [S, U(), *steps(20), A(), U("and?")], budget=900, state=state, counter=count_tokens
    )
    text = text_of(fitted.messages)
    assert text.count("[DONE]") == 5
    assert "continue at" not in text


def test_a_step_put_in_front_moves_no_mark() -> None:
    """By position, the new first step would be done and the last one open again."""
    state = AgentState(goal="Ship it", plan=[*PLAN, "tell"], completed_steps=PLAN)
    state.plan = ["ask", *state.plan]
    fitted = fit_messages(
        [S, U(), *steps(20), A(), U("and?")], budget=900, state=state, counter=count_tokens
    )
    text = text_of(fitted.messages)
    assert text.count("[DONE]") == 5
    assert "[DONE] ask" not in text
    assert "[DONE] ship" in text


def test_a_recap_is_background_and_the_question_is_last() -> None:
    """A model answers the question it finds in a recap instead of the one that was asked."""
    messages = [S, U("what is X? " * 40), A(text="It is one. " * 40), U("what is Y?")]
    told = "The user asked: what is X? It was answered: one."
    fitted = fit_messages(
        messages, budget=130, summarizer=saying(told), counter=count_tokens
    ).messages
    assert fitted[1]["content"].startswith("[Earlier messages: ")
    assert "background and not instructions" in fitted[1]["content"]
    assert told in fitted[1]["content"]
    assert fitted[-1] == U("what is Y?")
    summarize = Recorder("SUM")
    compactor = HistoryCompactor(summarize, keep_recent=1, trigger_tokens=50)
    out = compactor.compact(messages)
    assert [out[1]["role"], out[-1]] == ["system", U("what is Y?")]
    assert "still open" in summarize.instructions[0] or "open" in summarize.instructions[0]
    assert sound(out)
