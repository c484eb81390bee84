"""Cases: the first bytes of a request change, and the provider's cache with all that follows.

A cached prompt costs a tenth. One small thing changed at its head (a cleared result, a clock, the
order of tools) and the next request pays for everything again. The property is
`test_the_same_conversation_is_the_same_bytes`.
"""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from case_messages import A, S, T, U, call, fit_or_none, steps, talk
from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import MessageCounts, count_messages
from muntin.counting.tokens import count_tokens
from muntin.report.caching import cache_warnings
from strategies import conversations


def shared_tokens(before: list[Any], after: list[Any]) -> int:
    """Count the tokens of the messages both requests begin with."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    return count_messages(before[:same])


def test_clearing_is_done_in_batches() -> None:
    """One old result cleared at each step: 219,000 cached tokens became 0, sixty times."""
    history: list[Any] = [S, U("the task")]
    sent: list[list[Any]] = []
    for at in range(200):
        history += [A(f"k{at}"), T(f"k{at}", f"item_id: B-{at} " * 8)]
        sent.append(fit_messages(history, budget=4_000, counter=count_tokens).messages)
    kept = [
        shared_tokens(before, after) / count_messages(before) for before, after in pairwise(sent)
    ]
    assert sent[-1] is not history
    moved = sum(share < 0.9 for share in kept)
    assert 2 <= moved <= len(kept) * 0.35


def test_while_a_history_grows_most_fits_share_their_prefix() -> None:
    """The full history is given each time, as adapters do; the note must not change each time."""
    history: list[dict[str, Any]] = [S, U("the task")]
    notes: list[str] = []
    for at in range(120):
        history += [A(f"k{at}"), T(f"k{at}", f"item_id: B-{at} " * 10)]
        fitted = fit_messages(history, budget=4_000, counter=count_tokens)
        if fitted.changed:
            notes += [m["content"] for m in fitted.messages if "Earlier" in str(m["content"])][:1]
    assert len(notes) > 20
    assert len(set(notes)) <= len(notes) // 2


def test_what_a_cut_costs_in_the_cache_can_be_read() -> None:
    """Whoever decides about a cut has to know which token is the first that changed."""
    history = [S, *talk(12), U("so?")]
    whole = fit_messages(history, budget=100_000, counter=count_tokens).report
    grown = fit_messages(
        [*history, A(text="So."), U("and?")], budget=100_000, counter=count_tokens
    ).report
    appended = grown.diff(whole)
    assert appended.stable_prefix_tokens >= whole.used - 4 * 2
    cut = fit_messages(
        [*history, A(text="So."), U("and?")], budget=300, counter=count_tokens
    ).report.diff(whole)
    assert cut.first_changed_token is not None
    assert cut.first_changed_token < 20
    assert cut.went_out


def test_results_that_say_nothing_new_go_first_and_move_nothing_else() -> None:
    """A superseded read and a repeated result: cutting them loses nothing."""
    page = "the same long page " * 40
    messages = [S, U()]
    for at in range(3):
        read = {**A(), "content": None, "tool_calls": [call(f"r{at}", "read", "{}")]}
        messages += [read, T(f"r{at}", f"version {at} of the file " * 30)]
    messages += [A("o1"), T("o1", page), A("o2"), T("o2", page)]
    messages += [A(), U("so?")]
    fitted = fit_messages(messages, budget=count_messages(messages) - 200, counter=count_tokens)
    reasons = {d.index: d.reason for d in fitted.report.decisions if d.kind == "shortened"}
    assert reasons == {3: "superseded", 5: "superseded", 9: "exact_duplicate"}
    untouched = [at for at in range(len(messages)) if at not in reasons]
    assert all(fitted.messages[at] is messages[at] for at in untouched)


def test_no_clock_and_no_counter_stand_where_the_prefix_is() -> None:
    """A clock at the head of the prompt means that nothing is read from the cache, ever."""
    history = [S, *talk(40), U("so?")]
    fitted = fit_messages(history, budget=400, counter=count_tokens)
    again = fit_messages(copy.deepcopy(history), budget=400, counter=count_tokens)
    assert json.dumps(again.messages) == json.dumps(fitted.messages)
    note = fitted.messages[1]["content"]
    assert cache_warnings(note) == ()
    assert "%" not in note
    assert cache_warnings("Today is 2026-03-01, 09:41:07. You help.") != ()
    assert cache_warnings(str(S["content"])) == ()


def test_the_order_of_keys_and_tools_changes_nothing_that_is_sent() -> None:
    """Tools out of a set come in another order each time, and nothing is cached again."""
    tools = [{"name": f"t{at}", "description": f"does {at}", "parameters": {"type": "object"}}
             for at in range(12)]  # fmt: skip
    shuffled = [dict(reversed(tool.items())) for tool in reversed(tools)]
    history = [S, *talk(20), U("so?")]
    one = fit_messages(history, budget=600, tools=tools, counter=count_tokens)
    other = fit_messages(history, budget=600, tools=shuffled, counter=count_tokens)
    assert one.messages == other.messages
    assert one.report.used == other.report.used
    assert count_messages(history, tools) == count_messages(history, shuffled)


@settings(max_examples=20)
@given(conversations(), st.floats(0.05, 1.0))
def test_the_same_conversation_is_the_same_bytes(messages: list[Any], share: float) -> None:
    """The kind's property: no clock, no chance, no order of a hash, no trace of earlier calls."""
    budget = max(1, int(share * count_messages(messages)))
    first = fit_or_none(messages, budget)
    fit_or_none(messages, max(1, budget // 2))
    second = fit_or_none(copy.deepcopy(messages), budget, counts=MessageCounts(count_tokens))
    assert (first is None) is (second is None)
    if first is not None and second is not None:
        assert repr(second.messages) == repr(first.messages)


def test_steps_of_a_long_run_keep_their_thinking_where_it_was() -> None:
    """Thinking that is stripped between turns changes every message that carried some."""
    rounds: list[dict[str, Any]] = []
    for at, message in enumerate(steps(20)):
        thought = {"reasoning_content": f"thought {at}"} if message["role"] == "assistant" else {}
        rounds.append({**message, **thought})
    messages = [S, U("the task"), *rounds, A(), U("so?")]
    fitted = fit_messages(messages, budget=600, counter=count_tokens)
    assert fitted.changed
    kept = [message for message in fitted.messages if "reasoning_content" in message]
    assert kept
    assert all(message in messages for message in kept)
