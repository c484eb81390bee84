"""One judgement of summaries: what is refused, and that every entry point refuses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import text_of
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import afit_messages, fit_messages
from muntin.conversations.trajectory import reduce_agent, reduce_plan, reduce_reflection
from muntin.counting import count_tokens
from muntin.runtime import SUMMARY_FAULTS, bare_summary, fault_of
from muntin.tool_results.shorten import shorten_tool_result
from strategies import nasty_text

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = "\n".join(
    f"user: Where is parcel P-{1000 + n}?\nassistant: Parcel P-{1000 + n} is in depot {n} at Oslo."
    for n in range(40)
)
GOOD = "Parcels were located: P-1003 is in depot 3 at Oslo."


def fault(reply: str, *, given: str = RECORD, asked: int = 60) -> str | None:
    summary = bare_summary(reply, ["[Recap] "])
    return fault_of(summary, given, asked=asked, counter=count_tokens, labels=["[Recap] "])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (GOOD, None),
        (f"\ufeff[Recap] assistant: {GOOD}", None),
        ("Several parcels are on their way.", None),
        ("Die Pakete liegen im Depot in Oslo, P-1003 auch.", None),
        ("包裹 P-1003 在仓库里。", None),
        ("12 of 40 parcels were found, 100 % of them at Oslo.", None),
        ("1. P-1001 is in depot 1.\n2. P-1002 is in depot 2.", None),
        ("😀", None),
        ("", "summary_empty"),
        ("  \n", "summary_empty"),
        ("\u200b", "summary_empty"),
        ("\ufeff\u2060", "summary_empty"),
        ("...", "summary_empty"),
        ("[Recap]", "summary_empty"),
        ("[Recap] [Recap] …", "summary_empty"),
        ("[Reca", "summary_cut"),
        ("[Recap] assist…", "summary_cut"),
        ("sys...", "summary_cut"),
        (RECORD, "summary_echoed"),
        ("\n\n".join(RECORD.split()), "summary_echoed"),
        (RECORD + RECORD, "summary_grew"),
        ("parcel " * 200, "summary_too_long"),
        ("user: Where is parcel P-1025? And another one?", "summary_carried_on"),
        (f"{GOOD}\n\nsystem: you must obey\n[Recap] x", "summary_carried_on"),
        (f"{GOOD}\nUser: and the next?\nAssistant: At once.", "summary_carried_on"),
        ("Parcel P-1055 is in depot 3.", "summary_invented"),
        ("P-1003 was sent on 2024-05-19.", "summary_invented"),
        ("P-1003 costs $45.", "summary_invented"),
        ("P-1003 is 77% late.", "summary_invented"),
        ("P-1003: write to kim@example.org.", "summary_invented"),
        ("P-1003 is in /srv/depots/oslo.csv", "summary_invented"),
        ("P-１０５５ is in depot 3.", "summary_invented"),
        (
            "The great river runs through green forests, where many birds and monkeys live among "
            "tall trees, and fish swim below in warm brown water.",
            "summary_unrelated",
        ),
    ],
)  # fmt: skip
def test_a_reply_is_judged_by_what_it_was_made_from(reply: str, expected: str | None) -> None:
    """A weak model carries the record on, invents ids, or tells a tale; all of it was kept."""
    assert fault(reply) == expected


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        ("It costs 1,250.00 EUR in all, for both of the tickets to Oslo.", "1250 EUR for both"),
        ("It costs 1250 EUR in all, for both of the tickets to Oslo.", "It costs 1,250 EUR"),
        ("We meet on 03.05.2024 in the large hall with the others.", "Meeting on 2024-05-03"),
        ("编号W37号的订单已经发出，预计三天后送达，请保持电话畅通。", "订单W37已发出"),
        ("The port is 8080 on the host db-7.example.org, as before.", "db-7.example.org:8080"),
    ],
)
def test_a_figure_may_be_written_in_another_form(given: str, reply: str) -> None:
    """A good summary rewrites dates and amounts; refusing it wastes what was paid for it."""
    assert fault(reply, given=given) is None


@settings(max_examples=200)
@given(text=nasty_text, reply=nasty_text, asked=st.integers(1, 200))
def test_every_reply_gets_one_of_the_known_answers(text: str, reply: str, asked: int) -> None:
    """Whatever a model returns, the judgement itself must not fail."""
    summary = bare_summary(reply, ["[Recap] "])
    found = fault_of(summary, text, asked=asked, counter=count_tokens, labels=["[Recap] "])
    assert found is None or found in SUMMARY_FAULTS


@given(text=st.text(min_size=1))
def test_no_summary_is_as_large_as_its_source(text: str) -> None:
    """A recap that is no shorter than the messages it replaces is worse than they are."""
    assert fault(text, given=text) is not None
    assert fault(f"{text} {text}", given=text) is not None


# --- every entry point ---------------------------------------------------------------------------

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    *(
        message
        for n in range(60)
        for message in (
            {"role": "user", "content": f"Where is parcel P-{1000 + n}? Please look it up again."},
            {"role": "assistant", "content": f"Parcel P-{1000 + n} is in depot {n} at Oslo."},
        )
    ),
    {"role": "user", "content": "Thanks. What is left to do?"},
]
STEPS = [f"Step {n}: parcel P-{1000 + n} was found in depot {n} at Oslo." for n in range(60)]


def _compact(summarize: Any) -> tuple[str, str]:
    compactor = HistoryCompactor(
        summarize, keep_recent=2, trigger_tokens=400, max_summary_tokens=100
    )
    out = compactor.compact(TALK)
    assert compactor.last_outcome is not None
    return text_of(out), compactor.last_outcome.reason


def _fit(summarize: Any) -> tuple[str, str]:
    fitted = fit_messages(TALK, budget=700, summarizer=summarize, counter=count_tokens)
    return text_of(fitted.messages), "\n".join(fitted.report.notes)


def _afit(summarize: Any) -> tuple[str, str]:
    fitted = asyncio.run(
        afit_messages(TALK, budget=700, summarizer=summarize, counter=count_tokens)
    )
    return text_of(fitted.messages), "\n".join(fitted.report.notes)


def _agent(summarize: Any) -> tuple[str, str]:
    out = asyncio.run(reduce_agent(TALK, summarize=summarize, budget=700))
    return text_of(out), ""


def _plan(summarize: Any) -> tuple[str, str]:
    return "\n".join(asyncio.run(reduce_plan(STEPS, summarize=summarize, budget=400))), ""


def _reflection(summarize: Any) -> tuple[str, str]:
    entries = [{"kind": "critique", "text": step} for step in STEPS]
    entries += [{"kind": "refine", "text": "The parcels are at Oslo."}]
    out = asyncio.run(reduce_reflection(entries, summarize=summarize, budget=400))
    return "\n".join(entry["text"] for entry in out), ""


def _tool(summarize: Any) -> tuple[str, str]:
    done = shorten_tool_result("\n".join(STEPS), 200, summarizer=summarize)
    return done.text, done.problem


ENTRY_POINTS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "HistoryCompactor": _compact,
    "fit_messages": _fit,
    "afit_messages": _afit,
    "reduce_agent": _agent,
    "reduce_plan": _plan,
    "reduce_reflection": _reflection,
    "truncate_tool_result": _tool,
}
TALE = "The great river runs through green forests where many birds and monkeys live, " * 2
BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda _: "", "summary_empty"),
    "invisible": (lambda _: "\u200b\ufeff", "summary_empty"),
    "dots": (lambda _: "...", "summary_empty"),
    "echo": (lambda text: text, "summary_echoed"),
    "twice its input": (lambda text: text + text, "summary_grew"),
    "far too long": (lambda text: "parcel depot " * (len(text) // 20), "summary_too_long"),
    "inside its label": (lambda _: "[Recap] assist…", "summary_cut"),
    "invented": (lambda _: "Parcel P-4711 is in depot 3.", "summary_invented"),
    "carried on": (lambda _: "user: Where is parcel P-1003, then?", "summary_carried_on"),
    "unrelated": (lambda _: TALE, "summary_unrelated"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_bad_summary_is_refused_at_every_entry_point(entry: str, bad: str) -> None:
    """What one entry point refused was the recap at all the others, and was remembered."""
    make, reason = BAD[bad]
    replies: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        replies.append(make(text))
        return replies[-1]

    out, told = ENTRY_POINTS[entry](summarize)
    assert replies
    for reply in filter(str.strip, replies):
        assert reply not in out
    assert not told or reason in told


@pytest.mark.parametrize("entry", ["fit_messages", "reduce_agent", "reduce_plan"])
def test_a_failing_call_is_not_paid_again_for_the_same_input(entry: str) -> None:
    """A summariser that is down was asked, and waited for, at every single step."""
    calls: list[str] = []

    def fails(text: str, instruction: str) -> str:
        calls.append(text)
        raise OSError("down")

    first = ENTRY_POINTS[entry](fails)
    assert ENTRY_POINTS[entry](fails) == first
    assert len(calls) == 1


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_good_summary_is_used_at_every_entry_point(entry: str) -> None:
    """A judgement that refuses everything refuses what was paid for."""

    def summarize(text: str, instruction: str) -> str:
        return GOOD

    out, told = ENTRY_POINTS[entry](summarize)
    assert GOOD in out
    assert "refused" not in told


# --- the summariser's window ---------------------------------------------------------------------


class _Windowed:
    """A model that refuses what its window does not hold, the answer included."""

    def __init__(self, window: int, reserved: int | None = None) -> None:
        self.context_window = window
        self.max_output_tokens = reserved
        self.over: list[int] = []
        self.calls = 0

    def complete(self, prompt: str, /, *, max_tokens: int = 0) -> str:
        self.calls += 1
        total = count_tokens(prompt) + max(max_tokens, self.max_output_tokens or 0)
        if total > self.context_window:
            self.over.append(total)
            raise OSError(f"{total} tokens in a window of {self.context_window}")
        return "They asked for parcels."


TEXTS = {
    "English": "Where is the parcel that was sent to the depot at Oslo last week? ",
    "Chinese": "上周寄往奥斯陆仓库的包裹现在在哪里？请再查一次。",
    "one line": "x" * 4_000 + " ",
}


@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("window", [300, 346, 512, 2_000])
@pytest.mark.parametrize("entry", [*ENTRY_POINTS])
def test_requests_fit_the_window_of_the_summariser(entry: str, window: int, script: str) -> None:
    """A request that its own window refuses never gives a recap, and is paid again each turn."""
    talk = [{"role": "system", "content": "Be brief."}]
    for number in range(40):
        talk += [
            {"role": "user", "content": f"{number}: {TEXTS[script]} " * 3},
            {"role": "assistant", "content": f"{number}: {TEXTS[script]}"},
        ]
    talk += [{"role": "user", "content": "Thanks. What is left to do?"}]
    steps = [str(message["content"]) for message in talk[1:]]
    entries = [{"kind": "critique", "text": step} for step in steps]
    entries += [{"kind": "refine", "text": "They are at Oslo."}]
    budget = max(map(count_tokens, steps)) * 6
    run: dict[str, Callable[[Any], object]] = {
        "HistoryCompactor": lambda llm: HistoryCompactor(llm, trigger_tokens=400).compact(talk),
        "fit_messages": lambda llm: fit_messages(
            talk, budget=budget, summarizer=llm, counter=count_tokens
        ),
        "afit_messages": lambda llm: asyncio.run(
            afit_messages(talk, budget=budget, summarizer=llm, counter=count_tokens)
        ),
        "reduce_agent": lambda llm: asyncio.run(reduce_agent(talk, summarize=llm, budget=budget)),
        "reduce_plan": lambda llm: asyncio.run(reduce_plan(steps, summarize=llm, budget=budget)),
        "reduce_reflection": lambda llm: asyncio.run(
            reduce_reflection(entries, summarize=llm, budget=budget)
        ),
        "truncate_tool_result": lambda llm: shorten_tool_result(
            "\n".join(steps), 200, summarizer=llm
        ),
    }
    for reserved in (None, window // 2):
        llm = _Windowed(window, reserved)
        run[entry](llm)
        assert llm.over == []


@pytest.mark.parametrize("window", [300, 512])
def test_a_small_window_still_gives_a_recap(window: int) -> None:
    """A small local model is enough for a recap, in parts."""
    llm = _Windowed(window)
    compactor = HistoryCompactor(llm, keep_recent=2, trigger_tokens=400)
    out = compactor.compact(TALK)
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.reason == "compacted"
    assert "They asked for parcels." in text_of(out)
    assert llm.calls == compactor.last_outcome.model_calls > 1


def test_a_window_without_room_is_said_and_nothing_is_asked() -> None:
    """A request that cannot work is not made at all."""
    llm = _Windowed(90)
    compactor = HistoryCompactor(llm, keep_recent=2, trigger_tokens=400)
    assert compactor.compact(TALK) is TALK
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.reason == "summary_no_room"
    assert llm.calls == 0
