"""Fit the rates of `estimate_tokens` to the exact tokenizers, and show how far off they are.

    python -m benchmarks.fit_estimator            # fit, compare with the committed rates, report
    python -m benchmarks.fit_estimator --write    # fit, and write src/muntin/counting/rates/*.json

The model is the one of `muntin.counting.estimate`: rates by class and context, summed; inside
words the sum passes a ramp. Rates outside words are weighted means of token starts,
drawn to the mean of their class where a pair is rare. Rates of letters are found by gradient
descent (Adam) on the squared error per word, relative to its length. Everything is deterministic.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import re
import sys
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from muntin.counting import (
    CLASSES,
    LETTER_CLASSES,
    ONE_TOKEN_RANGES,
    TiktokenCounter,
    class_table,
    estimate,
)

from ._fit_texts import FitText, fit_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import tiktoken
    from numpy.typing import NDArray

__all__ = ("accuracy", "fit", "main")

RATES = Path(estimate.__file__).with_name("rates")

RAMP = 0.25
"""Width of the ramp's bend, in tokens."""
STEPS = 600
"""Steps of gradient descent."""
STEP = 0.03
"""Tokens a rate moves in one step at first."""
DRAWN = 0.3
"""Weighted characters that a letter's pair needs to leave the rate of its class."""
DRAWN_SIGNS = 3.0
"""The same outside words."""
LEAST = 0.03
"""A pair of classes nearer than this to the rate of its class, in tokens, is not written down."""
MARGIN = 1.02
"""Every rate is raised by this factor, so that the estimate errs on the safe side."""

_CELLS = 256 * 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """All characters of the texts, letters sorted by word."""

    letters: NDArray[np.int64]
    word: NDArray[np.int64]
    tokens: NDArray[np.float64]
    weight: NDArray[np.float64]
    signs: NDArray[np.int64]
    sign_tokens: NDArray[np.float64]
    sign_weight: NDArray[np.float64]


def fit(encoding: str, texts: Sequence[FitText]) -> dict[str, Any]:
    """Fit the rates of one encoding to the texts that are not held out."""
    tokenizer = _tokenizer(encoding)
    alone = {name: _alone(tokenizer, *span) for name, span in ONE_TOKEN_RANGES.items()}
    classes = class_table().copy()
    for name, (first, last) in ONE_TOKEN_RANGES.items():
        classes[first : last + 1][alone[name]] = CLASSES.index(name)
    sample = _sample([text for text in texts if not text.held], classes, tokenizer)
    own = np.arange(_CELLS) // 256
    rates, defaults = _sign_rates(sample, own)
    letter_rates, letter_defaults = _letter_rates(sample, own)
    letters = own < LETTER_CLASSES
    return {
        "encoding": encoding,
        "ramp": round(RAMP * estimate.UNIT),
        "one_token": {name: _packed(bits) for name, bits in alone.items()},
        "starts": _rows(
            np.where(letters, letter_rates, rates) * MARGIN,
            np.where(np.arange(256) < LETTER_CLASSES, letter_defaults, defaults) * MARGIN,
        ),
    }


def _tokenizer(encoding: str) -> tiktoken.Encoding:
    import tiktoken

    TiktokenCounter(encoding).load()
    return tiktoken.get_encoding(encoding)


def _alone(tokenizer: tiktoken.Encoding, first: int, last: int) -> NDArray[np.bool_]:
    """Say which characters of a range are one token by themselves."""
    return np.array(
        [len(tokenizer.encode_ordinary(chr(code))) == 1 for code in range(first, last + 1)]
    )


def _token_starts(text: str, tokenizer: tiktoken.Encoding) -> NDArray[np.float64]:
    """Count the tokens that start within each character."""
    lengths = [
        len(token) for token in tokenizer.decode_tokens_bytes(tokenizer.encode_ordinary(text))
    ]
    offsets = np.cumsum([0, *lengths[:-1]])
    leading = (np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0) != 0x80
    starts = np.bincount((np.cumsum(leading) - 1)[offsets], minlength=len(text)).astype(np.float64)
    # The last of several spaces goes with the word behind it. Where that token starts is told
    # better by the word: then the rate of a space inside a run is nearly zero, as it should be.
    for run in re.finditer(r"(?<= ) (?=[^ ])", text):
        starts[run.end()] += starts[run.start()]
        starts[run.start()] = 0
    return starts


