from __future__ import annotations

import base64
import json
import math
import random
import string
import time
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

from muntin.counting import estimate
from muntin.counting.characters import CLASSES
from muntin.counting.estimate import EstimatedEncoding, estimate_tokens
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.errors import ConfigurationError
from shared_data import json_lines, needs_data

ENCODINGS: tuple[EstimatedEncoding, ...] = get_args(EstimatedEncoding)

CHANCE = random.Random(99)
ONE_OF_MANY = "".join(CHANCE.choice(string.ascii_letters + string.digits) for _ in range(1_500))

KINDS = {
    "english": "The committee met on Tuesday to discuss the budget, and agreed to publish it.",
    "german": "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Pflicht.",
    "vietnamese": "Mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.",
    "hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "tamil": "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებით.",
    "chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "traditional chinese": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。",
    "japanese": "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "csv": "\n".join(f"{n},{n * 37 % 1000},{n * 7.31:.2f},{n * n}" for n in range(50)),
    "minified": 'function a(b,c){return b?c.map(d=>d.x+1):[]}var e={f:1,g:"h"};e.f&&a(e,[1,2]);'
    * 3,
    "uuids": "3f2b8c1d-9a4e-4f7b-8c6d-1e2f3a4b5c6d 0d9e8f7a-6b5c-4d3e-9f2a-1b0c9d8e7f6a",
    "ansi log": "\x1b[32m[12:41:07]\x1b[0m INFO worker-3: processed 1284 items in 57ms\n" * 4,
    "extension b": "".join(map(chr, range(0x20000, 0x20100))),
    "base64": base64.b64encode(CHANCE.randbytes(900)).decode(),
    "hex": CHANCE.randbytes(500).hex(),
    "keys": ONE_OF_MANY,
    "digits": "".join(CHANCE.choice(string.digits) for _ in range(900)),
    "capitals": "ATTENTION: ALL PASSENGERS MUST PRESENT A VALID BOARDING PASS AT THE GATE.",
    "indented": "".join(f"{' ' * 4 * (n % 6)}if value[{n}] is not None:\n" for n in range(30)),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_text_is_far_off(kind: str, encoding: EstimatedEncoding) -> None:
    """A kind that counts too low overruns the window; one far too high wastes half of it."""
    exact = TiktokenCounter(encoding)(KINDS[kind])

    assert 0.85 <= estimate_tokens(KINDS[kind], encoding=encoding) / exact <= 1.35


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("character", [*" -=*_.#~\n\t", "a", "0", "\0", "\ufffd"])
def test_long_runs_count_as_runs(character: str, encoding: EstimatedEncoding) -> None:
    """A ruler of dashes is a handful of tokens, and blanks can be a tenth of a file."""
    text = f"x{character * 2_000}"
    exact = TiktokenCounter(encoding)(text)

    assert 0.7 * exact <= estimate_tokens(text, encoding=encoding) <= 3 * exact + 60


def test_dense_text_counts_densely() -> None:
    """A million characters of base64 inside a text were taken for a quarter, and cost a million."""
    text = base64.b64encode(CHANCE.randbytes(75_000)).decode()

    assert estimate_tokens(text) >= 0.85 * TiktokenCounter()(text)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chinese_does_not_count_a_quarter(encoding: EstimatedEncoding) -> None:
    """Four characters to a token keeps three times too much of a Chinese conversation."""
    messages = ["我们今天讨论了预算并同意公布它。" * 10] * 4
    exact = sum(map(TiktokenCounter(encoding), messages))

    assert 0.85 <= sum(estimate_tokens(m, encoding=encoding) for m in messages) / exact <= 1.35


@pytest.mark.parametrize("text", ["", None])
def test_nothing_is_nothing(text: str | None) -> None:
    """Empty contents are common, and must not add up to tokens."""
    assert estimate_tokens(text) == 0


@pytest.mark.parametrize(
    "text", ["\ud800", "\0", "\ud83d\ude00", "\U0010ffff", "<|endoftext|>", "a"]
)
def test_any_string_gets_a_number(text: str) -> None:
    """A counter that raises kills the run it was meant to protect."""
    assert estimate_tokens(text) >= 1


def test_paired_surrogates_count_as_what_they_spell() -> None:
    """JSON decoders of other languages hand over emoji as two halves."""
    assert estimate_tokens("ok \ud83d\ude00") == estimate_tokens("ok 😀")


@pytest.mark.parametrize("wrong", [b"abc", 3])
def test_what_is_no_text_is_refused(wrong: object) -> None:
    """Bytes counted as text give a number that means nothing."""
    with pytest.raises(TypeError, match="decode it first"):
        estimate_tokens(wrong)  # pyright: ignore[reportArgumentType] - the wrong value is the point


def test_an_encoding_without_rates_is_refused() -> None:
    """Falling back in silence would report the wrong encoding's numbers."""
    with pytest.raises(ConfigurationError, match="no rates for encoding 'p50k_base'"):
        estimate_tokens("text", encoding="p50k_base")  # pyright: ignore[reportArgumentType] - the wrong value is the point


@pytest.mark.parametrize(
    "unit", ["a", " ", "a ", "中", "😀", "\n", "a1", "-", "Ab", "é", "\ud800", "\ud83d\ude00", "ก็"]
)
def test_a_million_characters_take_less_than_a_second(unit: str) -> None:
    """Long runs without a border are where tokenizers and regular expressions go quadratic."""
    text = unit * (1_000_000 // len(unit))
    estimate_tokens(text[:10])
    begun = time.process_time()
    estimate_tokens(text)

    assert time.process_time() - begun < 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_committed_rates_name_what_the_code_knows(encoding: EstimatedEncoding) -> None:
    """A class renamed without a new fit would silently count as the first one."""
    path = Path(estimate.__file__).with_name("rates") / f"{encoding}.json"
    saved = json.loads(path.read_text(encoding="utf-8"))

    assert saved["encoding"] == encoding
    assert tuple(saved["starts"]) == CLASSES
    assert {context for row in saved["starts"].values() for context in row} <= {
        "any",
        *estimate.CONTEXTS,
    }


@needs_data
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_on_real_texts_the_typical_factor_is_small(encoding: EstimatedEncoding) -> None:
    """The figures the documentation promises, on real text of sixteen kinds."""
    ratios: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for record in json_lines("multilingual.jsonl"):
        guess = estimate_tokens(record["text"], encoding=encoding)
        ratios[record["kind"]].append((guess, record[encoding]))
    every = [guess / exact for pairs in ratios.values() for guess, exact in pairs]

    assert _typical(every) <= 1.12
    assert min(every) >= 0.85
    for kind, pairs in ratios.items():
        bias = sum(guess for guess, _ in pairs) / sum(exact for _, exact in pairs)
        assert 0.85 <= bias <= 1.35, kind
        assert _typical([guess / exact for guess, exact in pairs]) <= 1.35, kind


def _typical(ratios: list[float]) -> float:
    return math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios))


