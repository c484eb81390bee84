"""Cases: a cut in the wrong place makes what is left unreadable, for a program or for a model.

Half a character and the body is no JSON; half an argument and the call is refused for ever; a
quiet mark and a tenth of a result is taken for the whole. The properties are
`test_any_cut_can_be_sent_and_read` and those of `properties/test_tool_result_properties.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import A, S, T, U, call, fit_or_none, steps
from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import count_messages
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.counting.truncation import truncate_to_tokens
from muntin.messages.message import Message
from muntin.messages.shapes import view
from muntin.text.boundaries import clean_text, grapheme_start
from muntin.tool_results.reader import read_tool_result
from muntin.tool_results.shorten import shorten_tool_result, truncate_tool_result
from muntin.tool_results.store import ToolResultStore
from strategies import any_text, conversations, json_values

WHOLE: dict[str, str] = {
    "a family of emoji": "👩‍👩‍👧‍👦",
    "a flag": "🇩🇪",
    "an emoji with a skin": "👍🏽",
    "Thai": "ประเทศ",
    "Hindi": "नमस्ते",
    "a letter and its accent": "e\u0301",
    "half a character": "\ud83d",
    "Chinese": "漢字",
}


@pytest.mark.parametrize("name", WHOLE)
def test_cuts_leave_whole_characters(name: str) -> None:
    """Half a character is no JSON, and the session cannot be resumed."""
    messages = [S, U(), A("1"), T("1", WHOLE[name] * 3_000)]
    for budget in range(160, 400, 61):
        out = fit_messages(messages, budget=budget, counter=len).messages
        json.dumps(out, ensure_ascii=False).encode()


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "half a character"])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_a_cut_by_tokens_ends_with_a_character_at_every_length(name: str, encoding: str) -> None:
    """Decoding the first k tokens ends in half a character at most lengths."""
    text = WHOLE[name] * 5
    counter = TiktokenCounter(encoding)
    for k in range(1, counter(text) + 1):
        cut = truncate_to_tokens(text, k, counter, marker="")
        assert text.startswith(cut)
        assert grapheme_start(text, len(cut)) == len(cut)
        assert "\ufffd" not in cut
        assert counter(cut) <= k


def test_what_came_in_broken_is_repaired_where_it_stands() -> None:
    """Input that holds a lone surrogate already cannot be written, however little is cut."""
    messages: list[Any] = [Message("ok \ud83d", "user"), Message("fine", "assistant")]
    out = fit_messages(messages, budget=500).messages
    assert [message.content for message in out] == ["ok \ufffd", "fine"]
    assert messages[0].content == "ok \ud83d"
    assert clean_text("\ud83d\ude00") == "\U0001f600"


# --- arguments -----------------------------------------------------------------------------------

ARGUMENTS = {
    "a file to write": json.dumps({"path": "a", "content": "x" * 5_000}),
    "escapes at every place": json.dumps({"text": '"\\\n' * 400}),
    "deeply nested": json.dumps({"a": [{"b": [1, 2, {"c": "y" * 900}]}] * 3}),
    "not JSON at all": "{broken",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_never_cut(name: str) -> None:
    """A call whose arguments do not parse is refused for ever after."""
    arguments = ARGUMENTS[name]
    write = {"role": "assistant", "content": None, "tool_calls": [call("1", "write", arguments)]}
    for tail in ([], [*steps(5), A(), U()]):
        messages = [S, U(), write, T("1", "ok " * 400), *tail]
        total = count_messages(messages)
        tried = 0
        for budget in range(total - total // 2, total, max(1, total // 20)):
            fitted = fit_or_none(messages, budget)
            if fitted is None:
                continue
            tried += fitted.changed
            made = [one.arguments for message in fitted.messages for one in view(message).calls]
            assert all(one == arguments or json.loads(one) for one in made)
        assert tried


# --- results -------------------------------------------------------------------------------------

RECORDS: dict[str, Any] = {
    "forty records": [{"id": at, "name": f"item {at}", "price": at * 1.5} for at in range(40)],
    "one giant element": [{"id": 7, "body": "words of the page " * 900}],
    "a record with a giant field": {"id": 7, "status": "open", "log": ["line of it"] * 2_000},
    "rows of rows": [[at, at * at, "cell " * 5] for at in range(200)],
}


@pytest.mark.parametrize("cap", [60, 125, 250])
@pytest.mark.parametrize("name", RECORDS)
def test_a_cut_result_parses_and_says_that_it_is_cut(name: str, cap: int) -> None:
    """The schema is broken by the cut, or the mark is so quiet that a part passes for the whole."""
    store = ToolResultStore.in_memory()
    whole = json.dumps(RECORDS[name])
    assert count_tokens(whole) > cap
    done = shorten_tool_result(whole, cap, store=store)
    value = json.loads(done.text)
    assert type(value) is type(RECORDS[name])
    assert count_tokens(done.text) <= cap
    assert done.shortened
    assert done.tokens == count_tokens(done.text)
    assert done.original_tokens == count_tokens(whole)
    assert done.result_id is not None
    assert done.result_id in done.text
    assert store.get(done.result_id) == whole
    assert f"{count_tokens(whole):,}" in done.text
    first = json.dumps(value[0] if isinstance(value, list) else next(iter(value.items())))
    assert done.result_id in first
    assert whole[:40] in read_tool_result(done.result_id, store=store, limit=200)


def test_the_mark_stands_in_front_of_a_text() -> None:
    """At the end of a long text it is read last, or not at all."""
    text = truncate_tool_result("a line of the log\n" * 4_000, 300)
    assert text.startswith("[Shortened")
    assert "18,000" in text.splitlines()[0]
    assert "lines omitted" in text


@settings(max_examples=25)
@given(
    conversations("openai-chat"),
    st.one_of(any_text.map(lambda text: text * 40), json_values.map(json.dumps)),
    st.floats(0.2, 1.0),
)
def test_any_cut_can_be_sent_and_read(messages: list[Any], result: str, share: float) -> None:
    """The kind's property: UTF-8, JSON, arguments that parse, and a JSON result that stays one."""
    messages = [*messages, U("Look."), A("z"), T("z", result)]
    fitted = fit_or_none(messages, max(1, int(share * count_messages(messages))))
    if fitted is None:
        return
    out = fitted.messages
    assert json.loads(json.dumps(out, ensure_ascii=False).encode()) == out
    for message in out:
        assert all(json.loads(one.arguments) is not None for one in view(message).calls)
    assert out[-1]["tool_call_id"] == "z"