def _sample(
    texts: Sequence[FitText], classes: NDArray[np.uint8], tokenizer: tiktoken.Encoding
) -> _Sample:
    size: defaultdict[str, int] = defaultdict(int)
    for text in texts:
        size[text.kind] += len(text.text)
    parts: dict[str, list[NDArray[Any]]] = defaultdict(list)
    words = 0
    for text in texts:
        starts = _token_starts(text.text, tokenizer)
        cells = estimate.cells(text.text, classes).astype(np.int64)
        letters = cells < 256 * LETTER_CLASSES
        begins = letters & ~np.concatenate(([False], letters[:-1]))
        word = (np.cumsum(begins) - 1)[letters]
        count = int(begins.sum())
        weight = text.weight * 1_000 / size[text.kind]
        length = np.bincount(word, minlength=count)
        parts["letters"].append(cells[letters])
        parts["word"].append(word + words)
        parts["tokens"].append(np.bincount(word, starts[letters], count))
        parts["weight"].append(weight / (1 + length / 8))
        parts["signs"].append(cells[~letters])
        parts["sign_tokens"].append(starts[~letters])
        parts["sign_weight"].append(np.full(int((~letters).sum()), weight))
        words += count
    joined = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    mean = joined["weight"].mean()
    joined["weight"] /= mean
    joined["sign_weight"] /= mean
    return _Sample(**joined)


