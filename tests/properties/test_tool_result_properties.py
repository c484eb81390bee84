"""What holds of every shortened tool result, whatever the tool returned and whoever counts."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from counters import COUNTERS
from muntin import ToolResultStore, read_tool_result, truncate_tool_result
from muntin.errors import ContextWindowExceeded
from muntin.prompts import PromptRegistry
from muntin.text.boundaries import clean_text
from muntin.tool_results.reader import read_tool
from muntin.tool_results.shorten import atruncate_tool_result, truncate_batch
from strategies import json_values, tool_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

budgets = st.one_of(st.integers(1, 40), st.integers(1, 2000))


@pytest.fixture(params=sorted(COUNTERS), scope="module")
def counting(request: pytest.FixtureRequest) -> Callable[[str], int]:
    """Every counter, the super-additive one among them; made once for all examples."""
    name: str = request.param
    return COUNTERS[name]()


@given(result=tool_outputs, max_tokens=budgets, stored=st.booleans(), chinese=st.booleans())
def test_a_shortened_result_is_under_its_cap_marker_included(
    counting: Callable[[str], int],
    result: str,
    max_tokens: int,
    stored: bool,  # noqa: FBT001 - drawn
    chinese: bool,  # noqa: FBT001 - drawn
) -> None:
    """A marker that is added after the cut puts the prompt over the window."""
    prompts = PromptRegistry("zh" if chinese else "en")
    store = ToolResultStore.in_memory() if stored else None
    shown = truncate_tool_result(result, max_tokens, counter=counting, store=store, prompts=prompts)
    assert counting(shown) <= max_tokens
    assert shown or not result
    shown.encode("utf-8")
    again = truncate_tool_result(shown, max_tokens, counter=counting, store=store, prompts=prompts)
    assert again is shown


@given(value=json_values, indent=st.sampled_from([None, 2]), max_tokens=st.integers(1, 400))
@example(value=False, indent=None, max_tokens=1)  # became a mark that is no JSON
@example(value=1.2345678901234567, indent=None, max_tokens=5)  # became 0.0
def test_json_stays_json_of_its_kind(
    counting: Callable[[str], int],
    value: Any,
    indent: int | None,
    max_tokens: int,
) -> None:
    """A caller that parses results gets an exception for a text cut in the middle of a string."""
    result = json.dumps(value, indent=indent)
    shown = truncate_tool_result(result, max_tokens, counter=counting)
    assert counting(shown) <= max_tokens
    if max(map(counting, ("[]", "{}", '""', '"…"'))) > max_tokens:
        return
    parsed = json.loads(shown)
    if not isinstance(value, (dict, list)):  # a number is shown as it is, or as a text with a mark
        assert parsed == value or isinstance(parsed, str)
    for kind in (dict, list, str):
        assert isinstance(parsed, kind) or not isinstance(value, kind)


@given(
    result=tool_outputs.filter(bool),
    caps=st.lists(st.integers(40, 600), min_size=2, max_size=4),
)
def test_shortening_again_keeps_the_id_and_size_of_the_first_original(
    counting: Callable[[str], int], result: str, caps: list[int]
) -> None:
    """Otherwise the second id reads back a text that was cut already, and the first one is lost."""
    store = ToolResultStore.in_memory()
    stored: list[str] = []
    put = store.put

    def counted_put(text: str) -> str | None:
        stored.append(text)
        return put(text)

    store.put = counted_put
    shown = result * 30
    for cap in sorted(caps, reverse=True):
        before, marked = len(stored), "tr_" in shown
        shown = truncate_tool_result(shown, cap, counter=counting, store=store)
        assert not (marked and len(stored) > before)
        if "tr_" in shown and len(stored) == 1:
            key = shown[shown.index("tr_") :][:23]
            # Where it fitted at first it came back without half characters, and is stored so.
            assert clean_text(store.get(key) or "") == clean_text(result * 30)


@given(results=st.lists(tool_outputs, min_size=1, max_size=8), each=st.integers(1, 120))
def test_a_batch_shares_one_cap_and_leaves_what_is_small_alone(
    counting: Callable[[str], int], results: list[str], each: int
) -> None:
    """Twenty results that are each under their cap overflow together."""
    total = each * len(results)
    try:
        texts = truncate_batch(results, total, counter=counting)
    except ContextWindowExceeded as error:
        assert error.needed > error.available == total  # noqa: PT017 - nothing follows
        return
    assert sum(map(counting, texts)) <= total
    assert len(texts) == len(results)
    for result, text in zip(results, texts, strict=True):
        if counting(result) <= each and result.isprintable():
            assert text is result


@given(
    result=tool_outputs.filter(bool),
    start=st.integers(-200, 4000),
    limit=st.integers(1, 500),
    pattern=st.sampled_from([None, "a", r"\d+", "(a+)+$", r"^\s*$", "é|中"]),
    max_tokens=st.integers(240, 900),
)
def test_reading_back_is_bounded(
    counting: Callable[[str], int],
    result: str,
    start: int,
    limit: int,
    pattern: str | None,
    max_tokens: int,
) -> None:
    """A model that reads back a giant result must not get the giant result."""
    store = ToolResultStore.in_memory()
    key = store.put(result) or ""
    shown = read_tool_result(
        key, start, limit, pattern, store=store, max_tokens=max_tokens, counter=counting
    )
    assert counting(shown) <= max_tokens
    shown.encode("utf-8")


@given(result=tool_outputs.filter(bool), limit=st.integers(1, 90))
@example(result="e\u0301" * 5, limit=1)  # a character longer than the limit was read for ever
def test_reading_from_mark_to_mark_gives_every_character_once(result: str, limit: int) -> None:
    """The rest of a result is worth nothing if paging skips or repeats parts of it."""
    store = ToolResultStore.in_memory()
    original = "".join(result.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    tool = read_tool(store, max_tokens=None)
    key = store.put(result) or ""
    parts: list[str] = []
    start = 0
    while start < len(original):
        head, _, part = tool(key, start, limit).partition("\n")
        end = int(head.split(" to ")[1].split(" ")[0])
        assert end > start
        parts.append(part)
        start = end
    assert "".join(parts) == original


@given(result=tool_outputs, max_tokens=budgets)
def test_both_entry_points_say_the_same(result: str, max_tokens: int) -> None:
    """A twin that drifts is found by whoever uses the other entry point."""
    shown = truncate_tool_result(result, max_tokens)
    assert asyncio.run(atruncate_tool_result(result, max_tokens)) == shown
