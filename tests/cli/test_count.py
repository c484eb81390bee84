"""`muntin count`: tokens a file and in total, for several models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from muntin import TiktokenCounter, count_messages, estimate_tokens

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from cli_runs import Muntin


def test_files_and_total_are_counted_for_every_model(muntin: Muntin, tmp_path: Path) -> None:
    """A table of two models is the question whether the other one is cheaper."""
    texts = {"a.txt": "Hello world, how are you? " * 20, "b.txt": "漢字とかな " * 20}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    told = muntin("count", "a.txt", "b.txt", "-m", "gpt-4o", "-m", "gpt-4", "--json").json

    assert (
        told["counters"]["gpt-4o"].items()
        >= {"counter": "tiktoken:o200k_base", "exact": True}.items()
    )
    for one, text in zip(told["files"], texts.values(), strict=True):
        assert one["characters"] == len(text)
        assert one["tokens"] == {
            "gpt-4o": TiktokenCounter("o200k_base")(text),
            "gpt-4": TiktokenCounter("cl100k_base")(text),
        }
    assert told["total"]["tokens"]["gpt-4o"] == sum(o["tokens"]["gpt-4o"] for o in told["files"])


def test_a_pipe_gets_plain_columns(muntin: Muntin, tmp_path: Path) -> None:
    """`| sort -n | tail` has to work, so there are no frames and no colours."""
    (tmp_path / "a b.txt").write_text("hello " * 2000)
    (tmp_path / "c.txt").write_text("hi")
    lines = muntin("count", tmp_path).out.splitlines()

    assert lines[0].split() == ["estimate", "characters", "file"]
    assert lines[1].endswith("a b.txt")
    assert lines[-1].split()[-1] == "total"
    assert int(lines[-1].split()[0].replace(",", "")) == (
        estimate_tokens("hello " * 2000) + estimate_tokens("hi")
    )


def test_stdin_is_counted_when_no_file_is_named(muntin: Muntin) -> None:
    """The shortest use of all: `pbpaste | muntin count`."""
    told = muntin("count", "--json", stdin="hello world").json

    assert told["total"]["tokens"] == {"estimate": estimate_tokens("hello world")}
    assert muntin("count", "-", "--json", stdin="hello world").json["files"][0]["path"] == "-"


def test_conversations_are_counted_as_they_are_sent(
    muntin: Muntin, chat_file: Path, chat: list[dict[str, Any]]
) -> None:
    """The JSON around messages is not what a model is charged for."""
    told = muntin("count", "--chat", chat_file, "--json").json

    assert told["files"][0]["tokens"]["estimate"] == count_messages(chat, counter=estimate_tokens)


def test_over_the_budget_is_exit_code_3(muntin: Muntin, chat_file: Path) -> None:
    """A check in a pipeline: this prompt must stay under so many tokens."""
    assert muntin("count", chat_file, "--budget", "100k").code == 0
    over = muntin("count", chat_file, "--budget", "1k")

    assert over.code == 3
    assert "over the budget of 1,000" in over.err


def test_a_model_nobody_knows_is_estimated_and_says_so(muntin: Muntin, chat_file: Path) -> None:
    """An estimate that passes for a count is believed."""
    ended = muntin("count", chat_file, "-m", "some-model-nobody-heard-of")

    assert ended.code == 0
    assert "no tokenizer is known" in ended.err
    assert "an estimate" in ended.err


def test_what_is_no_text_is_skipped_with_a_note(muntin: Muntin, tmp_path: Path) -> None:
    """Binary data has no tokens, and a folder always holds some."""
    (tmp_path / "x.bin").write_bytes(b"\0\1")
    (tmp_path / "y.txt").write_text("hello")
    ended = muntin("count", tmp_path)
    alone = muntin("count", tmp_path / "x.bin")

    assert ended.code == 0
    assert "x.bin: binary" in ended.err
    assert alone.code == 2
    assert alone.err.splitlines()[-1].endswith("name files or folders that hold some")


def test_a_large_file_is_counted_in_parts(
    muntin: Muntin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of any size is counted in little memory, and the sum stays the sum."""
    monkeypatch.setattr("muntin.cli.commands.count._PART", 4096)
    text = "A paragraph of some words.\n\n" * 2_000
    (tmp_path / "x.txt").write_text(text)
    ended = muntin("count", tmp_path / "x.txt", "-m", "gpt-4o", "--json")
    counted = ended.json["total"]["tokens"]["gpt-4o"]

    assert abs(counted - TiktokenCounter("o200k_base")(text)) <= 20
    assert "parts" in ended.err
    assert json.loads(ended.out)["total"]["characters"] == len(text)


def test_characters_of_a_conversation_are_those_that_are_counted(
    muntin: Muntin, chat: list[dict[str, Any]], chat_file: Path
) -> None:
    """Of 231,727 characters sent, "5,729" were shown: results and arguments were left out."""
    told = muntin("count", "--chat", chat_file, "--json").json
    results = sum(len(one["content"]) for one in chat if one["role"] == "tool")

    assert told["total"]["characters"] > results
    assert 1 < told["total"]["characters"] / told["total"]["tokens"]["estimate"] < 6
