"""Reading results back: the right part, and never more than was asked."""

from __future__ import annotations

import time
from typing import Any

import pytest

from muntin import (
    ConfigurationError,
    ContextWindowExceeded,
    ToolResultNotFound,
    ToolResultStore,
    count_tokens,
    read_tool_result,
)
from muntin.tool_results.reader import read_tool

STORE = ToolResultStore.in_memory()
LINES = "\n".join(f"{n}: flight HAT{n:03} {'free' if n % 10 == 6 else 'full'}" for n in range(300))
KEY = STORE.put(LINES) or ""


def test_a_range_says_where_it_is_and_where_to_go_on() -> None:
    shown = read_tool_result(KEY, 10, 30, store=STORE)
    head, _, body = shown.partition("\n")
    assert head == f"[{KEY}: characters 10 to 40 of {len(LINES)}. Go on with start=40]"
    assert body == LINES[10:40]


@pytest.mark.parametrize(
    ("start", "expected"), [(-5, LINES[-5:]), (-(10**9), LINES[:50]), (10**9, "")]
)
def test_any_start_is_understood(start: int, expected: str) -> None:
    assert read_tool_result(KEY, start, 50, store=STORE).partition("\n")[2] == expected


def test_a_pattern_shows_lines_with_their_places() -> None:
    shown = read_tool_result(KEY, pattern="HAT0[0-9]6 free", store=STORE).split("\n")
    assert "matches 10," in shown[0]
    place, _, line = shown[2].partition(": ")
    assert LINES[int(place) :].startswith(line)
    assert line == "16: flight HAT016 free"


def test_many_matches_are_paged() -> None:
    """Going on where the answer stopped must neither skip nor repeat a match."""
    seen: list[str] = []
    start = 0
    while start is not None:
        shown = read_tool_result(KEY, start, 200, "free", store=STORE).split("\n")
        seen += [line.split(": ", 1)[1] for line in shown[1:]]
        start = int(shown[0].split("start=")[1][:-1]) if "start=" in shown[0] else None
    assert seen == [line for line in LINES.split("\n") if "free" in line]


def test_a_match_in_an_endless_line_is_shown_with_what_is_around_it() -> None:
    key = STORE.put("x" * 5000 + "needle" + "y" * 5000) or ""
    shown = read_tool_result(key, pattern="needle", store=STORE)
    assert "needle" in shown
    assert len(shown) < 600


def test_a_match_right_behind_the_part_of_a_line_that_was_shown_is_found() -> None:
    """Searching on one character later, the place the model looks for is never shown."""
    line = "needle" + "x" * 294 + "needle"
    key = STORE.put(line) or ""
    shown = read_tool_result(key, pattern="needle", store=STORE).split("\n")
    assert [line.partition(": ")[0] for line in shown[1:]] == ["0", "200"]
    assert shown[2].endswith("xneedle")


@pytest.mark.parametrize(("limit", "max_tokens"), [(3, 10_000), (500, 80)])
def test_a_character_longer_than_the_room_is_read_in_parts(limit: int, max_tokens: int) -> None:
    """Where each part began at the start of the character again, a model would page for ever."""
    text = "ab" + "e" + "\u0301" * 40 + "cd"
    key = STORE.put(text) or ""
    parts: list[str] = []
    start = 0
    while start < len(text):
        shown = read_tool_result(
            key, start, limit, store=STORE, max_tokens=max_tokens, counter=len
        ).partition("\n")
        end = int(shown[0].split(" to ")[1].split(" ")[0])
        assert end > start
        parts.append(shown[2])
        start = end
    assert "".join(parts) == text
    assert len(parts) > 4


def test_a_start_inside_a_character_is_drawn_to_its_beginning() -> None:
    """Half a character says something else than the whole."""
    key = STORE.put("ae\u0301\u0301b") or ""
    assert read_tool_result(key, 2, 3, store=STORE).partition("\n")[2] == "e\u0301\u0301"


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]$"])
def test_a_pattern_that_would_search_for_ever_is_stopped(pattern: str) -> None:
    """One call of a model must not hang the process."""
    key = STORE.put("a" * 60_000 + "!") or ""
    start = time.perf_counter()
    answer = read_tool(STORE)(key, pattern=pattern)
    assert time.perf_counter() - start < 30
    assert "takes longer than 1 s" in answer or "matches " in answer


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "is not a regular expression"),
        ("*", "is not a regular expression"),
        ("x" * 501, "has 501 characters, 500 are allowed"),
        ("(((a{9999}){9999}){9999}){9999}", "multiply to more than 100,000"),
        ("(?:(?:x{,1000}){1000,})", "multiply to more than 100,000"),
    ],
)
def test_a_pattern_that_is_none_is_said(pattern: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        read_tool_result(KEY, pattern=pattern, store=STORE)


def test_a_limit_is_a_limit() -> None:
    key = STORE.put("z" * 200_000) or ""
    assert len(read_tool_result(key, limit=10**9, store=STORE)) < 41_000
    with pytest.raises(ConfigurationError, match="limit must be a positive int"):
        read_tool_result(key, limit=0, store=STORE)


def test_an_answer_fits_a_token_budget_too() -> None:
    for pattern in (None, "flight"):
        shown = read_tool_result(KEY, 0, 9000, pattern, store=STORE, max_tokens=100)
        assert 60 < count_tokens(shown) <= 100
    with pytest.raises(ContextWindowExceeded, match="reading a tool result"):
        read_tool_result(KEY, store=STORE, max_tokens=5)


def test_an_unknown_id_is_an_error_in_code_and_an_answer_for_a_model() -> None:
    with pytest.raises(ToolResultNotFound):
        read_tool_result("tr_0", store=STORE)
    assert read_tool(STORE)("tr_0").startswith("[no tool result has the id 'tr_0'")
    assert read_tool(STORE)(KEY, limit=-1) == "[limit must be a positive int (characters), got -1]"


@pytest.mark.parametrize(
    ("start", "limit"),
    [("3", "10"), (3.0, 10), (" 3 ", "10.0"), ("3", None), (None, "10"), (None, None)],
)
def test_numbers_are_read_as_models_write_them(start: Any, limit: Any) -> None:
    """JSON of a model is not checked by anybody before it gets here."""
    plain = {"start": 3 if start is not None else 0, "limit": 10 if limit is not None else 4000}
    assert read_tool(STORE)(KEY, start, limit) == read_tool(STORE)(KEY, **plain)


@pytest.mark.parametrize("odd", ["three", 1.5, "1.5", [1], {}, float("nan"), float("inf")])
def test_what_is_no_number_is_named(odd: Any) -> None:
    tool = read_tool(STORE)
    for name in ("start", "limit"):
        answer = tool(KEY, **{name: odd})
        assert answer.startswith(f"[{name} is a whole number of characters")
    assert tool(5).startswith("[no tool result has the id '5'")
    assert isinstance(tool(KEY, pattern=5), str)


def test_the_tool_says_what_it_takes() -> None:
    tool = read_tool(STORE)
    assert tool.name == "read_tool_result"
    assert tool.parameters["required"] == ["id"]
    assert all(entry["description"] for entry in tool.parameters["properties"].values())
    assert tool(id=KEY, start=0, limit=12).endswith("\n0: flight HA")
