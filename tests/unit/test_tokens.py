from __future__ import annotations

import tracemalloc

import pytest

from muntin.counting import tokens_of
from muntin.counting.tokens import CJK_BLOCKS, count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("hello world", 3),
        ("中", 1),
        ("中a", 2),
        ("中abcd", 2),
        ("中abcde", 3),
        ("日本語テスト", 6),
        ("안녕하세요", 5),
        ("こんにちは、世界。", 8),
        ("a" * 4000, 1000),
        ("中" * 1000, 1000),
        ("😀", 1),
        ("𠀀𠀁𠀂𠀃", 4),
        (None, 0),
    ],
)
def test_the_rule_gives_what_the_reference_gives(text: str | None, tokens: int) -> None:
    """The rule is a contract: budgets tuned on the reference must mean the same here.

    One row differs on purpose: extension B is Han, which the reference overlooks.
    """
    assert count_tokens(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "々〇〆",  # iteration mark, zero, closing mark
        "⼀⺀",  # radicals
        "㐀䶿",  # extension A
        "豈﨩",  # compatibility
        "𠀀𪛖",  # extension B
        "𪜀𫝀𫠠𬺰",  # extensions C to F
        "丽",  # compatibility supplement
        "𰀀𱍐",  # extensions G and H
        "ぁゖゝァヺー",  # kana
        "ㇰㇿ",  # katakana phonetic extensions
        "ｦﾝﾞ",  # half-width katakana
        "𛀀𛄢𛅐",  # kana supplement, archaic and small kana
        "가힣",  # syllables
        "ᄀᇿㄱㆎꥠힰ",  # jamo
        "ﾡￜ",  # half-width jamo
        "ㄅㄯㆠㆿ",  # bopomofo
    ],
)
def test_each_character_of_a_cjk_script_is_a_token(text: str) -> None:
    """A block left out counts a quarter, and a page of it overruns its budget fourfold."""
    assert count_tokens(text) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "ꀀꀁꀂꀃ",
        "\ue000\ue001\ue002\ue003",
        "\ud800\ud801\udc00\udfff",
        "䷀䷁䷂䷃",
        "、。「」",
        "ＡＢＣ！",
        "ภาษา",
        "ꓐꓑꓒꓓ",
    ],
)
def test_what_is_not_cjk_counts_a_quarter(text: str) -> None:
    """Yi, private use, surrogates and punctuation lie between the CJK blocks, not in them."""
    assert count_tokens(text) == 1


def test_the_blocks_are_sorted_and_apart() -> None:
    """Overlapping rows would hide a typing mistake in one of them."""
    flat = [code for block in CJK_BLOCKS for code in block]

    assert flat == sorted(flat)
    assert all(first <= last for first, last in CJK_BLOCKS)


@pytest.mark.parametrize("wrong", [b"abc", 3, ["abc"]])
def test_what_is_no_text_is_refused(wrong: object) -> None:
    """Bytes have a length too: counting them would give a number that means nothing."""
    with pytest.raises(TypeError, match="decode it first"):
        count_tokens(wrong)  # pyright: ignore[reportArgumentType] - the wrong value is the point


def test_memory_stays_constant_however_long_the_text() -> None:
    """A list of every match costs eighty times the text, inside every budget check."""
    text = "汉字 and more " * 200_000
    count_tokens(text)
    tracemalloc.start()
    count_tokens(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 1_000_000


def test_texts_are_counted_apart_and_nothing_is_nothing() -> None:
    """Optional parts of a prompt are None when absent; they must not break its sum."""
    assert tokens_of("abcd", None, "", "ab") == 2
    assert tokens_of() == 0
    assert tokens_of("ab", "cd", counter=len) == 4


def test_the_counter_never_sees_nothing() -> None:
    """Foreign counters raise on None."""
    seen: list[str] = []

    def spy(text: str) -> int:
        seen.append(text)
        return 1

    assert tokens_of("a", None, "", counter=spy) == 1
    assert seen[-1] == "a"
    assert "" not in seen
