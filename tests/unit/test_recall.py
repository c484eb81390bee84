"""Which turns stay word for word."""

from __future__ import annotations

import pytest

from muntin.conversations.recall import plan, recall

CHAT = [f"{'ann' if n % 2 else 'bob'}: small talk number {n} about nothing much" for n in range(60)]


def test_the_turn_that_is_asked_about_stays() -> None:
    """Otherwise the answer is cut while the window is full of what nobody asked."""
    turns = [*CHAT]
    turns[7] = "ann: the server room key is with Mr Ortega"
    kept = plan(turns, "who has the key of the server room?", max_tokens=120)
    assert 7 in kept.recalled
    assert kept.tokens <= 120


def test_turns_around_the_match_stay_before_others() -> None:
    """An answer runs over many turns, and most do not repeat the words of the question."""
    turns = [*CHAT]
    turns[20] = "bob: about the migration deadline"
    turns[21] = "ann: it slipped, we said the ninth"
    kept = plan(turns, "what about the migration deadline?", max_tokens=150).kept
    assert {20, 21} <= set(kept)
    assert not {5, 45} & set(kept)


def test_nods_around_the_match_yield_to_what_says_something() -> None:
    """In speech every other turn is an "Mm-hmm.", which takes the room of an answer."""
    turns = [*CHAT]
    turns[20:26] = [
        "bob: about the migration deadline",
        "ann: mm-hmm",
        "bob: yeah okay",
        "ann: right, I see",
        "bob: the customer wants the ninth, legal agreed to sign before",
        "ann: right",
    ]
    costs = [10] * len(turns)
    kept = plan(turns, "what about the migration deadline?", max_tokens=80, costs=costs).kept
    assert {20, 24} <= set(kept)
    assert not {21, 22, 23, 25} & set(kept)


def test_words_that_only_ask_do_not_choose_turns() -> None:
    """`Summarize the discussion of X` is about X, not about discussions."""
    turns = [*CHAT]
    turns[10] = "ann: we need a longer discussion, let me summarize"
    turns[40] = "bob: lithium cells would be too heavy"
    assert recall(turns, "Summarize the discussion of lithium", max_tokens=12) == [40]
    assert recall(turns, "Summarize the discussion", max_tokens=14) == [10]


def test_the_newest_of_equal_matches_comes_first() -> None:
    """What was said last about a thing is what holds."""
    turns = ["the port is open" if n in (3, 30, 50) else "small talk" for n in range(60)]
    kept = recall(turns, "which port?", max_tokens=4)
    assert kept == [50]


def test_a_question_that_matches_nothing_keeps_a_tail() -> None:
    """`and then?` must not bring back the beginning of the conversation."""
    kept = plan(CHAT, "zzz?", max_tokens=100)
    assert kept.recalled == ()
    assert kept.kept == tuple(range(kept.tail_start, len(CHAT)))
    assert kept.tail_start < len(CHAT) - 3


def test_without_a_question_the_longest_tail_stays() -> None:
    """Order and closeness are all that is known then."""
    kept = plan(CHAT, None, max_tokens=100)
    assert kept.recalled == ()
    assert kept.tokens <= 100 < kept.tokens + 11


def test_the_newest_turn_stays_although_its_share_is_small() -> None:
    """A tail that keeps nothing loses the thread."""
    turns = [*CHAT, "x" * 160]
    assert len(turns) - 1 in plan(turns, "small talk", max_tokens=100).kept


def test_costs_that_are_given_are_believed() -> None:
    """Framing is the caller's knowledge; texts are not counted a second time."""

    def refuse(text: str) -> int:
        raise AssertionError(text)

    kept = plan(["a", "b", "c"], None, max_tokens=10, costs=[9, 6, 4], counter=refuse)
    assert kept.kept == (1, 2)
    assert kept.tokens == 10


def test_speakers_are_words_like_others() -> None:
    """In a busy channel the name is often all that connects a question with its answer."""
    turns = [f"user{n}: hm, let me see what that does" for n in range(80)]
    turns[30] = "ubotu: it wants a reboot"
    assert 30 in plan(turns, "kim: ubotu, again?", max_tokens=100).kept


def test_other_scripts_are_recalled_too() -> None:
    """A script without spaces has no words for a naive index."""
    turns = [f"第{n}回の雑談です。" for n in range(60)]
    turns[11] = "締め切りは九月三日に決まりました。"
    assert 11 in plan(turns, "締め切りはいつですか", max_tokens=60).kept


@pytest.mark.parametrize("question", ["", "?", "the of and"])
def test_an_empty_question_is_no_reason_to_fail(question: str) -> None:
    """Users send blanks; agents send them too."""
    assert plan(CHAT, question, max_tokens=50).tokens <= 50
    assert plan([], question, max_tokens=50).kept == ()
    assert recall([], question, max_tokens=50) == []
    assert plan(CHAT, question, max_tokens=0).kept == ()
