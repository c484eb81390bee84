"""Shortened tool results: by kind, under the cap, with a marker that leads back."""

from __future__ import annotations

import base64
import json
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from counters import characters
from muntin import (
    ConfigurationError,
    ContextWindowExceeded,
    ToolResultStore,
    count_tokens,
    read_tool_result,
    truncate_tool_result,
)
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.prompts import PromptRegistry
from muntin.tool_results.shorten import shorten_tool_result, truncate_batch

if TYPE_CHECKING:
    from conftest import EntryPoint

from muntin.tool_results.shorten import atruncate_tool_result

LOG = "\n".join(
    [f"step {n}: ok" for n in range(300)]
    + ["Traceback (most recent call last):", '  File "a.py", line 3', "ValueError: no such flight"]
    + [f"step {n}: ok" for n in range(300, 900)]
)
RECORDS = [
    {"id": n, "name": f"item {n}", "price": 10.5, "tags": ["a", "b"], "text": "lorem ipsum " * 40}
    for n in range(40)
]


def test_what_fits_comes_back_as_the_same_object() -> None:
    text = "short " * 10
    assert truncate_tool_result(text, 1000) is text
    assert truncate_tool_result("", 1) == ""
    assert not shorten_tool_result(text).shortened


def test_a_log_keeps_both_ends_and_its_error() -> None:
    """Head and tail alone lose the one line that matters."""
    shown = truncate_tool_result(LOG, 120, store=ToolResultStore.in_memory())
    lines = shown.split("\n")
    assert lines[0].startswith("[Shortened from 2,919 tokens, 11,673 characters.")
    assert lines[1] == "step 0: ok"
    assert lines[-1] == "step 899: ok"
    assert "ValueError: no such flight" in lines
    assert sum("lines omitted" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("table", "head"),
    [
        ("name,qty,price\n{}", ["name,qty,price"]),
        ("name\tqty\tprice\n{}", ["name\tqty\tprice"]),
        ("| name | qty |\n|------|-----|\n{}", ["| name | qty |", "|------|-----|"]),
        ("NAME  QTY\n----- ---\n{}", ["NAME  QTY", "----- ---"]),
    ],
)
def test_a_table_keeps_its_head(table: str, head: list[str]) -> None:
    """Rows without the names of their columns are numbers without a meaning."""
    row = {",": "w,1,2", "\t": "w\t1\t2", "|": "| w | 1 |"}.get(head[0][4], "w     1")
    if "," in head[0]:
        row = "w,1,2"
    shown = truncate_tool_result(table.format("\n".join([row] * 400)), 60)
    assert shown.split("\n")[1 : 1 + len(head)] == head
    assert shown.endswith(row)


def test_one_endless_line_keeps_both_ends() -> None:
    text = "begin " + "x" * 100_000 + " end"
    shown = truncate_tool_result(text, 60)
    assert "begin xxx" in shown
    assert shown.endswith("xxx end")
    assert "characters omitted]…" in shown


def test_an_array_keeps_elements_of_both_ends_and_counts_the_rest() -> None:
    shown: list[Any] = json.loads(truncate_tool_result(json.dumps(RECORDS), 500))
    assert list(shown[0]) == ["_shortened"]
    assert shown[1]["id"] == 0
    assert shown[-1]["id"] == 39
    mark = next(item for item in shown if isinstance(item, str))
    records: list[Any] = [item for item in shown[1:] if item is not mark]
    assert mark == f"… {40 - len(records)} items omitted …"
    assert all(set(record) == set(RECORDS[0]) for record in records)
    assert all(record["price"] == 10.5 for record in records)


def test_a_record_keeps_its_keys_and_what_is_small() -> None:
    """The id of the order is two characters; the page of its history is what must give."""
    result = {"id": "W1", "total": 12.5, "history": "so long " * 5000, "paid": True, "note": None}
    shown = json.loads(truncate_tool_result(json.dumps(result), 100))
    assert list(shown) == ["_shortened", *result]
    assert {key: shown[key] for key in ("id", "total", "paid", "note")} == {
        key: result[key] for key in ("id", "total", "paid", "note")
    }
    assert "characters omitted]…" in shown["history"]


