"""Defects of the reference system that this one must not have, one test each, by their number."""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from muntin import (
    CallableSource,
    Candidate,
    ContextBuilder,
    ContextConfig,
    TiktokenCounter,
    count_messages,
    count_tokens,
    estimate_tokens,
    mmr_select,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin import TokenCounter


def source(name: str, found: Sequence[Candidate]) -> CallableSource:
    return CallableSource(name, lambda _query: found)


@pytest.mark.parametrize("kind", ["base64", "emoji", "digits"])
def test_d2_dense_text_is_not_a_quarter_of_its_characters(kind: str) -> None:
    """The rule counts a third of base64 and a ninth of emoji, so the window overran sixfold."""
    draw = random.Random(2)
    alphabet = {
        "base64": "ABCDEFGHabcdefgh0123456789+/",
        "emoji": "😀🎉🚀👍🏽❤️",
        "digits": "0123456789",
    }
    text = "".join(draw.choices(alphabet[kind], k=2000))
    exact = TiktokenCounter("o200k_base")(text)
    assert count_tokens(text) < 0.85 * exact
    assert estimate_tokens(text) > 0.85 * exact


@pytest.mark.parametrize("counter", [count_tokens, TiktokenCounter("o200k_base")])
def test_d3_d4_an_exact_fit_is_not_a_token_over(counter: TokenCounter) -> None:
    """Blank lines around the sections were charged to nobody."""
    config = ContextConfig(max_tokens=600, output_reserve_ratio=0.0)
    builder = ContextBuilder(config, token_counter=counter)
    for size in range(440, 480):
        found = [Candidate("word " * size), Candidate("x" * (size % 17 + 1))]
        text = builder.build("why?", sources=[source("rag", found)], system_prompt="s" * 400)
        assert counter(text) <= 600


def test_d5_a_quota_too_small_after_fixed_costs_is_said() -> None:
    """The check at construction cannot know the system prompt; the report does."""
    builder = ContextBuilder(ContextConfig(max_tokens=560, allow_borrow=False))
    sources = [
        source(name, [Candidate(name[0] * 250)]) for name in ("rag", "memory", "history", "tool")
    ]
    report = builder.assemble("why?", sources=sources, system_prompt="s" * 200).report
    assert any(note.startswith("source 'tool' placed nothing: its quota") for note in report.notes)


def test_d7_a_budget_is_used() -> None:
    """A fifth of the budget stayed empty on average where four sources shared it."""
    draw = random.Random(7)
    used: list[float] = []
    for _ in range(20):
        sources = [
            source(
                name,
                [
                    Candidate(f"{draw.random()}" + " word" * draw.randint(40, 400))
                    for _ in range(12)
                ],
            )
            for name in ("rag", "memory", "history", "tool")
        ]
        report = ContextBuilder().assemble("why?", sources=sources, budget=3000).report
        used.append(report.used / report.budget)
    assert statistics.fmean(used) > 0.97
    assert min(used) > 0.93


def test_d9_a_tool_is_charged_by_the_schema_that_is_sent() -> None:
    """A text description of the tools is half of what travels beside the messages."""
    tool = {
        "type": "function",
        "function": {
            "name": "search_flights",
            "description": "Search flights between two airports on a day.",
            "parameters": {
                "type": "object",
                "properties": {
                    "origin": {"type": "string", "description": "Airport of departure."},
                    "day": {"type": "string", "description": "Day of departure."},
                },
            },
        },
    }
    exact = TiktokenCounter("o200k_base")
    talk = [{"role": "user", "content": "hi"}]
    charged = count_messages(talk, tools=[tool], counter=exact) - count_messages(
        talk, counter=exact
    )
    assert charged > exact("search_flights: Search flights between two airports on a day.") + 20


def test_d24_a_closure_keeps_what_it_closed_over() -> None:
    """A closure's second parameter was overwritten with the scope, and the source was empty."""
    docs = [Candidate("kept")]

    def later(_query: str, _docs: list[Candidate] = docs, top_k: int = 5) -> list[Candidate]:
        return _docs[:top_k]

    assert "kept" in ContextBuilder().build_block(
        "q", sources=[CallableSource("rag", later)], budget=50
    )


def test_d29_selection_does_not_hold_up_an_event_loop() -> None:
    """Fifty candidates of 256 numbers stalled every other request for a second and a half."""
    draw = np.random.default_rng(29)
    found = [Candidate(str(n), embedding=draw.normal(size=256)) for n in range(50)]
    mmr_select(found)
    begun = time.process_time()
    mmr_select(found)
    assert time.process_time() - begun < 0.2


def test_d36_what_is_left_out_is_in_the_report() -> None:
    """A build that dropped its only candidate looked like one that found nothing."""
    giant = Candidate("word " * 4000)
    builder = ContextBuilder(ContextConfig(max_tokens=1000, never_empty=False))
    report = builder.assemble("q", sources=[source("rag", [giant])]).report
    assert [(d.kind, d.reason) for d in report.decisions] == [("dropped", "does_not_fit")]