def _sign_rates(
    sample: _Sample, own: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average the token starts outside words, pairs drawn to the mean of their class."""
    weighted = sample.sign_weight * sample.sign_tokens
    of_class = sample.signs // 256
    mean = np.bincount(of_class, weighted, 256) / (
        np.bincount(of_class, sample.sign_weight, 256) + 1e-9
    )
    rates = (np.bincount(sample.signs, weighted, _CELLS) + DRAWN_SIGNS * mean[own]) / (
        np.bincount(sample.signs, sample.sign_weight, _CELLS) + DRAWN_SIGNS
    )
    return rates, mean


def _letter_rates(
    sample: _Sample, own: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Descend the squared error per word; a pair's rate is its class's and its own share."""
    pair, by_class = _Adam(_CELLS), _Adam(256)
    for step in range(1, STEPS + 1):
        rates = pair.values + by_class.values[own]
        sums = np.bincount(sample.word, rates[sample.letters], len(sample.tokens))
        root = np.sqrt(sums * sums + RAMP * RAMP)
        slope = ((sums + root) / 2 - sample.tokens) * (1 + sums / root) / 2 * sample.weight
        gradient = np.bincount(sample.letters, slope[sample.word], _CELLS)
        size = STEP * (1.0 if step < 0.6 * STEPS else 0.3 if step < 0.85 * STEPS else 0.1)
        of_class = np.bincount(own, gradient, 256)
        pair.descend(gradient + DRAWN * pair.values, size, step)
        by_class.descend(of_class + 0.01 * by_class.values, size, step)
    return pair.values + by_class.values[own], by_class.values


class _Adam:
    """Gradient descent with momentum and scaled steps (Kingma and Ba 2014)."""

    def __init__(self, size: int) -> None:
        self.values = np.zeros(size)
        self._mean = np.zeros(size)
        self._square = np.zeros(size)

    def descend(self, gradient: NDArray[np.float64], size: float, step: int) -> None:
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.01 * (gradient * gradient - self._square)
        mean = self._mean / (1 - 0.9**step)
        self.values -= size * mean / (np.sqrt(self._square / (1 - 0.99**step)) + 1e-8)


def _rows(rates: NDArray[np.float64], defaults: NDArray[np.float64]) -> dict[str, dict[str, int]]:
    """Name the rates: by class, then by context where it differs from any."""
    rows: dict[str, dict[str, int]] = {}
    square = rates.reshape(256, 256)
    for own, name in enumerate(CLASSES):
        row = {"any": round(defaults[own] * estimate.UNIT)}
        for before, context in enumerate(estimate.CONTEXTS):
            least = LEAST if before < len(CLASSES) else 0.0005
            if abs(square[own, before] - defaults[own]) >= least:
                row[context] = round(square[own, before] * estimate.UNIT)
        rows[name] = row
    return rows


def _packed(bits: NDArray[np.bool_]) -> str:
    return base64.b64encode(zlib.compress(np.packbits(bits).tobytes(), 9)).decode()


def _as_lines(rates: dict[str, Any]) -> str:
    """Write the rates as JSON with a line per class, so that changes can be read."""
    rows = [f"  {_json(name)}: {_json(row)}" for name, row in rates["starts"].items()]
    head = [f" {_json(key)}: {_json(value)}," for key, value in rates.items() if key != "starts"]
    return "\n".join(["{", *head, ' "starts": {', ",\n".join(rows), " }", "}", ""])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- how far off ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How far an estimate is off, over the texts of one kind."""

    texts: int
    bias: float
    """All tokens estimated over all tokens: below 1 is counted too low."""
    typical: float
    """Geometric mean over texts of the factor off, in either direction."""
    lowest: float
    """Smallest estimate over exact of a single text."""
    highest: float
    """Largest estimate over exact of a single text."""


def accuracy(
    texts: Sequence[str], estimated: Callable[[str], int], exact: Callable[[str], int]
) -> Accuracy:
    """Compare an estimate with the exact count."""
    pairs = [(estimated(text), exact(text)) for text in texts]
    ratios = [guess / true for guess, true in pairs]
    return Accuracy(
        texts=len(pairs),
        bias=sum(guess for guess, _ in pairs) / sum(true for _, true in pairs),
        typical=math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)),
        lowest=min(ratios),
        highest=max(ratios),
    )


def report(encoding: str, texts: Sequence[FitText]) -> None:
    """Print a row per kind, fitted and held out side by side."""
    exact = TiktokenCounter(encoding)
    kinds: defaultdict[str, dict[bool, list[str]]] = defaultdict(lambda: {False: [], True: []})
    for text in texts:
        kinds[text.kind][text.held].append(text.text)

    def guess(text: str) -> int:
        return estimate.estimate_tokens(text, encoding=encoding)  # pyright: ignore[reportArgumentType]

    print(f"{encoding}: bias (typical factor, lowest..highest), fitted | held out")
    for kind in sorted(kinds):
        cells: list[str] = []
        for held in (False, True):
            found = kinds[kind][held]
            if found:
                a = accuracy(found, guess, exact)
                cells.append(f"{a.bias:.2f} ({a.typical:.2f}, {a.lowest:.2f}..{a.highest:.2f})")
        print(f"  {kind:28} {' | '.join(cells)}")
    natural = [text for text in texts if ":" not in text.kind]
    for held, name in ((False, "fitted"), (True, "held out")):
        a = accuracy([text.text for text in natural if text.held is held], guess, exact)
        print(
            f"  {name}: {a.texts} texts, typical {a.typical:.3f}, {a.lowest:.2f}..{a.highest:.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, then write or compare, then report."""
    parser = argparse.ArgumentParser(description="Fit the rates of estimate_tokens.")
    parser.add_argument("--write", action="store_true", help="write the rates into the package")
    options = parser.parse_args(arguments)
    texts = fit_texts()
    same = True
    for encoding in get_args(estimate.EstimatedEncoding):
        path = RATES / f"{encoding}.json"
        fitted = _as_lines(fit(encoding, texts))
        if options.write:
            path.write_text(fitted, encoding="utf-8")
        same &= path.read_text(encoding="utf-8") == fitted
        report(encoding, texts)
    print(
        "the fit gives the committed rates" if same else "the fit differs from the committed rates"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
