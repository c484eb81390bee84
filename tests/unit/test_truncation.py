from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import pytest

from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.counting.truncation import truncate_to_tokens
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

FAMILY = "👩‍👩‍👧‍👦"
THAI = "ทุกคนมีสิทธิในการดำรงชีวิต"
HINDI = "सभी मनुष्यों को गौरव और अधिकारों"

Keep = Literal["head", "ends"]


def test_a_text_that_fits_comes_back_itself() -> None:
    """Cutting what fits loses text for nothing; copying it loses time."""
    text = "short enough"

    assert truncate_to_tokens(text, 3) is text


@pytest.mark.parametrize(
    ("text", "tokens", "keep", "result"),
    [
        ("one two three four five", 4, "head", "one two three f…"),
        ("one two three four five", 4, "ends", "one two …ur five"),
        ("中文字符测试", 4, "head", "中文字…"),
        ("abcdefgh", 1, "head", "abc…"),
        ("abcdefgh", 0, "head", ""),
        ("", 5, "head", ""),
    ],
)
def test_the_longest_part_that_fits_is_kept(
    text: str, tokens: int, keep: Keep, result: str
) -> None:
    """A cut that leaves room unused drops text that was paid for."""
    assert truncate_to_tokens(text, tokens, keep=keep) == result


def test_the_marker_gives_way_when_only_it_would_fit() -> None:
    """A budget of a few tokens is for text, not for the note that text is missing."""
    assert truncate_to_tokens("abcdefgh", 2, len, marker="[cut]") == "ab"
    assert truncate_to_tokens("abcdefgh", 5, len, marker="[cut]") == "abcde"
    assert truncate_to_tokens("abcdefgh", 6, len, marker="[cut]") == "a[cut]"


def test_a_character_too_large_leaves_the_marker_or_nothing() -> None:
    """Half a family is worse than a sign that something was there."""
    assert truncate_to_tokens(FAMILY * 3, 3, len) == "…"
    assert truncate_to_tokens(FAMILY * 3, 3, len, marker="") == ""


@pytest.mark.parametrize("keep", ["head", "ends"])
@pytest.mark.parametrize("text", [FAMILY * 5, "🇩🇪🇫🇷🇯🇵" * 4, "e\u0301" * 9, THAI, HINDI])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_no_budget_parts_a_character(text: str, keep: Keep, encoding: str) -> None:
    """Cut by tokens and decoded, more than half of the cuts of such text end in garbage."""
    import regex

    counter = TiktokenCounter(encoding)
    graphemes = regex.findall(r"\X", text)
    starts = {"".join(graphemes[:n]) for n in range(len(graphemes) + 1)}
    ends = {"".join(graphemes[n:]) for n in range(len(graphemes) + 1)}
    for tokens in range(counter(text) + 1):
        cut = truncate_to_tokens(text, tokens, counter, keep=keep)
        assert counter(cut) <= tokens
        head, mark, tail = cut.partition("…")
        if keep == "head" or not mark:
            assert not tail
        if mark or keep == "head":
            assert head in starts
            assert tail in ends


@pytest.mark.parametrize("keep", ["head", "ends"])
@pytest.mark.parametrize("tokens", range(12))
def test_a_boundary_emoji_and_a_lone_surrogate_survive_encoding(keep: Keep, tokens: int) -> None:
    """A cut between surrogate halves makes a request body that no server parses."""
    text = "ab😀cd\ud83d ef😀" * 3
    cut = truncate_to_tokens(text, tokens, keep=keep)

    assert cut.encode().decode() == cut
    assert count_tokens(cut) <= tokens


@pytest.mark.parametrize("keep", ["head", "ends"])
def test_a_huge_text_is_not_counted_again_and_again(keep: Keep) -> None:
    """Bisection over ten megabytes costs twenty full counts; a small budget needs none."""
    seen: list[int] = []

    def counter(text: str) -> int:
        seen.append(len(text))
        return count_tokens(text)

    cut = truncate_to_tokens("word " * 2_000_000, 100, counter, keep=keep)

    assert count_tokens(cut) == 100
    assert sum(seen) < 40_000
    assert len(seen) < 40


def test_a_counter_that_jumps_about_never_gets_more_than_was_asked() -> None:
    """Tokens are not monotone: the accepted cut itself must have been counted."""

    def jumpy(text: str) -> int:
        return len(text) + (len(text) * 7) % 5

    for tokens in range(60):
        assert jumpy(truncate_to_tokens("abcdefghij" * 8, tokens, jumpy)) <= tokens


def test_a_whole_word_may_cost_less_than_its_part() -> None:
    """Where bisection stops inside a word, the rest of the word may come for free."""

    def counter(text: str) -> int:
        return len(text.split()) + (0 if text.endswith(("ing", "…", " ")) else 1)

    assert truncate_to_tokens("a cutting text goes on and on", 2, counter, marker="") == (
        "a cutting "
    )


def test_none_is_nothing() -> None:
    """Contents of messages are None in some formats."""
    assert truncate_to_tokens(None, 5) == ""


def test_a_negative_budget_is_refused() -> None:
    """It is always a sum that went wrong somewhere else."""
    with pytest.raises(ConfigurationError, match=r"at least 0 \(tokens\), got -1"):
        truncate_to_tokens("text", -1)


def test_an_unknown_way_to_keep_is_refused() -> None:
    """A typing mistake must not silently keep the head."""
    with pytest.raises(ConfigurationError, match="'head' or 'ends', got 'tail'"):
        truncate_to_tokens("text", 1, keep="tail")  # pyright: ignore[reportArgumentType] - the wrong value is the point


@pytest.mark.parametrize("keep", ["head", "ends"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: "a" * 1_000_000,
        lambda: " " * 1_000_000 + "x",
        lambda: "e" + "\u0301" * 1_000_000,
        lambda: "🇩🇪" * 500_000,
        lambda: "\ud83d" * 1_000_000,
    ],
)
def test_hostile_texts_are_cut_in_time(make: Callable[[], str], keep: Keep) -> None:
    """One line without a border must not hang the cutter."""
    text = make()
    begun = time.process_time()
    cut = truncate_to_tokens(text, 50, TiktokenCounter(), keep=keep)

    assert TiktokenCounter()(cut) <= 50
    assert time.process_time() - begun < 5
