"""Every form is read, trimmed at many budgets, and written back with all else as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from form_samples import QUESTION, SAMPLES, Sample
from muntin import count_messages, estimate_tokens
from muntin.cli.commands.compact import _Compact  # pyright: ignore[reportPrivateUsage]
from muntin.cli.commands.trim import _Trim  # pyright: ignore[reportPrivateUsage]
from muntin.cli.conversations.change import change_file
from muntin.cli.conversations.chat_file import Chat, read_chat
from muntin.cli.forms.registry import FORMS
from muntin.errors import ContextWindowExceeded
from muntin.messages import pairing_problems, view

if TYPE_CHECKING:
    from pathlib import Path

EACH = pytest.mark.parametrize(
    "sample", SAMPLES, ids=[f"{n}-{one.form}" for n, one in enumerate(SAMPLES)]
)
BUDGETS = range(180, 3000, 95)


def _trim(budget: int) -> _Trim:
    return _Trim(budget=budget, window=None, question=None, keep=0, tools=None, repair=False,
                 model=None)  # fmt: skip


def _parsed(data: bytes, sample: Sample) -> Any:
    text = data.decode("utf-8")
    if sample.form in ("aider", "text"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _file(tmp_path: Path, sample: Sample) -> Path:
    path = tmp_path / f"given{sample.suffix}"
    path.write_bytes(sample.data)
    return path


def _problems(chat: Chat) -> tuple[object, ...]:
    return pairing_problems([view(message) for message in chat.messages])


def _tokens(chat: Chat) -> int:
    return count_messages(chat.messages, chat.tools, counter=estimate_tokens)


def test_there_is_a_sample_of_every_form() -> None:
    """A form without a sample is promised and never tried."""
    assert {one.form for one in SAMPLES} == {form.name for form in FORMS}


@EACH
def test_the_form_is_found_by_content(sample: Sample, tmp_path: Path) -> None:
    """A file read in the wrong form loses its question, with exit code 0."""
    path = tmp_path / "file"
    path.write_bytes(sample.data)
    chat = read_chat(path)
    views = [view(message) for message in chat.messages]

    assert chat.form == sample.form
    assert views[-1].role == "user"
    assert views[-1].text.strip() == QUESTION
    assert sum(len(one.calls) for one in views) == (9 if sample.has_calls else 0)
    assert sum(len(one.results) for one in views) == (9 if sample.has_calls else 0)
    assert _problems(chat) == ()


@EACH
def test_a_conversation_that_fits_is_written_byte_for_byte(sample: Sample, tmp_path: Path) -> None:
    """A file that needs no change must not change."""
    path = _file(tmp_path, sample)
    change_file(path, _trim(100_000), target=tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == sample.data


@EACH
def test_every_budget_is_kept_and_everything_else_stays(sample: Sample, tmp_path: Path) -> None:
    """What is written is read anew and counted again: the file is what counts, not the report."""
    path = _file(tmp_path, sample)
    out = path.with_name(f"out{sample.suffix}")
    given = sample.outside(_parsed(sample.data, sample))
    fitted = 0
    for budget in BUDGETS:
        out.unlink(missing_ok=True)
        try:
            change_file(path, _trim(budget), target=out)
        except ContextWindowExceeded:
            assert not out.exists()
            continue
        fitted += 1
        written = _parsed(out.read_bytes(), sample)
        chat = read_chat(out, sample.form)

        assert _tokens(chat) <= budget, budget
        assert _problems(chat) == (), budget
        assert view(chat.messages[-1]).text.strip() == QUESTION, budget
        assert sample.outside(written) == given, budget
    assert fitted > 25


@EACH
def test_compaction_keeps_the_form_and_everything_else(sample: Sample, tmp_path: Path) -> None:
    """A recap is a message of the same form, and it is shorter than what it replaces."""
    path = _file(tmp_path, sample)
    out = path.with_name(f"out{sample.suffix}")
    change = _Compact(trigger=400, keep=3, summary=200, question=None, model=None)
    change_file(path, change, target=out)
    chat = read_chat(out, sample.form)

    assert _tokens(chat) < _tokens(read_chat(path))
    assert _problems(chat) == ()
    assert view(chat.messages[-1]).text.strip() == QUESTION
    assert sample.outside(_parsed(out.read_bytes(), sample)) == sample.outside(
        _parsed(sample.data, sample)
    )
