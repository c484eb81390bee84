"""What holds of every count, estimate and cut, whatever the text."""

from __future__ import annotations

from typing import Literal

import pytest
import regex
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from counters import COUNTERS
from muntin.counting.estimate import estimate_tokens
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import CJK_BLOCKS, count_tokens
from muntin.counting.truncation import truncate_to_tokens
from muntin.text.boundaries import clean_text, grapheme_end, grapheme_start, sentences
from strategies import encodable_text, text

Keep = Literal["head", "ends"]
keeps = st.sampled_from(["head", "ends"])
CJK = regex.compile("".join(["[", *(f"{chr(a)}-{chr(b)}" for a, b in CJK_BLOCKS), "]"]))


@given(text)
def test_the_rule_is_what_it_says(text: str) -> None:
    """The fast count gives what the plain sentence of the rule gives."""
    cjk = sum(CJK.fullmatch(character) is not None for character in text)

    assert count_tokens(text) == cjk + -(-(len(text) - cjk) // 4)


@given(text, text)
def test_the_rule_may_be_summed(first: str, second: str) -> None:
    """Parts never cost less than the whole, and at most one token more per border."""
    apart = count_tokens(first) + count_tokens(second)

    assert count_tokens(first + second) <= apart <= count_tokens(first + second) + 1


@given(text)
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_exact_count_is_tiktokens(encoding: str, text: str) -> None:
    """Windows, cleaning and special tokens change nothing about ordinary text."""
    plain = tiktoken.get_encoding(encoding).encode_ordinary(clean_text(text))

    assert TiktokenCounter(encoding)(text) == len(plain)


@given(st.lists(encodable_text, min_size=1, max_size=6), st.sampled_from(["\n", " ", ", ", "\t- "]))
@example(["\U0001342f", ""], "\n")  # a letter that Python 3.11 does not know, and a line break
def test_the_exact_count_of_long_text_is_tiktokens(parts: list[str], joint: str) -> None:
    """Where windows end depends on the text; the count must not."""
    piece = f"{joint.join(parts).rstrip()}{joint}end"
    text = piece * (40_000 // len(piece))
    plain = tiktoken.get_encoding("o200k_base").encode_ordinary(text)

    assert TiktokenCounter()(text) == len(plain)


@given(text)
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_estimate_is_total_and_bounded(
    encoding: Literal["o200k_base", "cl100k_base"], text: str
) -> None:
    """Every string gets a number: none for nothing, some for something, four bytes at most each."""
    guess = estimate_tokens(text, encoding=encoding)

    assert (guess == 0) == (text == "")
    assert guess <= 4 * len(text) + 1
    assert guess == estimate_tokens(text, encoding=encoding)


@given(text, st.integers(2, 30))
def test_the_estimate_is_nearly_linear(text: str, times: int) -> None:
    """Twice the text is about twice the tokens: only borders and long runs differ."""
    line = f"{text}\n"
    once, often = estimate_tokens(line), estimate_tokens(line * times)

    assert often <= times * (once + 1)
    assert 2 * often + 8 >= times * (once - 2) // 8


@pytest.mark.parametrize("name", sorted(COUNTERS))
@given(text, st.integers(0, 60), keeps, st.sampled_from(["…", "", "\n[cut]\n"]))
def test_a_cut_fits_under_any_counter(
    name: str, text: str, tokens: int, keep: Keep, marker: str
) -> None:
    """The promise callers build on: what comes back is within what was asked, joined."""
    counter = COUNTERS[name]()
    cut = truncate_to_tokens(text, tokens, counter, keep=keep, marker=marker)

    assert counter(cut) <= tokens or cut == ""


@pytest.mark.parametrize("name", sorted(COUNTERS))
@given(text, st.integers(0, 60))
def test_a_cut_is_a_beginning(name: str, text: str, tokens: int) -> None:
    """Nothing is made up, and no character a reader sees is parted."""
    cut = truncate_to_tokens(text, tokens, COUNTERS[name](), marker="")
    clean = clean_text(text)

    assert clean.startswith(cut)
    assert len(cut) in _borders(clean)
    assert cut.encode().decode() == cut


@given(text, st.integers(0, 60))
def test_a_cut_with_a_marker_is_a_beginning_and_the_marker(text: str, tokens: int) -> None:
    """The marker stands at the cut and nowhere else."""
    cut = truncate_to_tokens(text, tokens, marker="\x1a")
    clean = clean_text(text)

    assert cut == clean or clean.startswith(cut.removesuffix("\x1a"))


@given(text, st.integers(0, 60))
def test_both_ends_are_ends(text: str, tokens: int) -> None:
    """What stands before the marker begins the text, what stands behind it ends it."""
    clean = clean_text(text).replace("\x1a", "")
    cut = truncate_to_tokens(clean, tokens, len, keep="ends", marker="\x1a")
    head, mark, tail = cut.partition("\x1a")
    if mark:
        assert clean.startswith(head)
        assert clean.endswith(tail)
        assert len(head) + len(tail) <= len(clean)


@given(encodable_text, st.integers(0, 80))
def test_under_the_rule_no_longer_beginning_fits(text: str, tokens: int) -> None:
    """Room left over is text lost for nothing."""
    cut = truncate_to_tokens(text, tokens, marker="")
    if cut != text:
        assert count_tokens(text[: min(b for b in _borders(text) if b > len(cut))]) > tokens


@given(text, st.integers(0, 80))
def test_cutting_twice_is_cutting_once(text: str, tokens: int) -> None:
    """A pass over what already fits must not eat into it."""
    cut = truncate_to_tokens(text, tokens)

    assert truncate_to_tokens(cut, tokens) is cut or cut == ""


@given(text, st.integers(0, 130))
def test_grapheme_borders_are_those_of_the_annex(text: str, index: int) -> None:
    """The quick look at neighbours agrees with the full rules."""
    borders = _borders(text)
    index = min(index, len(text))

    assert grapheme_start(text, index) == max(b for b in borders if b <= index)
    assert grapheme_end(text, index) == min(b for b in borders if b >= index)


@given(text)
def test_sentences_join_to_the_text(text: str) -> None:
    """Parting loses nothing and adds nothing."""
    pieces = sentences(text)

    assert "".join(pieces) == text
    assert all(pieces)


@given(text)
def test_cleaning_is_done_once(text: str) -> None:
    """Clean text encodes and comes back itself."""
    clean = clean_text(text)

    assert clean.encode().decode() == clean
    assert clean_text(clean) is clean


def _borders(text: str) -> list[int]:
    return [0, *(match.end() for match in regex.finditer(r"\X", text))]
