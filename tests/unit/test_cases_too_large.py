"""Cases: one item, one batch or the request for a summary is itself larger than the window.

Leaving messages out does not help against a giant that must stay: it has to be cut, with its
original kept. The properties are `test_any_giants_in_flight_are_brought_inside` and, for the
summariser's own window, `test_no_request_for_a_summary_is_over_its_window`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import A, S, T, U, saying, sound, steps, talk
from chats import Recorder
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.counting.message_counts import count_messages
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError, ContextError, ContextWindowExceeded
from muntin.testing import check_request
from muntin.tool_results.reader import read_tool_result
from muntin.tool_results.shorten import truncate_batch, truncate_tool_result
from muntin.tool_results.store import ToolResultStore

# --- the request for a summary -------------------------------------------------------------------

HISTORIES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "a history as large as the window, and a prompt": ([*talk(100, words=200), U("so?")], 16_000),
    "old tool bodies nobody needs": ([S, U(), *steps(30, text="row " * 3_000), A(), U()], 16_000),
    "one message larger than the window": ([S, U("word " * 60_000), A(), U("so?")], 8_000),
    "a small helper for a large agent": ([*talk(200, words=150), U("so?")], 4_000),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_summariser_is_not_given_more_than_its_window(name: str) -> None:
    """The call that is to make room fails for want of room, and the session is stuck."""
    history, window = HISTORIES[name]
    summarize = Recorder("They spoke.")
    compactor = HistoryCompactor(
        summarize,
        keep_recent=1,
        trigger_tokens=1_000,
        max_summary_tokens=500,
        max_input_tokens=window - 500,
    )
    out = compactor.compact(history)
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.reason == "compacted"
    assert out[-1] == history[-1]
    for text, instruction in zip(summarize.texts, summarize.instructions, strict=True):
        assert count_tokens(text) + count_tokens(instruction) + 500 <= window


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(1, 6_000), min_size=2, max_size=12),
    window=st.integers(400, 4_000),
    tool=st.booleans(),
)
def test_no_request_for_a_summary_is_over_its_window(
    sizes: list[int], window: int, *, tool: bool
) -> None:
    """The kind's property: whatever there is to summarise, and whoever does it."""
    history: list[dict[str, Any]] = []
    for at, size in enumerate(sizes):
        words = f"m{at} " + "word " * size
        history += [A(f"{at}"), T(f"{at}", words)] if tool else [U(words), A(text=f"ok {at}")]
    summarize = Recorder("They spoke.")
    HistoryCompactor(summarize, keep_recent=1, trigger_tokens=10, max_input_tokens=window).compact(
        [*history, U("so?")]
    )
    for text, instruction in zip(summarize.texts, summarize.instructions, strict=True):
        assert count_tokens(text) <= max(window - count_tokens(instruction), window // 2)


def test_the_summarisers_window_is_a_setting_of_its_own() -> None:
    """The agent's cap of 30,000 was put on a summariser that reads 200,000."""
    history = [*talk(100, words=160), U("so?")]
    calls: list[int] = []
    for max_input in (200_000, 30_000):
        summarize = Recorder("They spoke.")
        compactor = HistoryCompactor(
            summarize, keep_recent=1, trigger_tokens=30_000, max_input_tokens=max_input
        )
        compactor.compact(history)
        calls.append(summarize.calls)
    assert calls[0] == 1
    assert calls[1] > 1


def test_what_a_fit_asks_about_is_bounded_too() -> None:
    """The facts are there without a model, so its part need not hold everything."""
    summarize = Recorder("They spoke.")
    history = [S, U(), *steps(300, text="row " * 400), A(), U("so?")]
    fitted = fit_messages(history, budget=2_000, summarizer=summarize, counter=count_tokens)
    assert summarize.calls == 1
    assert len(summarize.texts[0]) < 200_000
    assert fitted.report.used <= 2_000


# --- giants --------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_one_giant_result_is_cut_with_its_original_kept(*, turned: bool) -> None:
    """Too few messages to summarise, said the manager of one result of 500,000 characters."""
    store = ToolResultStore.in_memory()
    giant = "\n".join(f"line {at}: value {at * 7}" for at in range(20_000))
    messages = [S, U(), A("1"), T("1", giant), *([A(text="read"), U("so?")] if turned else [])]
    fitted = fit_messages(messages, budget=2_000, store=store, counter=count_tokens)
    assert fitted.report.used <= 2_000
    assert sound(fitted.messages)
    if not turned:
        text = fitted.messages[3]["content"]
        assert text.count("line ") > 20
        assert "line 0:" in text
        assert "line 19999:" in text
        assert store.get(text[text.index("tr_") :][:23]) == giant
        reduced = reduce_agent_sync(messages, summarize=saying("It read."), budget=2_000)
        assert count_messages(reduced) <= 2_000
        assert sound(reduced)


@pytest.mark.parametrize("spare", range(44, 200, 12))
def test_a_giant_result_says_where_its_original_is_before_older_facts_are_told(spare: int) -> None:
    """Facts of old rounds took the room, and of the result that was asked for a dot was left."""
    counter = TiktokenCounter("o200k_base")
    giant = "\n".join(f"line {at}: value {at * 7}" for at in range(5_000))
    messages = [S, U(), *steps(6, text="order: A-77, state: late. " * 20), A("g"), T("g", giant)]
    with pytest.raises(ContextWindowExceeded) as refused:
        fit_messages(messages, budget=1, counter=counter)
    store = ToolResultStore.in_memory()
    budget = refused.value.needed + spare
    fitted = fit_messages(messages, budget=budget, counter=counter, store=store)
    text = fitted.messages[-1]["content"]
    assert store.get(text[text.index("tr_") :][:23]) == giant
    assert fitted.report.used <= budget


def test_the_large_result_is_cut_and_not_the_oldest() -> None:
    """Where only the oldest one is looked at, and it is small, messages are dropped instead."""
    messages = [S, U(), A("1"), T("1", "small " * 30), A("2"), T("2", "x " * 40_000), A(), U()]
    report = fit_messages(messages, budget=6_000, counter=count_tokens).report
    fates = {decision.index: decision.kind for decision in report.decisions}
    assert fates[3] == "kept"
    assert fates[5] != "kept"


def test_a_replacement_is_smaller_than_what_it_replaces() -> None:
    """Ten collapsed results held the full text again: 2.6 % were saved."""
    messages = [S, U(), *steps(10, text="distinct row of words " * 1_400), U("so?")]
    before = count_messages(messages)
    fitted = fit_messages(messages, budget=before // 8, counter=count_tokens)
    report = fitted.report
    assert report.used <= before // 8
    gain = sum(one.tokens - one.kept_tokens for one in report.decisions)
    assert before - report.used == gain - sum(report.written.values())
    cut = [one for one in report.decisions if one.kind == "shortened"]
    assert all(one.kept_tokens < one.tokens // 2 for one in cut)


def test_a_scraped_page_is_capped_where_it_is_made() -> None:
    """A page of 394,000 tokens stops the crew, and 15,018 of 15,000 does, for the answer counts."""
    window, max_output = 15_000, 2_048
    page = "a line of the page, and another one\n" * 40_000
    assert count_tokens(truncate_tool_result(page, 4_000)) <= 4_000
    for result in (page, truncate_tool_result(page, 4_000)):
        messages = [S, U("word " * 9_000), A("1"), T("1", result)]
        fitted = fit_messages(messages, budget=window - max_output, counter=count_tokens)
        check_request(fitted.messages, window=window, max_output=max_output)


@pytest.mark.parametrize(
    ("count", "small", "budget"), [(6, 1, 4_000), (20, 1, 8_000), (20, 15, 6_000)]
)
def test_a_parallel_batch_shares_one_cap_fairly(count: int, small: int, budget: int) -> None:
    """Each result under its own cap, six to twenty of them overflow together."""
    ids = [f"p{at}" for at in range(count)]
    texts = ["tiny"] * small + [f"row {at}: value\n" * 3_500 for at in range(small, count)]
    messages = [S, U(), A(*ids), *(T(i, text) for i, text in zip(ids, texts, strict=True))]
    fitted = fit_messages(messages, budget=budget, counter=count_tokens)
    assert fitted.report.used <= budget
    assert sound(fitted.messages)
    assert all(message["content"] == "tiny" for message in fitted.messages[3 : 3 + small])
    sizes = [count_tokens(message["content"]) for message in fitted.messages[3 + small :]]
    assert max(sizes) <= 2 * min(sizes)
    assert fitted.report.used > 0.8 * budget  # what the small ones leave goes to the large ones
    shared = truncate_batch(texts, budget)
    assert sum(map(count_tokens, shared)) <= budget
    assert shared[0] == "tiny"


def test_three_thousand_tiny_results_are_brought_inside() -> None:
    """Each call costs more than its result, so cutting results alone frees nothing."""
    ids = [f"p{at}" for at in range(3_000)]
    batch = [A(*ids), *(T(i, f"result {i}") for i in ids)]
    fitted = fit_messages(
        [S, U(), *batch, A(), U("thanks, and?")], budget=2_000, counter=count_tokens
    )
    assert fitted.report.used <= 2_000
    assert sound(fitted.messages)
    in_flight = [S, U(), *batch]
    budget = count_messages(in_flight) * 19 // 20
    fitted = fit_messages(in_flight, budget=budget, counter=count_tokens)
    assert fitted.report.used <= budget
    assert fitted.messages[:3] == in_flight[:3]
    assert sound(fitted.messages)


def test_a_cap_holds_for_the_whole_and_not_for_each_part() -> None:
    """4,000 for each of fifty events is 28,000; fifty matches are no cap on a line of 100,000."""
    events = json.dumps([{"id": at, "text": "event " * 700} for at in range(50)])
    shortened = truncate_tool_result(events, 1_000)
    assert count_tokens(shortened) <= 1_000
    assert json.loads(shortened)
    store = ToolResultStore.in_memory()
    log = "start\n" + "needle " * 14_000 + "\nend"
    result_id = store.put(log)
    assert result_id is not None
    assert len(truncate_tool_result(log, 200)) < 2_000
    for pattern in (None, "needle"):
        answer = read_tool_result(result_id, store=store, limit=1_000, pattern=pattern)
        assert len(answer) < 1_600


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(0, 4_000), min_size=1, max_size=12),
    kind=st.sampled_from(["word ", "row: 1\n", '{"a": 1}, ', "x", "漢"]),
    share=st.floats(0.05, 0.9),
)
def test_any_giants_in_flight_are_brought_inside(sizes: list[int], kind: str, share: float) -> None:
    """The kind's property: pairs whole, calls untouched, and inside the budget or an error."""
    ids = [f"g{at}" for at in range(len(sizes))]
    batch = [A(*ids), *(T(i, kind * size) for i, size in zip(ids, sizes, strict=True))]
    messages = [S, U(), *batch]
    total = count_messages(messages)
    least = count_messages([S, U(), batch[0], *(T(i, "…") for i in ids)])
    budget = max(int(share * total), least)
    fitted = fit_messages(messages, budget=budget, counter=count_tokens)
    assert count_messages(fitted.messages) <= budget
    assert fitted.messages[:3] == messages[:3]
    assert sound(fitted.messages)


# --- errors --------------------------------------------------------------------------------------

IMPOSSIBLE: dict[str, Any] = {
    "a question over the budget": lambda: fit_messages(
        [S, U("word" * 1_000)], budget=100, counter=count_tokens
    ),
    "steps over the budget": lambda: reduce_agent_sync(
        [S, U("word" * 1_000), *steps(3)], summarize=saying("x"), budget=100
    ),
    "no budget": lambda: fit_messages([S, U()], budget=0, counter=count_tokens),
    "no cap": lambda: truncate_tool_result("x" * 100, 0),
    "a batch without room": lambda: truncate_batch(["x" * 100] * 50, 10),
    "a trigger below nothing": lambda: HistoryCompactor(None, trigger_tokens=-1),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_overflow_is_an_ordinary_exception(name: str) -> None:
    """An interpreter that exits cannot be caught by whoever runs the agent."""
    with pytest.raises(ContextError) as caught:
        IMPOSSIBLE[name]()
    assert isinstance(caught.value, (ContextWindowExceeded, ConfigurationError))
    assert isinstance(caught.value, Exception)


def test_the_error_names_the_sizes() -> None:
    """Whoever meets it has to know what to shorten, and by how much."""
    with pytest.raises(ContextWindowExceeded, match="newest user message: 1004") as caught:
        fit_messages([S, U("word" * 1_000)], budget=100, counter=count_tokens)
    assert caught.value.needed > caught.value.available == 100
    assert sum(caught.value.parts.values()) == caught.value.needed
