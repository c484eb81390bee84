"""Every form is read, trimmed at many budgets, and written back with all else as it was."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from form_samples import QUESTION, SAMPLES, Sample
from muntin import count_messages, estimate_tokens
from muntin.cli.commands.compact import _Compact  # pyright: ignore[reportPrivateUsage]
from muntin.cli.commands.trim import _Trim  # pyright: ignore[reportPrivateUsage]
from muntin.cli.conversations.change import change_file
from muntin.cli.conversations.opening import read_chat
from muntin.cli.forms.registry import FORMS
from muntin.errors import ContextWindowExceeded
from muntin.messages import pairing_problems, view

if TYPE_CHECKING:
    from pathlib import Path

    from muntin.cli.conversations.chat_file import Chat

EACH = pytest.mark.parametrize(
    "sample", SAMPLES, ids=[f"{n}-{one.form}" for n, one in enumerate(SAMPLES)]
)
BUDGETS = range(180, 3000, 95)


def _trim(budget: int) -> _Trim:
    return _Trim(budget=budget, window=None, reserve=None, question=None, keep=0, tools=None,
                 repair=False, model=None)  # fmt: skip


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


def _texts(value: Any) -> set[str]:
    """Find every text of a document without any reader of forms: strings of several words."""
    if isinstance(value, str):
        if value[:1] in ("[", "{"):  # a span has its messages as the text of JSON
            with suppress(ValueError):
                return _texts(json.loads(value))
        return {part for part in value.split("\n\n") if " " in part.strip()}
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    if isinstance(value, dict):
        parts = [*cast("dict[str, Any]", value).values()]
    return set[str]().union(*map(_texts, parts))


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
        inside = _texts(written) - _texts(sample.outside(written))
        assert sum(map(estimate_tokens, inside)) <= budget + len(inside), budget
        assert _problems(chat) == (), budget
        assert view(chat.messages[-1]).text.strip() == QUESTION, budget
        assert sample.outside(written) == given, budget
    assert fitted > 25


@EACH
def test_compaction_keeps_the_form_and_everything_else(sample: Sample, tmp_path: Path) -> None:
    """A recap is a message of the same form, and it is shorter than what it replaces."""
    before, after = _compacted(sample, tmp_path, trigger=400, keep=3)

    assert after < before


@pytest.mark.slow
@EACH
def test_every_trigger_of_compaction_keeps_everything_else(sample: Sample, tmp_path: Path) -> None:
    """The place where the recap goes changes with the trigger, and the rest must not."""
    shorter = 0
    for trigger in BUDGETS:
        before, after = _compacted(sample, tmp_path, trigger=trigger, keep=1 + trigger % 9)
        shorter += after < before
        assert after <= max(before, trigger), trigger
    assert shorter > 5


def _compacted(sample: Sample, tmp_path: Path, *, trigger: int, keep: int) -> tuple[int, int]:
    """Compact a sample, check what is written, and return the tokens before and after."""
    path = _file(tmp_path, sample)
    out = path.with_name(f"out{sample.suffix}")
    change = _Compact(trigger=trigger, keep=keep, summary=200, question=None, model=None)
    change_file(path, change, target=out)
    chat = read_chat(out, sample.form)

    assert _problems(chat) == ()
    assert view(chat.messages[-1]).text.strip() == QUESTION
    assert sample.outside(_parsed(out.read_bytes(), sample)) == sample.outside(
        _parsed(sample.data, sample)
    )
    return _tokens(read_chat(path)), _tokens(chat)