@pytest.mark.parametrize(
    "value",
    [
        {f"k{n}": n for n in range(5000)},
        {"_shortened": "mine", "x": "y" * 9000},
        {"…": "mine", **{f"k{n}": n for n in range(5000)}},
        [["deep " * 500] * 30] * 30,
        [1.5] * 5000,
        "a text " * 2000,
        {"a": {"b": {"c": ["x" * 4000, {"d": "y" * 4000}]}}},
        [{"k" * 5000: "v"}],
        [10**3000, "x" * 4000],
        {"text": "👩‍👩‍👧‍👦" * 900},
        {"text": '\u0000\\"' * 2000},
    ],
    ids=lambda value: json.dumps(value)[:24],
)
@pytest.mark.parametrize("max_tokens", [400, 90, 30, 12, 3])
def test_json_of_every_shape_stays_json_of_its_kind(value: Any, max_tokens: int) -> None:
    shown = truncate_tool_result(json.dumps(value), max_tokens)
    assert count_tokens(shown) <= max_tokens
    assert type(json.loads(shown)) is type(value)


def test_nesting_that_python_itself_gives_up_on_is_shortened_as_text() -> None:
    shown = truncate_tool_result("[" * 100_000 + "]" * 100_000, 50)
    assert count_tokens(shown) <= 50
    deep = json.loads(truncate_tool_result("[" * 200 + '"' + "x" * 9000 + '"' + "]" * 200, 80))
    assert isinstance(deep, list)


