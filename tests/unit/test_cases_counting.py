"""Cases: a count that is far off, or that raises, or that takes for ever.

Too little overruns the window, too much throws the conversation away for one photo, and a count
that raises ends the run. The property is `test_any_block_has_a_cost_that_is_no_accident`;
`properties/test_counting.py` holds what counters themselves promise.
"""

from __future__ import annotations

import base64
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_messages import A, S, T, U, saying, sound, talk, text_of
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.counting.anchored import AnchoredCounter
from muntin.counting.counters import counter_for
from muntin.counting.estimate import estimate_tokens
from muntin.counting.message_counts import count_message, count_messages
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError
from muntin.testing import check_request
from strategies import content_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTES = base64.b64encode(bytes(range(256)) * 12_000).decode()
"""Three megabytes as they travel: four million characters."""


def image(data: str = MEGABYTES) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


# --- blocks --------------------------------------------------------------------------------------

BLOCKS: dict[str, tuple[dict[str, Any], int, int]] = {
    "an image as one provider writes it": (image(), 85, 3_000),
    "an image as another writes it": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                     "data": MEGABYTES}}, 85, 3_000),
    "an image of a third": (
        {"type": "input_image", "image_url": f"data:image/png;base64,{MEGABYTES}"}, 85, 3_000),
    "a document": (
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
                                        "data": MEGABYTES[:40_000]}}, 1_000, 20_000),
    "a file": ({"type": "file", "file": {"file_data": MEGABYTES[:40_000]}}, 1_000, 20_000),
    "audio": ({"type": "input_audio", "input_audio": {"data": MEGABYTES[:40_000]}}, 1, 20_000),
    "an image inside a tool's result": (
        {"type": "tool_result", "tool_use_id": "1", "content": [
            {"type": "image", "source": {"type": "base64", "data": MEGABYTES}}]}, 85, 3_000),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_media_have_a_price_that_is_not_their_base64(name: str) -> None:
    """A photo of 3 MB counted as text is a million tokens, and is thrown out with everything."""
    block, least, most = BLOCKS[name]
    assert least <= count_message({"role": "user", "content": [block]}) - 4 <= most


def test_a_new_chat_with_a_photo_is_sent_as_it_is() -> None:
    """It was compacted on its first message, and the photo was gone."""
    chat = [S, {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image()]}]
    assert fit_messages(chat, budget=8_000, counter=count_tokens).messages is chat
    compactor = HistoryCompactor(saying("A photo."), keep_recent=1, trigger_tokens=8_000)
    assert compactor.compact(chat) is chat


def test_what_nobody_knows_costs_something_and_is_said_once() -> None:
    """A part without `content` crashed the estimator, and the check before sending was skipped."""
    part = {"type": "holographic-2031", "payload": {"frames": ["f" * 40] * 30}}
    message = {"role": "user", "content": [part]}
    with pytest.warns(UserWarning, match="holographic-2031"):
        assert count_message(message) > 200
    history = [S, *talk(10), message, A(), U("so?")]
    fitted = fit_messages(history, budget=300, counter=count_tokens)
    assert fitted.report.used <= 300
    with pytest.raises(ConfigurationError, match="a message dict needs a 'role'"):
        count_message({"payload": "no message at all"})


@given(st.lists(content_blocks, max_size=4), st.sampled_from(["user", "assistant"]))
def test_any_block_has_a_cost_that_is_no_accident(blocks: list[Any], role: str) -> None:
    """The kind's property: never an exception, never nothing, never the length of base64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown ones say so, once each
        alone = [count_message({"role": role, "content": [block]}) - 4 for block in blocks]
        together = count_message({"role": role, "content": blocks}) - 4
    for block, tokens in zip(blocks, alone, strict=True):
        assert tokens > 0 or not str(block.get("text", "x")).strip()
        assert tokens < 30_000
    assert together <= sum(alone) + len(blocks)


# --- scripts and runs ----------------------------------------------------------------------------


def test_base64_inside_a_text_costs_what_it_costs() -> None:
    """At four characters a token, 319,000 were estimated of 1,030,000."""
    text = "the file: " + MEGABYTES[:100_000]
    exact = TiktokenCounter()(text)
    assert 0.85 <= estimate_tokens(text) / exact <= 1.35
    assert count_message(U(text), counter=estimate_tokens) > exact * 0.85


def test_chinese_is_neither_kept_four_times_over_nor_cut_at_the_first_message() -> None:
    """A rule for English keeps too much; mixed with the provider's usage it cuts everything."""
    said = "请帮我查一下这张发票为什么被支付了两次并告诉我两个付款编号" * 6
    history = [U(said[:160]), A(text=said[:160]), U(said[:160]), A(text=said[:160]), U("好吗")]
    exact = TiktokenCounter()
    for counter in (count_tokens, estimate_tokens, exact):
        budget = int(count_messages(history, counter=exact) * 0.6)
        fitted = fit_messages(history, budget=budget, counter=counter)
        assert count_messages(fitted.messages, counter=exact) <= budget * 1.15
        assert len(fitted.messages) > 1
    anchored = AnchoredCounter(count_tokens)
    local = count_messages(history, counter=count_tokens)
    anchored.observe(local, count_messages(history, counter=exact))
    budget = int(count_messages(history, counter=anchored) * 0.6)
    fitted = fit_messages(history, budget=budget, counter=anchored)
    assert len(fitted.messages) > 1
    assert fitted.report.used <= budget


HOSTILE: dict[str, str] = {
    "the text of special tokens": "a <|endoftext|> <|im_start|> b",
    "one letter 400,000 times": "a" * 400_000,
    "a line of 50,000 underscores": "_" * 50_000,
    "a million carets": "^" * 1_000_000,
    "a million spaces and a letter": " " * 1_000_000 + "x",
    "half a character": "a \ud83d b",
    "nothing but a null": "\x00",
}
COUNTS: dict[str, Callable[[], Callable[[str], int]]] = {
    "the rule": lambda: count_tokens,
    "the estimate": lambda: estimate_tokens,
    "the exact count": TiktokenCounter,
    "the count of an unknown model": lambda: counter_for(None),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_stops_a_count(name: str, count: str) -> None:
    """It raised, panicked past `except Exception`, or took minutes for one long run."""
    text = HOSTILE[name]
    counter = COUNTS[count]()
    counter("warm")
    begun = time.process_time()
    tokens = counter(text)
    assert time.process_time() - begun < 5
    assert 1 <= tokens <= 4 * len(text)
    if len(text) < 100:
        fitted = fit_messages([S, *talk(9), A("1"), T("1", text), A(), U(text)], budget=200,
                              counter=counter)  # fmt: skip
        assert fitted.report.used <= 200
        assert sound(fitted.messages)


# --- before it is sent ---------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [OSError("down"), ValueError("all models"), "", None])
def test_a_known_limit_is_kept_although_the_summary_fails(failing: Any) -> None:
    """The limit was known, the summary failed "for all models", and the request went out too large.

    The compactor gives the history back; the fit makes do without a recap.
    """
    history = [S, *talk(340, words=135), U("so?")]
    assert count_messages(history) > 90_000
    compactor = HistoryCompactor(saying(failing), keep_recent=4, trigger_tokens=65_000)
    assert compactor.compact(history) is history
    fitted = fit_messages(
        history, budget=65_000 - 4_096, summarizer=saying(failing), counter=count_tokens
    )
    assert check_request(fitted.messages, window=65_000, max_output=4_096) <= 65_000 - 4_096
    assert "so?" in text_of(fitted.messages[-1:])
    assert any("summariser" in note for note in fitted.report.notes)
