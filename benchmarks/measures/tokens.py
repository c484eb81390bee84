"""Exact counts by `o200k_base`, the cost of messages, and means with their intervals."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from muntin import TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = (
    "STOP_WORDS",
    "Message",
    "answered",
    "count",
    "interval",
    "mean",
    "messages_tokens",
    "normalised",
    "texts_tokens",
    "words",
)

Message: TypeAlias = "dict[str, Any]"

PER_MESSAGE = 4
PER_CALL = 3
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the and or but if of to in on for with at by from as is are was were be been "
        "being it this that these those i you he she we they me my your our their them him "
        "her its not no so do does did have has had will would can could should may might "
        "just like yeah uh um okay ok right well know think mean there here what which who "
        "when where why how ",
    )
)

_exact = TiktokenCounter("o200k_base")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=200_000)
def count(text: str) -> int:
    """Return the tokens of a text."""
    return _exact(text)


def messages_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of chat messages: contents, names and arguments of calls, and framing."""
    total = 0
    for message in messages:
        total += PER_MESSAGE + count(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            function = call["function"]
            total += PER_CALL + count(function["name"]) + count(function["arguments"])
    return total


def texts_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of the contents of messages, without framing."""
    return sum(count(message.get("content") or "") for message in messages)


def words(text: str) -> list[str]:
    """Return the lower-case words of a text in order."""
    return re.findall(r"\w+", text.lower())


def normalised(text: str) -> str:
    """Return a text without case, punctuation and articles, as SQuAD compares answers."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answered(text: str, answers: Iterable[str]) -> bool:
    """Return whether one of the answers is in the text."""
    there = f" {normalised(text)} "
    return any(f" {short} " in there for short in map(normalised, answers) if short)


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are known; NaN if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")


def interval(values: Sequence[float], *, seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean."""
    drawn = np.random.default_rng(seed).choice(np.asarray(values, float), (draws, len(values)))
    low, high = np.quantile(drawn.mean(axis=1), (0.025, 0.975))
    return float(low), float(high)
