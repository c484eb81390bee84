"""What a fit does to results: pictures stay or leave a mark, and repeats give way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from muntin.conversations.fit import afit_messages, fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.messages.shapes import view

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint


def _said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _screens(*groups: tuple[str, ...]) -> list[dict[str, Any]]:
    """Write rounds of screenshots, each with a caption and a picture of its own."""
    messages: list[dict[str, Any]] = [_said("user", "Describe the pages.")]
    for at, captions in enumerate(groups):
        ids = [f"s{at}_{part}" for part in range(len(captions))]
        uses = [{"type": "tool_use", "id": i, "name": "shot", "input": {"of": i}} for i in ids]
        results = [
            {
                "type": "tool_result",
                "tool_use_id": i,
                "content": [
                    *([{"type": "text", "text": caption}] if caption else []),
                    {
                        "type": "image",
                        "source": {
                            "type": "base64", "media_type": "image/png",
                            "data": (i + "AAAA") * 300,
                        },
                    },
                ],
            }
            for i, caption in zip(ids, captions, strict=True)
        ]  # fmt: skip
        messages += [
            {"role": "assistant", "content": uses},
            {"role": "user", "content": results},
        ]
    return messages


_CAPTION = "Screenshot of the page taken, all of it is in view. " * 6
_SCREENS = {
    "a long text beside a picture": _screens(("row 1 | ok " * 500,)),
    "pictures and no word": _screens(("",), ("",), ("",)),
    "one caption": _screens((_CAPTION,), (_CAPTION,), (_CAPTION,)),
    "in parallel": _screens((_CAPTION, _CAPTION, "", "row 1 | ok " * 200)),
}


def _results(messages: Any) -> list[Any]:
    return [result for one in messages for result in view(one).results]


@pytest.mark.parametrize("is_over", [False, True], ids=["in flight", "answered"])
@pytest.mark.parametrize("name", _SCREENS)
def test_a_picture_stays_or_leaves_a_mark(
    name: str, entry_point: EntryPoint, *, is_over: bool
) -> None:
    """A model that is shown a caption alone believes that it saw the page."""
    given = _SCREENS[name]
    if is_over:
        given = [*given, _said("assistant", "I see."), _said("user", "Compare them.")]
    size = count_messages(given)
    for budget in (size - 30, size - 1_500, size // 2, size // 4):
        fitted = entry_point(fit_messages, afit_messages, given, budget=budget)
        assert fitted.report.used <= budget
        media = {one.call_id: one.media for one in _results(given)}
        for result in _results(fitted.messages):
            assert result.text == "…" or result.media or "[image image/png" in result.text
            assert result.media in ((), media[result.call_id])


@pytest.mark.parametrize("name", ["pictures and no word", "one caption", "in parallel"])
def test_no_more_pictures_go_than_have_to(name: str, entry_point: EntryPoint) -> None:
    """A picture costs as much as a page: thirty tokens too many are no reason to lose them all."""
    given = [*_SCREENS[name], _said("assistant", "I see."), _said("user", "Compare them.")]
    budget = count_messages(given) - 30
    fitted = entry_point(fit_messages, afit_messages, given, budget=budget)
    lost = sum(not one.media for one in _results(fitted.messages))
    assert lost <= 1
    assert len(_results(fitted.messages)) == len(_results(given))


def test_a_picture_in_flight_goes_before_the_fit_gives_up(entry_point: EntryPoint) -> None:
    """The round in flight may be cut, last of all, and a picture is part of its results."""
    given = _screens(("",))
    size = count_messages(given)
    (result,) = _results(
        entry_point(fit_messages, afit_messages, given, budget=size - 100).messages
    )
    assert (result.media, result.text[:6]) == ((), "[image")


def _again(*texts: str) -> list[dict[str, Any]]:
    """Write one call that is made again and again."""
    messages = [_said("user", "Read all of it.")]
    for at, text in enumerate(texts):
        function = {"name": "read", "arguments": "{}"}
        call = {"id": f"c{at}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": text},
        ]
    return [*messages, _said("assistant", "All read."), _said("user", "Which are there?")]


def _page(at: int) -> str:
    return f"page {at}: " + ", ".join(f"ticket T-{at}{k:02d} open" for k in range(12))


def _records(at: int) -> str:
    return json.dumps([{"id": f"W-{at}{k}", "sum": at * 91 + k * 7} for k in range(12)])


def _unspaced(at: int) -> str:
    return "".join(chr(0x4E00 + at * 400 + k) for k in range(200))


def _edited(at: int) -> str:
    return "\n".join(f"line {k} of the file" for k in range(40 + at))


def _job(at: int) -> str:
    return json.dumps({"job": "A-7", "done": at, **{f"step{k}": "waits" for k in range(20)}})


@pytest.mark.parametrize("text", [_page, _records, _unspaced])
def test_the_next_page_supersedes_no_page(
    text: Callable[[int], str], entry_point: EntryPoint
) -> None:
    """It comes from the same call, and four pages of five would be gone with all they say."""
    given = _again(*map(text, range(6)))
    fitted = entry_point(
        fit_messages, afit_messages, given, budget=count_messages(given) - 1, counter=count_tokens
    )
    assert "superseded" not in [one.reason for one in fitted.report.decisions]


@pytest.mark.parametrize("text", [_edited, _job])
def test_what_was_read_again_is_superseded(
    text: Callable[[int], str], entry_point: EntryPoint
) -> None:
    """A file after an edit and the state of a job say all that is still true."""
    given = _again(*map(text, range(6)))
    fitted = entry_point(
        fit_messages, afit_messages, given, budget=count_messages(given) - 1, counter=count_tokens
    )
    assert [one.reason for one in fitted.report.decisions].count("superseded") == 5


def test_pages_that_go_leave_their_facts(entry_point: EntryPoint) -> None:
    """A bare mark for a page is what the reader of all pages cannot use."""
    given = _again(*map(_page, range(6)))
    fitted = entry_point(
        fit_messages, afit_messages, given, budget=count_messages(given) - 1, counter=count_tokens
    )
    told = "\n".join([view(one).text for one in fitted.messages])
    told += "\n".join([one.text for one in _results(fitted.messages)])
    assert all(f"T-{at}00" in told for at in range(6))


def test_a_call_that_came_to_nothing_supersedes_nothing() -> None:
    """A second try that failed, or is still under way, says less than the first."""
    text = "\n".join(f"line {k} of the file" for k in range(40))
    for given in (_again(text, "Error: no such file"), _again(text, "")[:-3]):
        fitted = fit_messages(given, budget=count_messages(given) - 1, counter=count_tokens)
        assert "superseded" not in [one.reason for one in fitted.report.decisions]
