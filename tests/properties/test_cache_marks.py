"""Marks of a prompt cache move when their block is cut: as many go out as came in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin import HistoryCompactor, fit_messages
from muntin.conversations import ExtractiveSummarizer
from muntin.errors import ContextWindowExceeded
from muntin.messages import cache_marks, keep_cache_marks, view
from muntin.testing import check_anthropic

MARK = {"type": "ephemeral"}
FORMS = ("anthropic", "openai", "bedrock")


def marked(message: dict[str, Any], form: str) -> dict[str, Any]:
    """Put a mark on the last block of a message, as the provider writes it."""
    blocks: Any = message["content"]
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else list(blocks)
    if form == "bedrock":
        blocks.append({"cachePoint": {"type": "default"}})
    elif form == "openai":
        blocks[-1] = {**blocks[-1], "prompt_cache_breakpoint": {"mode": "explicit"}}
    else:
        blocks[-1] = {**blocks[-1], "cache_control": MARK}
    return {**message, "content": blocks}


def history(turns: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for at in range(turns):
        call = {"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": at}}
        rows = f"row {at} of the depot, 12 boxes. " * 30
        result = {"type": "tool_result", "tool_use_id": f"c{at}", "content": rows}
        out += [{"role": "user", "content": f"Where is parcel P-{at}?"},
                {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": f"P-{at} is in depot {at}. " * 4}]  # fmt: skip
    return [*out, {"role": "user", "content": "Which one is the last?"}]


def total(messages: Any) -> int:
    return sum(map(cache_marks, messages))


@settings(max_examples=60)
@given(
    form=st.sampled_from(FORMS),
    places=st.sets(st.integers(0, 40), max_size=4),
    budget=st.integers(150, 6000),
)
def test_as_many_marks_go_out_as_came_in(form: str, places: set[int], budget: int) -> None:
    """A mark that vanishes with its block switches the cache off, and no error says so."""
    talk = [
        marked(message, form) if at in places else message for at, message in enumerate(history(10))
    ]
    try:
        fitted = fit_messages(talk, budget=budget)
    except ContextWindowExceeded:
        return
    free = [m for m in fitted.messages if view(m).text.strip() and not view(m).results]
    assert total(fitted.messages) >= min(total(talk), len(free))
    assert total(fitted.messages) <= total(talk)
    assert fitted.report.used <= budget
    if form == "anthropic":
        check_anthropic({"max_tokens": 9, "messages": list(fitted.messages)})


def test_a_mark_moves_to_the_last_kept_message_before_it() -> None:
    """The prefix that stays is what the cache still holds."""
    talk = [{"role": "user", "content": str(at)} for at in range(6)]
    talk[3] = marked(talk[3], "anthropic")
    kept = [talk[0], talk[2], talk[5]]

    moved = keep_cache_marks(talk, kept)

    assert [cache_marks(message) for message in moved] == [0, 1, 0]
    assert moved[0] is kept[0]
    assert view(moved[1]) == view(kept[1])


def test_nothing_changes_where_no_mark_was_lost() -> None:
    """A copy of every message would cost the cache more than a lost mark."""
    talk = history(2)
    talk[0] = marked(talk[0], "anthropic")

    assert keep_cache_marks(talk, talk) is talk
    assert keep_cache_marks(history(2), talk[:1]) is not None


def test_the_report_names_moved_marks() -> None:
    """A changed cache setting has to be visible where the cost is."""
    talk = history(10)
    talk[1] = marked(talk[1], "anthropic")
    notes = fit_messages(talk, budget=600).report.notes

    assert any("1 mark of the prompt cache moved" in note for note in notes)


@pytest.mark.parametrize("place", [0, 1, 5, 13, 30])
@pytest.mark.parametrize("form", FORMS)
def test_a_compactor_keeps_the_marks_from_call_to_call(form: str, place: int) -> None:
    """A mark in the folded part would be gone from every later request."""
    talk = [
        marked(message, form) if at == place else message for at, message in enumerate(history(10))
    ]
    compactor = HistoryCompactor(ExtractiveSummarizer(), trigger_tokens=1500, keep_recent=6)

    once = compactor.compact(talk)
    assert len(once) < len(talk)
    assert total(once) == 1
    more = history(12)[41:]
    again = compactor.compact([*once, *more])
    assert total(again) == 1
    assert total(talk) == 1


@pytest.mark.parametrize("budget", [200, 400, 900, 2000, 5000])
def test_a_cache_point_of_llama_index_stays_behind_a_block(budget: int) -> None:
    """LlamaIndex raises if a cache point is the first block of a message."""
    types = pytest.importorskip("llama_index.core.base.llms.types")
    point = types.CachePoint(cache_control=types.CacheControl(type="ephemeral"))
    talk = [
        types.ChatMessage(role=role, blocks=[types.TextBlock(text=f"{role} {at} " * 40)])
        for at in range(12)
        for role in ("user", "assistant")
    ]
    talk[6].blocks.append(point)
    talk.append(types.ChatMessage(role="user", content="And now?"))

    fitted = fit_messages(talk, budget=budget)

    assert total(fitted.messages) == 1
    for message in fitted.messages:
        assert not message.blocks or message.blocks[0].block_type != "cache"


@pytest.mark.parametrize("budget", [200, 400, 900, 2000, 5000])
def test_a_marked_block_of_langchain_keeps_its_mark(budget: int) -> None:
    """The middleware sends what the fit returns."""
    messages = pytest.importorskip("langchain_core.messages")
    block = {"type": "text", "text": "one " * 80, "cache_control": MARK}
    talk = [
        kind(f"text {at} " * 40)
        for at in range(12)
        for kind in (messages.HumanMessage, messages.AIMessage)
    ]
    talk[6] = messages.HumanMessage([block])
    talk.append(messages.HumanMessage("And now?"))

    assert total(fit_messages(talk, budget=budget).messages) == 1