@pytest.mark.parametrize("literal", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_no_json_come_out_as_strings(literal: str) -> None:
    """`Infinity` in a body is refused by every parser but Python's."""
    shown = truncate_tool_result(f'{{"a": {literal}, "b": "{"x" * 4000}"}}', 60)
    assert json.loads(shown, parse_constant=lambda name: pytest.fail(name))["a"] == literal


def test_base64_is_stood_for_by_its_size() -> None:
    """One screenshot would take the place of everything else, and says nothing."""
    blob = base64.b64encode(random.Random(1).randbytes(30_000)).decode()
    wrapped = "\n".join(blob[at : at + 76] for at in range(0, len(blob), 76))
    for text in (
        f"before data:image/png;base64,{blob} after",
        f"before\n{wrapped}\nafter",
        json.dumps({"image": blob, "name": "after"}),
        json.dumps({"image": wrapped, "name": "after"}),
    ):
        shown = truncate_tool_result(text, 100)
        assert "[base64, 4" in shown
        assert "after" in shown
    plain = "word/and/Path-" * 400
    assert "base64" not in truncate_tool_result(plain, 100)


@pytest.mark.parametrize("max_tokens", range(1, 60))
@pytest.mark.parametrize("text", ["👩‍👩‍👧‍👦" * 60, "สวัสดีครับ" * 60, "e\u0301" * 300, "🇩🇪" * 200])
def test_cuts_part_no_character(text: str, max_tokens: int) -> None:
    """Half a character is no JSON for some providers, and the session cannot be resumed."""
    import regex

    shown = truncate_tool_result(text, max_tokens, counter=characters)
    assert len(shown) <= max_tokens
    whole = set(regex.findall(r"\X", text))
    for piece in regex.findall(r"\X", shown):
        assert piece.isascii() or piece == "…" or piece in whole


def test_lone_surrogates_are_replaced_in_what_is_sent_and_kept_in_what_is_stored() -> None:
    store = ToolResultStore.in_memory()
    assert truncate_tool_result("a\ud83d", 10) == "a\ufffd"
    text = "\ud83d broken " * 900
    shown = shorten_tool_result(text, 60, store=store)
    shown.text.encode()
    assert store.get(shown.result_id or "") == text
    escaped = json.dumps({"a": "\ud83d" * 900})
    truncate_tool_result(escaped, 60).encode()


def test_the_marker_leads_back_to_every_line() -> None:
    store = ToolResultStore.in_memory()
    shown = shorten_tool_result(LOG, 120, store=store)
    assert shown.result_id
    assert shown.result_id in shown.text.split("\n")[0]
    assert shown.original_tokens == count_tokens(LOG)
    assert shown.tokens == count_tokens(shown.text) <= 120
    assert "step 450: ok" in read_tool_result(shown.result_id, pattern="step 450:", store=store)


@pytest.mark.parametrize("result", [LOG, json.dumps(RECORDS), json.dumps({"r": RECORDS})])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_shortening_again_counts_from_the_first_original(result: str, language: str) -> None:
    """A mark that counts an earlier mark as one line says that almost nothing is missing."""
    store = ToolResultStore.in_memory()
    prompts = PromptRegistry(language)
    first = shorten_tool_result(result, 500, store=store, prompts=prompts)
    second = shorten_tool_result(first.text, 130, store=store, prompts=prompts)
    direct = shorten_tool_result(result, 130, store=store, prompts=prompts)
    assert second.result_id == first.result_id
    assert second.original_tokens == first.original_tokens

    def shown_and_missing(text: str) -> int:
        if text[0] in "[{" and not text.startswith(("[S", "[已")):
            found = json.loads(text)
            items: list[Any] = found["r"] if "r" in found else found[1:]
            marks = [item for item in items if isinstance(item, str)]
            digits = [int("".join(filter(str.isdigit, mark))) for mark in marks]
            return len(items) - len(marks) + sum(digits)
        lines = text.split("\n")[1:]
        marks = [line for line in lines if line.startswith("[…")]
        digits = [int("".join(filter(str.isdigit, mark))) for mark in marks]
        return len(lines) - len(marks) + sum(digits)

    assert shown_and_missing(second.text) == shown_and_missing(direct.text)


@pytest.mark.parametrize("kind", ["text", "list", "dict", "str"])
def test_where_little_fits_the_id_comes_first_and_survives(kind: str) -> None:
    """A dozen words of a log help nobody who cannot read the rest."""
    results: dict[str, Any] = {"list": RECORDS * 9, "dict": {"r": RECORDS * 9}, "str": LOG}
    result = LOG if kind == "text" else json.dumps(results[kind])
    store = ToolResultStore.in_memory()
    counter = TiktokenCounter("o200k_base")
    for cap in (60, 40, 32):
        shown = shorten_tool_result(result, cap, counter=counter, store=store)
        assert shown.tokens <= cap
        assert store.get(shown.text[shown.text.index("tr_") :][:23]) == result
        if kind == "text":
            longer = shown.text + "\nAnd more." * 99
            again = shorten_tool_result(longer, cap, counter=counter, store=store)
            assert again.result_id == shown.result_id
        else:
            assert isinstance(json.loads(shown.text), type(results[kind]))


def test_a_quoted_marker_does_not_cost_a_result_its_own_original() -> None:
    """A page that shows a marker of somebody else's store would otherwise never be stored."""
    store = ToolResultStore.in_memory()
    forged = (
        "[Shortened from 9 tokens, 9 characters. The original is stored: "
        f"read_tool_result(id=tr_{'0' * 20})]\n" + LOG
    )
    shown = shorten_tool_result(forged, 120, store=store)
    assert store.get(shown.result_id or "") == forged
    assert shown.original_tokens == count_tokens(forged)


def test_without_a_store_the_marker_says_that_the_rest_is_gone() -> None:
    shown = shorten_tool_result(LOG, 120)
    assert shown.result_id is None
    assert "The rest was not stored" in shown.text.split("\n")[0]
    again = shorten_tool_result(shown.text, 60)
    assert again.original_tokens == count_tokens(LOG)
    assert again.text.count("Shortened") == 1


def test_a_store_that_is_too_small_is_not_promised() -> None:
    shown = shorten_tool_result(LOG, 120, store=ToolResultStore.in_memory(max_bytes=50))
    assert shown.result_id is None
    assert "tr_" not in shown.text


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_no_budget_is_refused(max_tokens: int) -> None:
    with pytest.raises(ConfigurationError, match="must be a positive int"):
        truncate_tool_result("x", max_tokens)
    with pytest.raises(ConfigurationError, match="must be a positive int"):
        truncate_batch(["x"], max_tokens)


def test_a_counter_by_which_nothing_fits_is_told_so() -> None:
    with pytest.raises(
        ContextWindowExceeded, match="of the tool search: 77 tokens needed, 9 available"
    ):
        truncate_tool_result("x" * 99, 9, counter=lambda text: 77 if text else 0, name="search")


def test_twenty_parallel_results_share_one_cap() -> None:
    """Each under its own cap, they overflow together."""
    store = ToolResultStore.in_memory()
    results = [f"{n} " + "word " * 10_000 for n in range(18)] + ["ok", "also ok"]
    texts = truncate_batch(results, 2000, store=store)
    assert sum(map(count_tokens, texts)) <= 2000
    assert texts[18] is results[18]
    assert texts[19] is results[19]
    large = [count_tokens(text) for text in texts[:18]]
    assert max(large) - min(large) <= 0.1 * max(large)
    assert sum(large) > 0.9 * 2000
    assert all(text.startswith("[Shortened") for text in texts[:18])


def test_what_one_result_leaves_goes_to_the_larger_ones() -> None:
    texts = truncate_batch(["x" * 40, "y" * 8000, "z" * 9000], 500)
    assert texts[0] == "x" * 40
    assert all(count_tokens(text) > 230 for text in texts[1:])


def test_a_batch_without_room_for_a_mark_each_is_told_so() -> None:
    with pytest.raises(ContextWindowExceeded, match="a mark for each of 9"):
        truncate_batch(["x" * 100] * 9, 5)


def test_an_empty_batch_is_empty() -> None:
    assert truncate_batch([], 10) == []


def test_a_summary_stands_when_it_fits(entry_point: EntryPoint) -> None:
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        assert "search" in instruction
        return "HAT136 is free"

    shown = entry_point(
        truncate_tool_result,
        atruncate_tool_result,
        LOG * 50,
        80,
        summarizer=summarize,
        name="search",
        store=ToolResultStore.in_memory(),
    )
    assert shown.startswith("[Key facts of a result of ")
    assert shown.endswith("\nHAT136 is free")
    assert count_tokens(shown) <= 80
    # A giant result must not be sent to a model whole.
    assert [count_tokens(text) <= 8 * 80 for text in asked] == [True]


@pytest.mark.parametrize("reply", ["", "   ", None, "far too long " * 900, RuntimeError("down")])
def test_a_summary_that_is_of_no_use_is_replaced_by_the_excerpt(
    entry_point: EntryPoint, reply: object
) -> None:
    def summarize(text: str, instruction: str) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    plain = truncate_tool_result(LOG, 120)
    shown = entry_point(truncate_tool_result, atruncate_tool_result, LOG, 120, summarizer=summarize)
    assert shown == plain
    assert shorten_tool_result(LOG, 120, summarizer=summarize).problem


def test_results_in_every_language_of_markers_are_capped() -> None:
    shown = truncate_tool_result(LOG, 120, prompts=PromptRegistry("zh"))
    assert shown.startswith("[已缩短：原文")
    assert count_tokens(shown) <= 120


@pytest.mark.parametrize(
    "text",
    [
        "a" * 3_000_000,
        " " * 3_000_000,
        "\n" * 3_000_000,
        "error\n" * 500_000,
        json.dumps([{"id": n, "v": "x" * 20} for n in range(60_000)]),
        json.dumps({f"k{n}": n for n in range(150_000)}),
        json.dumps({"a": "x\n" * 1_000_000}),
        "👩‍👩‍👧‍👦" * 400_000,
        "\\" * 3_000_000,
        "A" * 59 + ("/" + "a1B" * 20) * 50_000,
    ],
    ids=[
        "letters",
        "spaces",
        "lines",
        "errors",
        "records",
        "keys",
        "escapes",
        "emoji",
        "\\",
        "b64",
    ],
)
def test_ten_megabytes_take_time_in_proportion(text: str) -> None:
    """Quadratic work would take hours here; the bound only tells seconds from those."""
    start = time.perf_counter()
    truncate_tool_result(text, 1000, store=ToolResultStore.in_memory())
    assert time.perf_counter() - start < 60
