"""When a history is compacted, what is kept, and who may say no."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import sound
from chats import Recorder, call, chat, compact, said
from muntin.conversations.compaction import CompactionPlan, HistoryCompactor
from muntin.counting import count_tokens
from muntin.errors import ConfigurationError
from muntin.messages import Message
from muntin.messages.shapes import view

if TYPE_CHECKING:
    from conftest import EntryPoint


def _reason(compactor: HistoryCompactor) -> str:
    assert compactor.last_outcome is not None
    return compactor.last_outcome.reason


@pytest.mark.parametrize(
    ("trigger", "window", "at"),
    [(100, None, 11), (("tokens", 100), None, 11), (0.5, 200, 11), (("fraction", 0.5), 200, 11),
     (("messages", 14), None, 15)],
)  # fmt: skip
def test_a_trigger_is_tokens_a_share_or_messages(
    entry_point: EntryPoint, trigger: Any, window: int | None, at: int
) -> None:
    """People think of their window in shares; a count of messages is what some stores know."""
    for size in (at - 1, at):
        compactor = HistoryCompactor(Recorder(), trigger=trigger, window=window, keep_recent=2)
        out = compact(entry_point, compactor, chat(size))
        assert (len(out) < size) is (size == at)


@pytest.mark.parametrize(
    ("keep", "window", "kept"),
    [(45, None, 4), (("tokens", 45), None, 4), (0.05, 900, 4), (("messages", 7), None, 7),
     (0, None, 1)],
)  # fmt: skip
def test_what_is_kept_is_tokens_a_share_or_messages(
    keep: Any, window: int | None, kept: int
) -> None:
    """Four messages may be forty tokens or forty thousand."""
    compactor = HistoryCompactor(
        Recorder(), trigger_tokens=100, keep=keep, window=window, min_gain_tokens=1
    )
    out = compactor.compact(chat(21))
    assert out[1:] == chat(21)[-kept:]


@pytest.mark.parametrize(
    "limits",
    [{"trigger": 0.5}, {"keep": 0.1}, {"trigger": 1.5, "window": 99}, {"trigger": True},
     {"trigger": ("words", 5)}, {"trigger": ("messages", 0)}, {"keep": ("tokens", -1)},
     {"keep": ("messages", "4")}, {"trigger": "300"}, {"window": 0}, {"keep": (1, 2, 3)}],
)  # fmt: skip
def test_a_limit_of_the_wrong_form_is_refused_by_name(limits: dict[str, Any]) -> None:
    """A trigger that is never reached is a history that grows for ever."""
    with pytest.raises(ConfigurationError, match=next(iter(limits))):
        HistoryCompactor(**limits)


def test_a_trigger_of_messages_is_calm() -> None:
    """A model must not be asked at every message once there are many."""
    summarize = Recorder()
    compactor = HistoryCompactor(summarize, trigger=("messages", 20), keep_recent=4)
    for size in range(1, 200):
        assert len(compactor.compact(chat(size))) <= 20
    assert summarize.calls <= 13


# --- the hook ------------------------------------------------------------------------------------


def test_a_hook_sees_the_plan_and_may_veto_it(entry_point: EntryPoint) -> None:
    """An application that is about to save, or to quote, must be able to wait."""
    plans: list[CompactionPlan] = []
    summarize = Recorder()
    compactor = HistoryCompactor(
        summarize, trigger_tokens=100, keep_recent=2, before_compaction=plans.append
    )
    history = [Message("You help.", "system"), *chat(20)]
    assert compact(entry_point, compactor, history) is history
    assert _reason(compactor) == "vetoed"
    assert summarize.calls == 0
    assert [plan.fold for plan in plans] == [tuple(range(1, 19))]
    assert plans[0].tokens == 180
    assert compact(entry_point, compactor, history) is history


def test_a_hook_may_keep_more(entry_point: EntryPoint) -> None:
    """What a user marked in the interface stays, although no message says so."""

    def narrow(plan: CompactionPlan) -> CompactionPlan:
        return replace(plan, fold=tuple(at for at in plan.fold if at not in (4, 5)))

    compactor = HistoryCompactor(
        Recorder(), trigger_tokens=100, keep_recent=2, before_compaction=narrow
    )
    history = chat(20)
    out = compact(entry_point, compactor, history)
    assert out[1:] == [history[4], history[5], *history[18:]]
    assert _reason(compactor) == "compacted"


def test_a_hook_may_not_fold_what_must_stay() -> None:
    """The newest question would be summarised away by a wrong position."""
    compactor = HistoryCompactor(
        Recorder(),
        trigger_tokens=100,
        keep_recent=2,
        before_compaction=lambda plan: replace(plan, fold=(*plan.fold, 19)),
    )
    with pytest.raises(ConfigurationError, match=r"\[19\] are new"):
        compactor.compact(chat(20))
    assert compactor.compact(chat(5)) == chat(5)


def test_a_history_is_compacted_now_whatever_the_trigger(entry_point: EntryPoint) -> None:
    """The end of a session is the moment to compact, not the next overflow."""
    summarize = Recorder()
    compactor = HistoryCompactor(summarize, trigger_tokens=10_000, keep_recent=2)
    history = chat(20)
    assert compact(entry_point, compactor, history) is history
    if entry_point.name == "sync":
        out = compactor.compact_now(history)
    else:
        import asyncio

        out = asyncio.run(compactor.acompact_now(history))
    assert out[1:] == history[18:]
    assert _reason(compactor) == "compacted"
    assert summarize.calls == 1


# --- broken and oversized histories --------------------------------------------------------------


def test_dead_calls_never_switch_compaction_off() -> None:
    """Two hundred cancelled calls stayed for ever, and the history grew without a word."""
    compactor = HistoryCompactor(Recorder(), trigger_tokens=500, keep_recent=2)
    history: list[Message] = []
    for number in range(200):
        history += [said(2 * number), call(f"dead{number}", text="I try. " * 3)]
        out = compactor.compact(history)
        assert sum(count_tokens(view(message).text) for message in out) <= 700
    done = compactor.fold([*history, *chat(60)])
    assert done.outcome.compacted
    assert done.outcome.interrupted
    assert all(name.startswith("dead") for name in done.outcome.interrupted)


def test_a_large_dead_call_goes_before_sound_turns() -> None:
    """One cancelled write of 500 tokens took the place of the conversation."""
    dead = Message("I write. " * 220, "assistant", tool_calls=call("w").tool_calls)
    compactor = HistoryCompactor(Recorder(), trigger_tokens=600, keep_recent=2)
    done = compactor.fold([said(0), dead, *chat(30, start=2)])
    assert dead not in done.messages
    assert done.outcome.interrupted == ("w",)
    assert not done.outcome.over_trigger


def test_a_call_that_may_still_be_answered_stays(entry_point: EntryPoint) -> None:
    """A call that waits for a person was summarised away, and its answer found no call."""
    waiting = call("confirm")
    history = [said(0), waiting, *chat(40, start=2)]
    out = compact(
        entry_point, HistoryCompactor(Recorder(), trigger_tokens=200, keep_recent=2), history
    )
    assert waiting in out


def test_a_tail_that_is_still_too_large_is_said() -> None:
    """The outcome was compacted, and 166,000 tokens were left."""
    history = [*chat(20), Message("x" * 60_000, "user")]
    done = HistoryCompactor(Recorder(), trigger_tokens=150, keep_recent=1).fold(history)
    assert done.outcome.reason == "compacted"
    assert done.outcome.over_trigger
    small = HistoryCompactor(Recorder(), trigger_tokens=150, keep_recent=1).fold(chat(30))
    assert not small.outcome.over_trigger


@settings(max_examples=150)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    reply=st.sampled_from(["ok", "They spoke of boats and trains. " * 3, "x" * 300]),
    trigger=st.integers(16, 300),
    keep=st.integers(1, 6),
    cap=st.integers(1, 200),
)
def test_a_fold_never_makes_a_history_larger(
    sizes: list[int], reply: str, trigger: int, keep: int, cap: int
) -> None:
    """A recap of two short messages took more than they did, and was called compacted."""
    history = [said(at, tokens=size + 1) for at, size in enumerate(sizes)]
    compactor = HistoryCompactor(
        lambda text, instruction: reply,
        trigger_tokens=trigger,
        keep_recent=keep,
        max_summary_tokens=cap,
    )
    for done in (compactor.fold(history), compactor.fold(history, is_asked_for=True)):
        assert done.outcome.tokens_after <= done.outcome.tokens_before
        assert len(done.messages) <= len(history)
        assert sound(done.messages)


def test_a_client_that_takes_dicts_writes_recaps() -> None:
    """A client of plain dicts was given objects, failed each time, and nothing was compacted."""

    class Client:
        def __init__(self) -> None:
            self.roles: list[str] = []

        async def chat(self, messages: list[dict[str, str]], /) -> dict[str, str]:
            self.roles = [message["role"] for message in messages]
            return {"content": f"They spoke. {messages[1]['content']}"[:11]}

    client = Client()
    compactor = HistoryCompactor(client, trigger_tokens=100, keep_recent=2)
    assert compactor.compact(chat(20))[0].content == "[Recap] They spoke."
    assert client.roles == ["system", "user"]


@pytest.mark.parametrize("rounds", [3, 12, 30])
def test_the_open_request_stays_when_a_go_ahead_followed_it(rounds: int) -> None:
    """The recap said what was asked; the "yes" behind it was all that stayed word for word."""
    asked = Message("Move the March report for plant 7 to the new template, in EUR.", "user")
    history = [Message("Draw a map. " * 9, "user"), Message("Here it is. " * 30, "assistant")]
    history += [asked, Message("I will read it first. Shall I?", "assistant")]
    history += [Message("yes, go ahead", "user")]
    for number in range(rounds):
        history += [call(f"c{number}"), Message("row " * 40, "tool", tool_call_id=f"c{number}")]
    out = HistoryCompactor(Recorder(), trigger_tokens=150, keep_recent=2).compact(history)
    assert asked in out
    assert history[4] in out
    assert history[0] not in out
