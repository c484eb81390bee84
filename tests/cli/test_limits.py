"""A window, a model and a reserve mean the same in every command."""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING, Any

import pytest

from muntin import count_messages, estimate_tokens, fit_messages
from muntin.cli.terminal.limits import limits_of

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin


def _reports(muntin: Muntin, chat_file: Path, *arguments: str) -> list[dict[str, Any]]:
    (chat_file.parent / "notes.md").write_text("- Prefers short answers.\n")
    trimmed = muntin("trim", chat_file, "--json", *arguments).json["conversations"][0]["report"]
    built = muntin("assemble", "-q", "Which?", "--memory", "notes.md", "--json", *arguments).json
    folded = muntin("compact", chat_file, "--trigger", "500", "--json", *arguments).json
    return [trimmed, built["report"], folded["conversations"][0]["report"]]


def _tokens(text: str) -> int:
    return int(text.replace("k", "000"))


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        (["--window", "8000"], 4000),
        (["--window", "100k"], 95_904),
        (["--window", "8000", "--reserve", "20%"], 6400),
        (["--window", "8001", "--reserve", "0.25"], 6001),
        (["--window", "8000", "--reserve", "1k"], 7000),
        (["--window", "8000", "--reserve", "0"], 8000),
    ],
)
def test_a_window_gives_the_same_budget_in_every_command(
    arguments: list[str], budget: int, muntin: Muntin, chat_file: Path
) -> None:
    """`trim` left half of a window and `assemble` a fifth: the same number meant two budgets."""
    for report in _reports(muntin, chat_file, *arguments):
        assert report["budget"] == budget
        # A report without a window is one whose budget and reserve are all of it.
        whole = report["window"] or report["budget"] + report["reserve"]
        assert whole == _tokens(arguments[1])


def test_the_library_gives_the_same_budget(chat: list[dict[str, Any]]) -> None:
    """What the command line prints must be what a program gets."""
    for window in (500, 8000, 8192, 200_000):
        report = fit_messages(chat[:3], window=window).report
        assert (report.budget, report.reserve) == (
            limits_of(None, window=window).budget, limits_of(None, window=window).reserve,
        )  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("genai_prices") is None, reason="needs genai-prices")
def test_a_model_decides_the_window_where_it_is_known(muntin: Muntin, chat_file: Path) -> None:
    """Whoever names the model has said how much fits."""
    reports = _reports(muntin, chat_file, "--model", "gpt-4o")
    counted = muntin("count", "notes.md", "--model", "gpt-4o", "--json").json

    assert {report["budget"] for report in reports} == {limits_of("gpt-4o").budget}
    assert {report["reserve"] for report in reports} == {limits_of("gpt-4o").reserve}
    # A report without a window is one whose budget and reserve are all of it.
    whole = {report["window"] or report["budget"] + report["reserve"] for report in reports}
    assert whole == {limits_of("gpt-4o").window}
    assert {report["counter"] for report in reports} == {counted["counters"]["gpt-4o"]["counter"]}
    assert counted["counters"]["gpt-4o"]["window"] == limits_of("gpt-4o").window
    assert limits_of("gpt-4o").window >= 100_000  # pyright: ignore[reportOptionalOperand]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "--window"),
        (["--model", "nobody-knows-this"], 2, "--window"),
        (["--reserve", "20%"], 2, "part of a window"),
        (["--window", "2k", "--reserve", "2k"], 3, "takes all of the window"),
        (["--window", "2k", "--reserve", "100%"], 2, "below 1"),
        (["--window", "2k", "--reserve", "some"], 2, "number of tokens"),
        (["--window", "2k", "--budget", "3k"], 2, "over the window"),
    ],
)
def test_limits_that_leave_nothing_are_refused_with_what_to_do(
    arguments: list[str], code: int, said: str, muntin: Muntin
) -> None:
    """A guessed budget cuts what would have fitted, or fits what will be refused."""
    given = json.dumps([{"role": "user", "content": "x"}])
    ended = muntin("trim", "-", *arguments, stdin=given)
    folded = muntin("compact", "-", *arguments, stdin=given)

    assert ended.code == code
    assert said in ended.err
    if any("reserve" in one for one in arguments):  # compact needs no window, and has no budget
        assert (folded.code, said in folded.err) == (code, True)


def test_a_window_decides_when_a_conversation_is_compacted(
    muntin: Muntin, chat: list[dict[str, Any]], chat_file: Path
) -> None:
    """A conversation over the window must be compacted, and one below it left as it is."""
    size = count_messages(chat, counter=estimate_tokens)
    for window, is_folded in ((size * 2 + 2, False), (size * 2 - 2, True)):
        told = muntin(
            "compact", chat_file, "--window", str(window), "--reserve", "50%", "--json"
        ).json
        report = told["conversations"][0]["report"]

        assert (told["result"] != chat) is is_folded
        assert report["window"] == window
        assert report["used"] <= report["budget"] == window - report["reserve"]


def test_a_compacted_conversation_over_the_window_is_not_written(
    muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """A result that the model refuses must not look like a success."""
    long = [*chat, {"role": "user", "content": "word " * 3000}]
    (tmp_path / "long.json").write_text(json.dumps(long))
    ended = muntin("compact", "long.json", "--window", "4k", "--output", "out.json")

    assert ended.code == 3
    assert "the recap and the newest messages" in ended.err
    assert not (tmp_path / "out.json").exists()
