"""Words, scores and shingles: what every comparison of texts stands on."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from muntin.text.lexical import bm25_scores, content_words, shingles, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Order #W37, user_id=7", ["order", "w37", "user", "id", "7"]),
        ("naïve Straße", ["naïve", "strasse"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("訂單", ["訂單"]),
        ("訂單編號", ["訂單", "單編", "編號"]),
        ("東京tower12です", ["東京", "tower12", "です"]),
        ("한국어를", ["한국", "국어", "어를"]),
        ("ครับ", ["ครั", "รับ"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_every_script_has_words(text: str, expected: list[str]) -> None:
    """A script without words matches nothing: its texts could be neither recalled nor compared."""
    assert words(text) == expected


def test_grammar_is_left_out_unless_nothing_else_is_there() -> None:
    """A question made of small words alone must still ask something."""
    assert content_words("What did she say about the budget?") == ["say", "budget"]
    assert content_words("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_scores_follow_the_published_formula() -> None:
    """A slip in the formula ranks quietly worse and nobody sees it."""
    texts = ["disk disk full", "the disk", "nothing here at all"]
    scores = bm25_scores("disk", texts, k1=1.2, b=0.75)
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = (3 + 2 + 4) / 3
    expected = [
        idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean)),
        idf * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / mean)),
        0.0,
    ]
    assert np.allclose(scores, expected)


def test_a_query_without_words_scores_nothing() -> None:
    """An empty question must not look like a match."""
    assert bm25_scores("?", ["a", "b"]).tolist() == [0.0, 0.0]
    assert bm25_scores("a", []).tolist() == []
    assert bm25_scores("ship", ["", "?!"]).tolist() == [0.0, 0.0]


def of_one(text: str) -> list[int]:
    hashes, _ = shingles([text])
    return hashes.tolist()


def test_shingles_are_sets_of_runs_of_words() -> None:
    """Near-duplicates are told apart by them: order and repetition must not matter twice."""
    assert len(of_one("a b c d")) == 2
    assert len(of_one("a b c a b c")) == 3
    assert of_one("One, two: THREE") == of_one("one two three")
    assert of_one("two one three") != of_one("one two three")
    assert len(of_one("short text")) == 1
    assert of_one("…") == of_one("") == []


def test_shingles_say_whose_they_are() -> None:
    """A run must not reach from one text into the next, and equal runs must meet."""
    hashes, owners = shingles(["a b c d", "", "b c d e", "d 訂單編號"])
    assert sorted(owners.tolist()) == [0, 0, 2, 2, 3, 3]
    assert len(set(hashes.tolist())) == 5
    assert hashes.tolist() == sorted(hashes.tolist())


def test_shingles_are_the_same_in_every_process() -> None:
    """`hash()` is salted: with it two workers would drop different duplicates."""
    code = (
        "from muntin.text.lexical import shingles\n"
        "print(shingles(['one two three four'])[0].tolist())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.strip() == str(of_one("one two three four"))
