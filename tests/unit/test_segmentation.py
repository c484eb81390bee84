from __future__ import annotations

import time

import pytest

from muntin.text.boundaries import clean_text, grapheme_end, grapheme_start, sentences


def test_clean_text_is_the_same_object() -> None:
    """Copying a clean ten-megabyte tool result for nothing is noticed."""
    text = "naïve 漢字 😀"

    assert clean_text(text) is text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\ud83d", "\ufffd"),
        ("\udc00\ud83d", "\ufffd\ufffd"),
        ("a\udfffb", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd"),
        ("\ufeffx\ud800", "\ufeffx\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, clean: str) -> None:
    """A lone half makes the request body invalid, and the session can never be resumed."""
    assert clean_text(text) == clean
    assert clean_text(text).encode().decode() == clean


@pytest.mark.parametrize(
    "grapheme",
    [
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "👍🏽",
        "❤️",
        "1️⃣",
        "e\u0301",
        "\r\n",
        "กำ",
        "ที่",
        "क्षि",
        "각",
        "ｶﾞ",
        "e" + "\u0301" * 300,
    ],
)
def test_a_cut_inside_a_character_falls_back_to_its_start(grapheme: str) -> None:
    """Half a flag is a letter, half a family one person, half a syllable another sound."""
    text = f"a{grapheme}b"
    for index in range(1, 1 + len(grapheme)):
        assert grapheme_start(text, index) == 1
    for index in range(2, 2 + len(grapheme)):
        assert grapheme_end(text, index) == 1 + len(grapheme)


def test_flags_are_paired_from_the_start_of_their_run() -> None:
    """Cut at an odd place, every flag behind it turns into another country's."""
    flags = "🇩🇪🇫🇷🇯🇵" * 20

    assert [grapheme_start(flags, index) for index in range(6)] == [0, 0, 2, 2, 4, 4]
    assert grapheme_start(flags, 101) == 100


@pytest.mark.parametrize(("index", "start"), [(-5, 0), (0, 0), (3, 3), (99, 3)])
def test_an_index_outside_is_drawn_to_the_nearer_end(index: int, start: int) -> None:
    """Callers compute indices; off by one must not raise."""
    assert grapheme_start("abc", index) == start
    assert grapheme_end("abc", index) == start


def test_endless_marks_take_no_endless_time() -> None:
    """A text of a million combining marks is one grapheme, and an attack."""
    text = "e" + "\u0301" * 1_000_000
    begun = time.process_time()

    assert 0 <= grapheme_start(text, 500_000) <= 500_000
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("One.", ["One."]),
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ('He said "no." Then left.', ['He said "no." ', "Then left."]),
        (
            "Dr. Li met Mr. Wu, e.g. on Monday. Good.",
            ["Dr. Li met Mr. Wu, e.g. on Monday. ", "Good."],
        ),
        ("J. R. R. Tolkien wrote. Yes.", ["J. R. R. Tolkien wrote. ", "Yes."]),
        ("It costs 3.14 dollars. see below.", ["It costs 3.14 dollars. see below."]),
        ("你好。再见！真的？好", ["你好。", "再见！", "真的？", "好"]),
        ("彼は「はい。」と言った。", ["彼は「はい。」", "と言った。"]),
        ("यह एक है। यह दो है।", ["यह एक है। ", "यह दो है।"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟ ", "نعم."]),
        ("x = 1\ny = 2\n\nreturn x", ["x = 1\n", "y = 2\n\n", "return x"]),
        ("Wait... what? Yes.", ["Wait... what? ", "Yes."]),
        ("\n\nfirst line", ["\n\nfirst line"]),
    ],
)
def test_sentences_of_many_scripts_and_lines_of_code(text: str, pieces: list[str]) -> None:
    """A summary of sentences cut inside abbreviations or across lines reads like noise."""
    assert sentences(text) == pieces


@pytest.mark.parametrize("text", [".", " ", "\t", " \n", ". ", "a", "!)", "。", "...\t", "\n"])
def test_parting_takes_linear_time(text: str) -> None:
    """Backtracking over a run of stops or blanks hangs the caller."""
    long = text * 50_000
    long = text * 50_000
    begun = time.process_time()

    assert "".join(sentences(long)) == long
    assert time.process_time() - begun < 2
