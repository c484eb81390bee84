"""Summaries that fail, echo, grow, hang or save nothing: nothing is lost and it is said why."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from chats import Recorder, chat, compact, said
from muntin.conversations.compaction import CompactionOutcome, HistoryCompactor
from muntin.testing import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint
    from muntin.messages.message import Message


def outcome_of(compactor: HistoryCompactor) -> CompactionOutcome:
    assert compactor.last_outcome is not None
    return compactor.last_outcome


def echoes(text: str, instruction: str) -> str:
    return text


def gives_a_number(text: str, instruction: str) -> int:
    return 7


def gives_bytes(text: str, instruction: str) -> bytes:
    return b"bytes"


def echoes_with_other_spaces(text: str, instruction: str) -> str:
    return "\n\n".join(text.split())


def goes_on(text: str, instruction: str) -> str:
    return text + " " + "and so on " * 24_000


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: Recorder(None), "summary_empty"),
    "empty": (lambda: Recorder(""), "summary_empty"),
    "blank": (lambda: Recorder(" \n\u3000 "), "summary_empty"),
    "raises": (lambda: Recorder(RuntimeError("no credit")), "summary_failed"),
    "raises a base class of its own": (lambda: Recorder(KeyError("x")), "summary_failed"),
    "the client's timeout": (lambda: Recorder(TimeoutError("socket")), "summary_failed"),
    "a number": (lambda: gives_a_number, "summary_failed"),
    "bytes": (lambda: gives_bytes, "summary_failed"),
    "echo": (lambda: echoes, "summary_echoed"),
    "echo with other spaces": (lambda: echoes_with_other_spaces, "summary_echoed"),
    "goes on for 60k tokens": (lambda: goes_on, "summary_grew"),
    "60k tokens of its own": (lambda: Recorder("lorem " * 40_000), "summary_grew"),
    "a scripted model that fails": (lambda: ScriptedLLM([OSError("down")]), "summary_failed"),
    "a scripted model without replies": (lambda: ScriptedLLM([]), "summary_failed"),
}


@pytest.mark.parametrize("kind", sorted(BAD))
def test_a_bad_summary_brings_the_original_back(kind: str, entry_point: EntryPoint) -> None:
    """However a summary fails, the caller gets the very list it gave, and the reason."""
    make, reason = BAD[kind]
    compactor = HistoryCompactor(make(), keep_recent=2, trigger_tokens=100)
    history = chat(40)
    assert compact(entry_point, compactor, history) is history
    assert outcome_of(compactor).reason == reason
    assert outcome_of(compactor).model_calls == 1
    assert outcome_of(compactor).tokens_after == outcome_of(compactor).tokens_before == 400


@pytest.mark.parametrize("kind", sorted(BAD))
def test_a_bad_summary_later_leaves_the_recap_there_is(kind: str, entry_point: EntryPoint) -> None:
    """The earlier recap still holds; nothing newer is covered by it and nothing is lost."""
    make, reason = BAD[kind]
    compactor = HistoryCompactor(Recorder("GOOD"), keep_recent=2, trigger_tokens=100)
    history = chat(20)
    compactor.compact(history)
    longer = [*history, *chat(20, start=20)]
    out = compact(entry_point, compactor, longer, make())
    assert out[0].content == "[Recap] GOOD"
    assert out[1:] == longer[18:]
    assert outcome_of(compactor).reason == reason


def test_the_error_is_in_the_outcome() -> None:
    compactor = HistoryCompactor(Recorder(ValueError("no credit")), trigger_tokens=10)
    compactor.compact(chat(9))
    assert outcome_of(compactor).error == "ValueError: no credit"


def test_a_failed_summary_is_tried_again_next_time(entry_point: EntryPoint) -> None:
    """A provider that was down for a minute is asked again on the next turn."""
    compactor = HistoryCompactor(Recorder(OSError("down"), "", "SUM"), trigger_tokens=100)
    for size in (20, 21):
        history = chat(size)
        assert compact(entry_point, compactor, history) is history
    assert compact(entry_point, compactor, chat(22))[0].content == "[Recap] SUM"


@pytest.mark.parametrize("bad", [OSError("down"), "", None, "  ", "lorem " * 9_000])
def test_a_history_read_twice_is_the_same_twice_whatever_failed(
    bad: Any, entry_point: EntryPoint
) -> None:
    """Who cuts off what was read, by reading it again, must not cut off more or less of it."""
    other = Recorder("OTHER")
    for before in (0, 20):
        summarize = Recorder(*(["SUM"] if before else []), bad, "LATE")
        compactor = HistoryCompactor(summarize, trigger_tokens=100)
        compact(entry_point, compactor, chat(before))
        history = chat(before + 20)
        first = compact(entry_point, compactor, history)
        for form in (history, list(history), chat(before + 20)):
            assert compact(entry_point, compactor, form) == first
            assert outcome_of(compactor).reason == "not_retried"
        assert summarize.calls == 1 + bool(before)
        assert compact(entry_point, compactor, history, other)[0].content == "[Recap] OTHER"


def test_a_summariser_that_always_fails_is_not_asked_on_every_turn() -> None:
    """A dead key must not cost a timeout per message for the rest of a long chat."""
    summarize = Recorder(OSError("down"))
    compactor = HistoryCompactor(summarize, trigger_tokens=100)
    for size in range(1, 201):
        history = chat(size)
        assert compactor.compact(history) is history
    assert 3 < summarize.calls < 30


@pytest.mark.parametrize("bad", [echoes, Recorder("lorem " * 9_000)])
def test_a_useless_summary_is_not_paid_for_again(bad: Any, entry_point: EntryPoint) -> None:
    """The same input gives the same uselessness; more must be said before it is tried again."""
    calls: list[str] = []

    def counted(text: str, instruction: str) -> Any:
        calls.append(text)
        return bad(text, instruction)

    compactor = HistoryCompactor(counted, keep_recent=2, trigger_tokens=350, min_gain_tokens=300)
    history = chat(40)
    reasons: list[str] = []
    for _ in range(5):
        compact(entry_point, compactor, history)
        reasons.append(outcome_of(compactor).reason)
    assert reasons[1:] == ["not_retried"] * 4
    assert len(calls) == 1
    for size in range(41, 60):
        compact(entry_point, compactor, chat(size))
    assert len(calls) == 1
    compact(entry_point, compactor, chat(80))
    assert len(calls) == 2


def test_a_pass_that_cannot_save_enough_is_not_flown(entry_point: EntryPoint) -> None:
    """With a tail that is itself over the trigger, each message would cost a call for nothing."""
    summarize = Recorder()
    compactor = HistoryCompactor(summarize, keep_recent=3, trigger_tokens=1000)
    history = [said(0), *[said(number, tokens=400) for number in range(1, 4)]]
    assert compact(entry_point, compactor, history) is history
    assert outcome_of(compactor).reason == "too_little_to_fold"
    assert summarize.calls == 0


def test_the_minimum_gain_is_kept_by_cutting_the_recap() -> None:
    """A summary a little too long still has to leave the stated gain."""
    compactor = HistoryCompactor(
        Recorder("x" * 480), keep_recent=2, trigger_tokens=350, min_gain_tokens=300
    )
    history = chat(40)
    compactor.compact(history)
    done = outcome_of(compactor)
    assert done.reason == "compacted"
    assert done.saved >= 300
    assert done.shortened
    assert done.effective


def test_the_summariser_is_told_how_much_it_may_write() -> None:
    """A recap was held to half of the trigger in silence, whatever cap was asked for."""
    summarize = Recorder()
    HistoryCompactor(summarize, trigger_tokens=600, max_summary_tokens=700).compact(chat(100))
    HistoryCompactor(summarize, trigger_tokens=600, max_summary_tokens=50).compact(chat(100))
    assert summarize.max_tokens == [681, 48]


def test_a_summariser_that_hangs_is_given_up(entry_point: EntryPoint) -> None:
    """The answer to the user does not wait for a stuck helper."""
    release = threading.Event()

    def hangs(text: str, instruction: str) -> str:
        release.wait(60)
        return "late"

    compactor = HistoryCompactor(hangs, trigger_tokens=100, timeout=0.05)
    history = chat(20)
    try:
        assert compact(entry_point, compactor, history) is history
    finally:
        release.set()
    assert outcome_of(compactor).reason == "summary_late"
    assert "0.05 s" in str(outcome_of(compactor).error)


@pytest.mark.parametrize("kind", ["plain", "async", "scripted"])
def test_a_plain_call_inside_a_running_loop_works(kind: str) -> None:
    """In a notebook a loop always runs; there the history was silently never compacted."""

    async def async_summary(text: str, instruction: str) -> str:
        await asyncio.sleep(0)
        return "SUM"

    llm: Any = {"plain": Recorder(), "async": async_summary, "scripted": ScriptedLLM(["SUM"])}[kind]
    compactor = HistoryCompactor(llm, trigger_tokens=100)

    async def cell() -> list[Message]:
        return compactor.compact(chat(20))

    assert asyncio.run(cell())[0].content == "[Recap] SUM"


def test_an_interrupt_is_not_taken_for_a_failed_summary() -> None:
    """Ctrl-C stops the program, and the next call finds nothing half-done."""
    compactor = HistoryCompactor(Recorder(KeyboardInterrupt(), "SUM"), trigger_tokens=100)
    history = chat(20)
    with pytest.raises(KeyboardInterrupt):
        compactor.compact(history)
    assert compactor.compact(history)[0].content == "[Recap] SUM"


def test_cancellation_leaves_nothing_half_done() -> None:
    """A client that hangs up while a summary is made must not lock its conversation."""

    async def main() -> list[Message]:
        started = asyncio.Event()

        async def slow(text: str, instruction: str) -> str:
            started.set()
            await asyncio.sleep(60)
            return "never"

        compactor = HistoryCompactor(slow, trigger_tokens=100)
        task = asyncio.create_task(compactor.acompact(chat(20)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await compactor.acompact(chat(20), asummarize=Recorder())

    assert asyncio.run(main())[0].content == "[Recap] SUM"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 9, 30])
@pytest.mark.parametrize("tokens", [1, 5, 10, 40])
@pytest.mark.parametrize("reply", ["S", "A short recap of it.", "word " * 30, "word " * 3_000])
def test_a_history_never_grows_by_more_than_a_sentence_could(
    size: int, tokens: int, reply: str
) -> None:
    """From the size of a sentence on, it never grows at all; below it, counts are rounding."""
    compactor = HistoryCompactor(Recorder(reply), keep_recent=1, trigger_tokens=0)
    compactor.compact(chat(size, tokens=tokens))
    done = outcome_of(compactor)
    folded = (size - 1) * tokens
    assert done.tokens_after <= done.tokens_before + (12 if folded < 32 else 0)
    if done.reason == "compacted":
        assert done.effective == (done.saved >= 1)