@needs_data
@pytest.mark.slow
def test_the_fit_gives_the_committed_rates(capsys: pytest.CaptureFixture[str]) -> None:
    """Rates nobody can make again are magic numbers."""
    from benchmarks.fit_estimator import main

    assert main([]) == 0
    assert "the fit gives the committed rates" in capsys.readouterr().out


_ASCII = string.ascii_letters + string.digits + string.punctuation + "   \n\t"


@pytest.mark.parametrize("encoding", get_args(EstimatedEncoding))
def test_a_short_text_is_worth_the_same_word_by_word(encoding: EstimatedEncoding) -> None:
    """Two ways to one number: where they part, a text grows when a word is added in front."""
    draw = random.Random(11)
    memory = estimate.short_texts(encoding)
    rates = estimate.rates_of(encoding)
    for _ in range(2000):
        alphabet = draw.choices(_ASCII, k=draw.randrange(1, 9)) + [" "] * draw.randrange(3)
        text = "".join(draw.choices(alphabet, k=draw.randrange(1, 300)))
        if estimate.DEEP_BLANK not in text:
            assert memory.thousandths(text) == estimate.thousandths(text, rates), text


def test_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that counts for months must not keep every word it ever saw."""
    monkeypatch.setattr(estimate, "_REMEMBERED", 5)
    memory = estimate.ShortTexts(estimate.rates_of("o200k_base"))
    for number in range(100):
        memory.thousandths(f"word{number} and{number}  number {'x' * 50} {number}")
    assert memory.remembered <= 5
