"""The measures behind the figures score what they say they score."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.measures import blocks, histories, needs, rules, runs, scenarios, two_steps
from benchmarks.measures.tokens import answered, interval, normalised

from shared_data import json_lines, needs_data


def _whole(messages: list[dict[str, Any]], _budget: int) -> list[dict[str, Any]]:
    return messages


def _nothing(_messages: list[dict[str, Any]], _budget: int) -> list[dict[str, Any]]:
    return []


def _refusal(_messages: list[dict[str, Any]], _budget: int) -> list[dict[str, Any]]:
    raise ValueError("no")


def test_an_answer_is_found_without_case_articles_and_punctuation() -> None:
    """A measure that misses "the Seine." for "Seine" punishes what is right."""
    assert answered("It is on the Seine.", ["the seine"])
    assert not answered("It is on the Seine.", ["sein"])
    assert normalised("The  Depot, A!") == "depot"


def test_an_interval_contains_the_mean_and_is_narrow_for_equal_values() -> None:
    """An interval that misses its own mean makes every claim of a difference worthless."""
    low, high = interval([0.0, 1.0] * 50)
    assert low < 0.5 < high
    assert interval([0.25] * 10) == (0.25, 0.25)


@needs_data
def test_a_block_counts_a_gold_passage_only_when_its_text_is_in_it() -> None:
    """Ids alone are not trusted: an assembler could name what it left out."""
    record = blocks.questions()[0]
    found = blocks.offers(record, "dup")
    gold = next(one for one in found["rag"] if one.is_gold)
    scored = blocks.score(record, found, 10_000, gold.text, [gold.id])
    assert scored.gold
    assert not scored.over
    assert not blocks.score(record, found, 10_000, "", [gold.id]).gold
    twin = next(one for some in found.values() for one in some if one.id == f"{gold.original}~")
    both = blocks.score(record, found, 1, f"{gold.text}\n\n{twin.text}", [gold.id, twin.id])
    assert (both.over, both.twins) == (True, 1.0)


@needs_data
def test_naive_blocks_stay_within_the_budget_and_miss_some_answers() -> None:
    """A baseline that overruns, or that finds everything, compares with nothing."""
    scored = [
        blocks.score(record, found, 512, *blocks.greedy(record["question"], found, 512))
        for record in blocks.questions()[:40]
        for found in [blocks.offers(record, "dup")]
    ]
    assert not any(one.over for one in scored)
    assert 0.4 < sum(one.gold for one in scored) / len(scored) < 0.95


@needs_data
@pytest.mark.parametrize("titles", ["titled", "metadata", "bare"])
def test_both_passages_of_a_two_step_question_have_to_be_in_the_block(titles: str) -> None:
    """One of two passages answers no two-step question."""

    def everything(
        _question: str, offered: list[two_steps.Passage], _budget: int
    ) -> tuple[str, list[str]]:
        return "\n".join(one["text"] for one in offered), [one["id"] for one in offered]

    def half(question: str, offered: list[two_steps.Passage], budget: int) -> tuple[str, list[str]]:
        return everything(question, offered[:1], budget)

    assert all(two_steps.both_placed(everything, titles, 10**6)[:20])
    assert not any(two_steps.both_placed(half, titles, 10**6)[:20])
    assert not any(two_steps.both_placed(everything, titles, 64)[:20])


@pytest.mark.slow
@needs_data
def test_a_run_that_is_kept_whole_keeps_every_value_and_a_refusal_keeps_none() -> None:
    """The share has to be 1 for everything and 0 for nothing, or it measures something else."""
    some = list(json_lines("trajectories.dev.jsonl.gz"))[:12]
    cases = list(runs.cases(some, shares=(1.0,)))
    assert len(cases) >= 8
    whole = [runs.score(case, _whole) for case in cases]
    assert all(one.kept in (None, 1.0) and one.paired and one.held for one in whole)
    assert any(case.needed for case in cases)
    for failing in (_nothing, _refusal):
        assert not any(runs.score(case, failing).kept for case in cases)


@pytest.mark.slow
@needs_data
def test_a_bare_list_of_values_does_not_count_as_kept() -> None:
    """An agent cannot use an id without knowing what it names."""
    some = list(json_lines("trajectories.dev.jsonl.gz"))
    case = next(case for case in runs.cases(some, shares=(0.5,)) if len(case.needed) > 1)

    def listed(messages: list[dict[str, Any]], _budget: int) -> list[dict[str, Any]]:
        protected = [messages[0], messages[case.question]] if case.question else [messages[0]]
        values = {"role": "assistant", "content": " 1 ".join(case.needed)}
        return [*protected[:1], values, *protected[1:]]

    scored = runs.score(case, listed)
    assert scored.kept is not None
    assert scored.kept < 1


@needs_data
def test_a_conversation_kept_whole_keeps_all_evidence() -> None:
    """Evidence that the measure cannot find in the original is missing from every result."""
    some = histories.cases((1024,), 1)[:10]
    for case in some:

        def whole(
            turns: list[histories.Turn], _budget: int, _question: str | None
        ) -> list[dict[str, Any]]:
            return [{"role": turn["role"], "content": histories.rendered(turn)} for turn in turns]

        scored = histories.score(case, whole, known=False)
        assert scored.turns in (None, 1.0)
        assert scored.words in (None, 1.0)
        assert not scored.held
        for simple in (histories.newest, histories.random_turns, histories.half_newest):
            assert histories.score(case, simple, known=True).held


def test_needs_tell_a_whole_thread_from_an_empty_one() -> None:
    """A measure that gives the empty result anything cannot show a loss."""
    assert needs.open_request(_whole)[:2] == (1.0, 0.0)
    assert needs.open_request(_nothing)[:2] == (0.0, 0.0)
    assert needs.burst(_whole)[0] == 1.0
    assert needs.burst(_refusal)[0] == 0.0
    assert needs.recalled(_whole, 10**6) == 1.0
    assert needs.recalled(_nothing, 10**6) == 0.0
    assert needs.finished_rounds(_whole, 2, 12_000)[1] == 2
    assert needs.falls(_whole) == 0


@needs_data
def test_rules_and_strings_are_found_in_what_was_put_in() -> None:
    """The rule has to be in the history before a loss can be blamed on the fit."""
    assert rules.kept(_whole, "meeting", 0.4, 0.25) == 1.0
    assert rules.kept(_nothing, "meeting", 0.4, 0.25) == 0.0
    assert rules.changed(_whole) == 1.0

    def unchanged(history: list[Any], _budget: int, _question: str | None) -> list[Any]:
        return history

    found, strings = scenarios.kept(unchanged, 0.25, known=True)
    assert (found, strings > 10) == (1.0, True)
