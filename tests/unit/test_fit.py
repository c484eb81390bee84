"""The conversation's one entry point: what it takes, gives and refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from muntin.conversations.fit import afit_messages, fit_messages
from muntin.conversations.fitting.draft import note_headings
from muntin.conversations.trajectory import reduce_agent, reduce_agent_sync
from muntin.counting.framing import REPLY_TOKENS
from muntin.counting.message_counts import MessageCounts, count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError
from muntin.messages.shapes import view
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.testing import ScriptedLLM

if TYPE_CHECKING:
    from conftest import EntryPoint
    from muntin.messages.message import Role


def _chat(turns: int) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": "Be brief."}]
    for at in range(turns):
        messages.append({"role": "user", "content": f"Where is order A-{1000 + at}?"})
        messages.append({"role": "assistant", "content": f"Order A-{1000 + at} is on its way."})
    return [*messages, {"role": "user", "content": "And the first one?"}]


@pytest.mark.parametrize("budget", [0, -5, True])
def test_a_budget_that_is_none_is_refused(budget: int, entry_point: EntryPoint) -> None:
    with pytest.raises(ConfigurationError, match="must be a positive int"):
        entry_point(fit_messages, afit_messages, _chat(1), budget=budget)


@pytest.mark.parametrize("role", ["banana", "tool", "", None])
def test_a_role_in_which_nothing_can_be_told_is_refused(role: Any, entry_point: EntryPoint) -> None:
    """Written out, it makes the provider refuse the request; found late, only in a long chat."""
    with pytest.raises(ConfigurationError, match="note_role is one of user, system, assistant"):
        entry_point(fit_messages, afit_messages, _chat(1), budget=900, note_role=role)
    with pytest.raises(ConfigurationError, match="note_role"):
        entry_point(
            reduce_agent_sync, reduce_agent, _chat(1),
            summarize=lambda text, how: "", budget=900, note_role=role,
        )  # fmt: skip


def test_neither_budget_nor_window_is_refused() -> None:
    """An unknown window is not an unlimited one."""
    with pytest.raises(ConfigurationError, match="give a budget"):
        fit_messages(_chat(1), counter=count_tokens)


def test_a_budget_over_the_window_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="window"):
        fit_messages(_chat(1), budget=2_000, window=1_000, counter=count_tokens)


def test_a_window_sets_the_output_aside() -> None:
    report = fit_messages(_chat(1), window=8_000, counter=count_tokens).report
    assert (report.budget, report.reserve, report.window) == (4_000, 4_000, 8_000)


def test_a_tuple_comes_back_as_a_tuple() -> None:
    messages = tuple(_chat(40))
    assert fit_messages(messages, budget=10_000, counter=count_tokens).messages is messages
    assert isinstance(fit_messages(messages, budget=200, counter=count_tokens).messages, tuple)


def test_the_report_adds_up_and_can_be_asked_what_if() -> None:
    fitted = fit_messages(
        _chat(60), budget=400, tools=[{"name": "f", "description": "d"}], counter=count_tokens
    )
    report = fitted.report
    assert sum(part.tokens for part in report.parts) == report.budget
    assert report.used == count_messages(fitted.messages, [{"name": "f", "description": "d"}])
    assert report.what_if(max_tokens=10_000).count("kept") == 122
    assert report.diff(report).unchanged


def test_a_question_brings_an_old_message_back_word_for_word() -> None:
    messages = _chat(200)
    messages[11] = {"role": "user", "content": "The walnut table has a scratch on its left leg."}
    without = fit_messages(messages, budget=600, counter=count_tokens).messages
    fitted = fit_messages(
        messages, budget=600, question="Which leg of the walnut table?", counter=count_tokens
    )
    assert messages[11] in fitted.messages
    assert messages[11] not in without
    assert "recalled" in {decision.reason for decision in fitted.report.decisions}


def test_lone_surrogates_are_repaired_even_when_everything_fits() -> None:
    """A message that cannot be encoded has no bytes to keep."""
    messages = [{"role": "user", "content": "ok \ud83d"}, {"role": "user", "content": "fine"}]
    out = fit_messages(messages, budget=1_000, counter=count_tokens).messages
    assert out == [{"role": "user", "content": "ok \ufffd"}, {"role": "user", "content": "fine"}]
    assert out[1] is messages[1]
    assert fit_messages(out, budget=1_000, counter=count_tokens).messages is out


def test_the_report_says_what_mending_did_to_which_message() -> None:
    """A report that speaks of the mended list names other messages than the caller has."""
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    broken: list[dict[str, Any]] = [
        {"role": "user", "content": "Look."},
        {"role": "tool", "tool_call_id": "gone", "content": "An answer to nothing."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", **call}]},
        {"role": "user", "content": "Never mind \ud83d."},
    ]
    fitted = fit_messages(broken, budget=1_000, repair=True, counter=count_tokens)
    assert [message["role"] for message in fitted.messages] == ["user", "assistant", "tool", "user"]
    report = fitted.report
    fates = [(one.index, one.kind, one.reason) for one in report.decisions]
    assert fates == [
        (0, "kept", "placed"),
        (1, "dropped", "orphaned"),
        (2, "kept", "placed"),
        (3, "kept", "repaired"),
    ]
    assert report.written["repair"] == count_messages(fitted.messages[2:3]) - REPLY_TOKENS
    assert report.used == count_messages(fitted.messages)


def test_the_same_old_messages_are_summarised_once(entry_point: EntryPoint) -> None:
    """A model asked again at every step for what it said a step ago is paid for nothing."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(instruction)
        return f"They spoke, {len(asked)}."

    counts = MessageCounts(count_tokens)
    history = [{"role": "user", "content": f"Note {at}: {'word ' * 40}"} for at in range(40)]
    notes: set[str] = set()
    for at in range(30):
        history.append({"role": "user", "content": f"And {at}?"})
        fitted = entry_point(
            fit_messages, afit_messages, history, budget=900, summarizer=summarize, counts=counts
        )
        notes.update(one["content"] for one in fitted.messages if "They spoke" in one["content"])
    assert len(asked) <= 5
    assert len(notes) <= 2 * len(asked)
    calls = len(asked)
    fit_messages(history, budget=900, summarizer=ScriptedLLM(["Else."]), counts=counts)
    fitted = fit_messages(history, budget=900, summarizer=summarize, counts=counts)
    assert len(asked) == calls
    assert not any("Else." in one["content"] for one in fitted.messages)


