"""Space: finished rounds are shared, nothing stays idle that could show something, more is more."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from case_messages import A, S, T, U, talk
from muntin.conversations.fit import afit_messages, fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.messages.shapes import view
from shared_data import json_lines, needs_data
from strategies import SHAPES

if TYPE_CHECKING:
    from conftest import EntryPoint

_NAMES = ("ledger", "river", "copper", "window", "garden", "signal", "basket", "lantern", "harbor")


def _page(seed: int, lines: int) -> str:
    chance = random.Random(seed)
    return "\n".join(
        f"row {at} of {seed}: " + " ".join(chance.choices(_NAMES, k=8)) for at in range(lines)
    )


_ROUNDS = [(4, 300, 9_000), (8, 300, 9_000), (12, 300, 16_000), (25, 200, 16_000)]
_PARALLEL = [shape for shape in SHAPES if shape != "openai-legacy"]


@pytest.mark.parametrize(("count", "lines", "budget"), _ROUNDS)
@pytest.mark.parametrize("shape", _PARALLEL)
def test_a_finished_parallel_round_is_shared_out(
    shape: str, count: int, lines: int, budget: int, entry_point: EntryPoint
) -> None:
    """Eight results of a finished round were thrown away whole, in an empty window."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - its own tests

    write = _Writer(shape)
    write.say("user", "Compare the files.")
    pages = [_page(at, lines) for at in range(count)]
    write.answer(write.call("", [f"file {at}" for at in range(count)]), pages)
    write.say("assistant", "Done reading.")
    write.say("user", "Which was best?")
    assert count_messages(write.messages) > budget
    fitted = entry_point(
        fit_messages, afit_messages, write.messages, budget=budget, counter=count_tokens
    )
    assert 0.88 * budget <= fitted.report.used <= budget
    shown = [result.text for one in fitted.messages for result in view(one).results]
    assert len(shown) == count
    for text, page in zip(shown, pages, strict=True):
        assert sum(line in text for line in page.split("\n")) >= 3


def test_a_long_answer_is_cut_with_a_mark_and_the_order_does_not_stand_last(
    entry_point: EntryPoint,
) -> None:
    """Without its answer a finished order reads like an open one."""
    for words, budget in ((300, 200), (1_800, 1_000)):
        messages = [U("the OLD order"), A(text="said " * words)]
        fitted = entry_point(
            fit_messages, afit_messages, messages, budget=budget, counter=count_tokens
        )
        assert [one["role"] for one in fitted.messages] == ["user", "assistant"]
        assert "left out" in fitted.messages[1]["content"]
        assert fitted.report.used >= 0.8 * budget


def test_a_paste_is_cut_after_results_that_can_be_fetched_again(entry_point: EntryPoint) -> None:
    """A document that only the user has went whole while files that can be read again stayed."""
    paste = U("PASTE " + "clause " * 1_800 + "END")
    messages = [S, paste, A(text="I have it."), U("check every section")]
    for at in range(14):
        messages += [A(f"r{at}"), T(f"r{at}", _page(at, 60))]
    total = count_messages(messages)
    for budget in (total // 2, total // 3):
        fitted = entry_point(
            fit_messages, afit_messages, messages, budget=budget, counter=count_tokens
        )
        kept = next((one for one in fitted.messages if "PASTE" in str(one["content"])), None)
        assert kept is not None
        assert fitted.report.used >= 0.9 * budget


def _in_flight() -> list[dict[str, Any]]:
    return [U("Old question?"), A(text="Old answer."), U("Read it."), A("c"), T("c", _page(1, 60))]


def test_a_larger_budget_never_shows_less_of_the_newest_result() -> None:
    """At one token more a note appeared, and lines of the result went for it."""
    messages = _in_flight()
    lines = messages[-1]["content"].split("\n")
    seen = 0
    for budget in range(60, count_messages(messages) + 1):
        fitted = fit_messages(messages, budget=budget, counter=count_tokens)
        text = fitted.messages[-1]["content"]
        shown = sum(line in text for line in lines)
        assert shown >= seen
        seen = shown
    assert seen == 60


def test_small_results_show_content_before_they_show_a_mark() -> None:
    """A mark without text says that something is missing and not what."""
    result = "The parcel P-1001 is in depot lantern-22 since Monday."
    messages = [U("Where?"), A("c"), T("c", result * 9)]
    least = count_messages([U("Where?"), A("c"), T("c", "")])
    for budget in range(least + 6, least + 90):
        text = fit_messages(messages, budget=budget, counter=count_tokens).messages[-1]["content"]
        assert text.startswith(("The parcel"[: len(text) // 3], "[Shortened"))
        assert "P" in text or budget < least + 10


@needs_data
def test_on_real_runs_hardly_any_space_stays_idle() -> None:
    """What was left out would have fitted into what stayed idle: a third of the budget at worst."""
    used: list[float] = []
    for at, record in enumerate(json_lines("trajectories.dev.jsonl.gz")):
        if at % 4:
            continue
        total = count_messages(record["messages"])
        for share in (0.15, 0.3, 0.5, 0.7, 0.9):
            budget = int(share * total)
            try:
                fitted = fit_messages(record["messages"], budget=budget, counter=count_tokens)
            except Exception as error:  # noqa: BLE001 - only a budget that is too small
                assert "protected" in str(error), error  # noqa: PT017
                continue
            used.append(fitted.report.used / budget)
    used.sort()
    assert sum(used) / len(used) >= 0.93
    assert used[len(used) // 20] >= 0.87


def _cancelled(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [S]
    for at in range(turns):
        messages += [U(f"Where is parcel P-{at}?"), A(f"dead{at}"), A(text=f"P-{at}: depot {at}.")]
    return [*messages, U("And now?")]


def test_dead_calls_go_before_sound_turns_and_are_named(entry_point: EntryPoint) -> None:
    """A call that was cancelled long ago outlived the turns around it."""
    messages = _cancelled(40)
    budget = count_messages(messages) - 60
    fitted = entry_point(fit_messages, afit_messages, messages, budget=budget, counter=count_tokens)
    assert not any(view(one).calls for one in fitted.messages)
    gone = {d.index: d.reason for d in fitted.report.decisions if d.kind != "kept"}
    assert set(gone.values()) == {"interrupted"}
    write = {**A("w"), "tool_calls": [{"id": "w", "type": "function", "function": {
        "name": "write", "arguments": json.dumps({"text": "word " * 400})}}]}  # fmt: skip
    sound = [S, U("Write it."), write, *talk(30, words=9), U("so?")]
    fitted = entry_point(
        fit_messages, afit_messages, sound, budget=count_messages(sound) - 50, counter=count_tokens
    )
    assert [d.index for d in fitted.report.decisions if d.kind != "kept"] == [2]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_the_note_counts_exactly_what_is_gone(share: float) -> None:
    messages = [S, *talk(12), *_cancelled(4), *_in_flight()[:-2], U("so?")]
    fitted = fit_messages(
        messages, budget=int(share * count_messages(messages)), counter=count_tokens
    )
    gone = sum(d.kind in ("summarised", "dropped") for d in fitted.report.decisions)
    notes = [one["content"] for one in fitted.messages if "[Earlier" in str(one["content"])]
    assert all(f"[Earlier messages: {gone} left out" in note for note in notes)
    reasons = {d.reason for d in fitted.report.decisions if d.kind != "kept"}
    assert notes or reasons <= {"interrupted"}
