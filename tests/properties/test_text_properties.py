"""What holds of digests, recall and summaries for any text, any budget and any counter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counters import COUNTERS
from muntin.conversations.digest import DigestEntry, digest
from muntin.conversations.recall import plan, recall
from muntin.conversations.summarize import ExtractiveSummarizer
from muntin.text.boundaries import clean_text
from muntin.text.facts import facts_of, kind_of, values_in
from strategies import digest_entries, nasty_text, text, tool_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

budgets = st.one_of(st.integers(0, 40), st.integers(0, 1500))
long_text = st.one_of(tool_outputs, st.lists(text, max_size=40).map(". ".join))


@pytest.fixture(params=sorted(COUNTERS), scope="module")
def counting(request: pytest.FixtureRequest) -> Callable[[str], int]:
    """Every counter, the super-additive one among them; made once for all examples."""
    name: str = request.param
    return COUNTERS[name]()


@given(entries=digest_entries, max_tokens=budgets)
def test_a_digest_is_under_its_cap_and_the_same_each_time(
    counting: Callable[[str], int], entries: list[DigestEntry], max_tokens: int
) -> None:
    """Facts are joined with labels and commas: sums of parts would be over."""
    shown = digest(entries, max_tokens=max_tokens, counter=counting)
    assert counting(shown) <= max_tokens or not shown
    assert shown == digest(entries, max_tokens=max_tokens, counter=counting)
    assert not shown or all(line.strip() for line in shown.split("\n"))


@given(said=st.lists(st.one_of(text, nasty_text), min_size=12, max_size=30), max_tokens=budgets)
def test_the_digest_of_a_talk_is_under_its_cap(
    counting: Callable[[str], int], said: list[str], max_tokens: int
) -> None:
    """Facts and sentences are joined, and each alone would fit."""
    entries = [DigestEntry(text=one, role="user") for one in said]
    shown = digest(entries, max_tokens=max_tokens, counter=counting)
    assert counting(shown) <= max_tokens or not shown
    assert shown == digest(entries, max_tokens=max_tokens, counter=counting)


@given(given_text=st.one_of(long_text, nasty_text))
def test_passing_over_plain_words_passes_over_no_value(given_text: str) -> None:
    """Facts are found by an expression that skips most words; it must skip nothing else."""
    prose = "x " + given_text.replace(":", " ")
    every = [value for value in values_in(prose) if 2 <= len(value) <= 80]
    expected = [value for value in every if kind_of(value) not in (None, "name")]
    assert [fact.value for fact in facts_of(prose) if fact.kind != "name"] == expected


@given(given_text=long_text, max_tokens=budgets, question=st.one_of(st.none(), nasty_text))
def test_a_summary_is_under_its_cap_and_quotes(
    counting: Callable[[str], int], given_text: str, max_tokens: int, question: str | None
) -> None:
    """The cap is exact, nothing is invented, nothing is lost altogether."""
    shown = ExtractiveSummarizer(counter=counting)(
        given_text, max_tokens=max_tokens, question=question
    )
    assert counting(shown) <= max_tokens or not shown
    shown.encode("utf-8")
    source = clean_text(given_text)
    assert all(line.rstrip("…") in source for line in shown.split("\n"))
    if given_text.strip() and max_tokens >= 12:
        assert shown


@given(
    turns=st.lists(text, max_size=30),
    question=st.one_of(st.none(), text),
    max_tokens=budgets,
)
def test_a_plan_keeps_whole_turns_within_its_budget(
    counting: Callable[[str], int], turns: list[str], question: str | None, max_tokens: int
) -> None:
    """Every turn is either kept once or not at all, and what is told is what is kept."""
    made = plan(turns, question, max_tokens=max_tokens, counter=counting)
    assert list(made.kept) == sorted(set(made.kept))
    assert set(made.kept) <= set(range(len(turns)))
    assert made.tokens == sum(counting(turns[at]) for at in made.kept) <= max_tokens
    assert all(at < made.tail_start for at in made.recalled)
    if question is not None:
        chosen = recall(turns, question, max_tokens=max_tokens, counter=counting)
        assert chosen == sorted(set(chosen))
        assert sum(counting(turns[at]) for at in chosen) <= max_tokens


@given(given_text=tool_outputs)
def test_facts_are_found_in_any_text(given_text: str) -> None:
    """A tool can return anything; a value is always quoted from it."""
    for fact in facts_of(given_text):
        assert fact.value
        assert "\n" not in fact.value


@given(
    value=st.dictionaries(st.sampled_from(["order_id", "zip", "date"]), st.integers(), min_size=1)
)
def test_values_of_json_are_verbatim(value: dict[str, int]) -> None:
    """A digit that changes is worse than one that is missing."""
    found = [(fact.label, fact.value) for fact in facts_of(json.dumps(value))]
    assert found == [(key, str(number)) for key, number in value.items()]