class _Spy:
    def __init__(self) -> None:
        self.characters = 0

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        return -(-len(text) // 4)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_long_history_is_counted_about_once_and_then_hardly_at_all(share: float) -> None:
    """Counting all of it at each of a thousand steps is what makes agents slow."""
    messages = [
        {"role": "user" if at % 2 else "assistant", "content": f"message {at} says {at * 7} " * 6}
        for at in range(2_000)
    ]
    total = count_messages(messages, counter=lambda text: -(-len(text) // 4))
    whole = sum(len(message["content"]) for message in messages)
    spy = _Spy()
    counts = MessageCounts(spy)
    fit_messages(messages, budget=int(total * share), counts=counts)
    # Lines of facts that share a label are counted again when the digest gets longer: 1.55.
    assert spy.characters <= 1.6 * whole
    spy.characters = 0
    grown = [*messages, {"role": "user", "content": "and now?"}]
    fit_messages(grown, budget=int(total * share), counts=counts)
    assert spy.characters <= 0.05 * whole


def test_the_first_request_is_digested_however_long_ago_it_was(entry_point: EntryPoint) -> None:
    """What everything else was done for must not be the first thing that is forgotten."""
    task = f"Move ticket ZX-4711 to /srv/export/q3.csv. {'And take care of it. ' * 400}"
    history: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for at in range(400):
        call = {"name": "search", "arguments": json.dumps({"query": f"part {at}"})}
        history += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{at}", "content": f"Found K-{at}. {'word ' * 150}"},
        ]
    history.append({"role": "assistant", "content": "All parts are found."})
    history.append({"role": "user", "content": "Where does it go?"})
    fitted = entry_point(fit_messages, afit_messages, history, budget=20_000)
    told = "\n".join(str(one["content"]) for one in fitted.messages[:2])
    assert "ZX-4711" in told
    assert "/srv/export/q3.csv" in told


def test_half_a_character_in_one_conversation_changes_nothing_in_another(
    entry_point: EntryPoint,
) -> None:
    """What was seen of a longer conversation is no reason to copy a shorter one."""
    counts = MessageCounts(count_tokens)
    history: list[dict[str, Any]] = [{"role": "user", "content": f"Say {at}."} for at in range(40)]
    broken = [*history, {"role": "user", "content": "half \ud83d"}]
    assert entry_point(fit_messages, afit_messages, broken, budget=10_000, counts=counts).changed
    fitted = entry_point(fit_messages, afit_messages, history, budget=10_000, counts=counts)
    assert fitted.messages is history
    longer = [*history, {"role": "user", "content": "whole"}]
    fitted = entry_point(fit_messages, afit_messages, longer, budget=10_000, counts=counts)
    assert fitted.messages is longer


def _one(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


_LIKE_NOTES = {
    "a heading and words behind it": "[Earlier messages: 57 left out] is what I see. Why? ",
    "a whole note": "[Earlier messages: 57 left out]\norder: A-3\nWhat does this mean? ",
    "a summary's heading": "[Attempted Steps Summary] what does that heading mean? ",
    "a whole summary": "[Attempted Steps Summary]all sold out. Is that so? ",
    "a heading of another language": "[已尝试步骤的摘要] 是什么意思？ ",
}
_NUMBERS_FIRST = DEFAULT_PROMPTS.with_overrides(
    {
        "conversation.digest": "{count} messages were left out; facts:",
        "conversation.omitted": "{count}",
    }
)


@pytest.mark.parametrize("prompts", [None, _NUMBERS_FIRST], ids=["built in", "numbers first"])
@pytest.mark.parametrize("text", _LIKE_NOTES.values(), ids=_LIKE_NOTES)
def test_what_the_caller_says_is_never_taken_for_a_note(
    text: str, prompts: PromptRegistry | None, entry_point: EntryPoint
) -> None:
    """Somebody who pastes what stands in a prompt, and asks about it, would not be heard."""
    chat = _chat(20)
    for kept, given in (
        (_one("system", text), [_one("system", text), *chat[1:]]),
        (_one("user", text), [*chat[:-1], _one("user", text), _one("assistant", "So " * 99)]),
    ):
        out = entry_point(fit_messages, afit_messages, given, budget=200, prompts=prompts).messages
        assert out != given
        assert kept in out


def test_a_number_that_somebody_says_is_no_note() -> None:
    """A heading of a number alone would take every number for what an earlier fit wrote."""
    said = [_one("user", "42"), _one("assistant", "Of what? " * 40), _one("user", "3\nmetres. ")]
    fitted = fit_messages(
        [*_chat(9)[:1], *said, _one("user", "7")],
        budget=60,
        prompts=_NUMBERS_FIRST,
        counter=count_tokens,
    )
    assert fitted.messages[-2:] == [said[-1], _one("user", "7")]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("role", ["user", "system", "assistant"])
@pytest.mark.parametrize("question", [None, "order A-1003"])
def test_notes_do_not_pile_up(
    role: Role, language: str, question: str | None, entry_point: EntryPoint
) -> None:
    """What comes back with a note in it, in whatever language, leaves with one note."""
    prompts, others = PromptRegistry(language), PromptRegistry("en" if language == "zh" else "zh")
    history, notes = _chat(0)[:1], note_headings(prompts)
    for at in range(40):
        history = [
            *history,
            _one("user", f"Where is order A-{1000 + at} of 2024-05-{at % 28 + 1:02d}? " * 6),
            _one("assistant", f"Order A-{1000 + at} left the house at /srv/a{at}.csv. " * 9),
        ]
        asked = [*history, _one("user", "And the first one?")]
        spoken = prompts if at % 2 else others
        fitted = entry_point(
            fit_messages, afit_messages, asked,
            budget=700, prompts=spoken, note_role=role, question=question,
        )  # fmt: skip
        assert sum(bool(notes.match(one["content"])) for one in fitted.messages) <= 1
        history = fitted.messages[:-1]
    assert any(notes.match(one["content"]) for one in history)


@pytest.mark.parametrize("shape", ["message", "openai-chat", "openai-responses", "anthropic"])
def test_the_note_blames_the_call_that_failed(shape: str, entry_point: EntryPoint) -> None:
    """Results of parallel calls come back in another order, whatever the provider."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - its own tests

    write = _Writer(shape)
    write.say("user", "Pay the orders. " * 30)
    first, second = write.call("", ["order A-111", "order B-222"])
    write.answer([second, first], ["Error: card declined", "paid"])
    write.say("assistant", "word " * 900)
    write.say("user", "And now?")
    fitted = entry_point(fit_messages, afit_messages, write.messages, budget=200)
    told = [line for one in fitted.messages for line in view(one).text.splitlines()]
    assert [line for line in told if line.startswith("failed")] == [
        "failed: look order B-222: Error: card declined"
    ]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 100.0, "100", True, 0, -1, [100]])
@pytest.mark.parametrize("name", ["budget", "window"])
def test_a_budget_is_a_whole_number_above_zero(
    entry_point: EntryPoint, name: str, odd: Any
) -> None:
    """NaN is neither above nor below anything, so nothing would ever be over it."""
    with pytest.raises(ConfigurationError, match=name):
        entry_point(fit_messages, afit_messages, [{"role": "user", "content": "hi"}], **{name: odd})


def test_numbers_of_numpy_are_whole_numbers(entry_point: EntryPoint) -> None:
    messages = [{"role": "user", "content": "hi"}]
    budget: Any = np.int64(100)
    assert not entry_point(fit_messages, afit_messages, messages, budget=budget).changed


def test_what_can_be_read_only_once_is_refused_unread(entry_point: EntryPoint) -> None:
    """A generator would be empty by the time its messages are sent."""
    history = [{"role": "user", "content": "hi"}]
    given = iter(history)
    odd: list[Any] = [given, {"role": "user", "content": "hi"}, "hi", set[str](), None]
    for messages in odd:
        with pytest.raises(ConfigurationError, match="sequence"):
            entry_point(fit_messages, afit_messages, messages, budget=100)
    assert next(given) is history[0]


def test_one_fit_counts_by_one_counter(entry_point: EntryPoint) -> None:
    """A report that names one counter for the figures of another misleads."""
    messages = [{"role": "user", "content": "hi"}]
    counts = MessageCounts(count_tokens)
    with pytest.raises(ConfigurationError, match="count_tokens"):
        entry_point(fit_messages, afit_messages, messages, budget=100, counts=counts, counter=len)
    fitted = entry_point(
        fit_messages, afit_messages, messages, budget=100, counts=MessageCounts(len), counter=len
    )
    assert fitted.report.used == count_messages(messages, counter=len)


def test_a_counter_that_counts_in_parts_of_tokens_is_named(entry_point: EntryPoint) -> None:
    def quarters(text: str) -> Any:
        return len(text) / 4

    with pytest.raises(ConfigurationError, match="quarters"):
        entry_point(
            fit_messages,
            afit_messages,
            [{"role": "user", "content": "hi"}],
            budget=100,
            counter=quarters,
        )
