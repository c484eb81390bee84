"""How fast and how right counting is: the rule, the estimate, and the exact count.

The rule is timed against the plain way to write it, a list of all matches of a regular expression.
The estimate is timed against tiktoken on the same text, and compared with it on real text of
sixteen kinds; a third of the texts of each kind was kept out of the fit (`fit_estimator.py`).
"""

from __future__ import annotations

import re
import tracemalloc
from collections import defaultdict
from typing import TYPE_CHECKING, get_args

from muntin.counting import (
    EstimatedEncoding,
    TiktokenCounter,
    count_tokens,
    estimate_tokens,
    short_texts,
)

from ._data import json_lines
from ._fit_texts import fit_texts
from ._harness import Table, at_least, at_most, compare, peer, seconds
from .fit_estimator import accuracy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._harness import Cell

__all__ = ("run",)

_FIND_ALL = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")


def run() -> list[Table]:
    """Measure the three counters."""
    return [_rule(), _estimate_speed(), _hostile(), *map(_accuracy, get_args(EstimatedEncoding))]


def _find_all(text: str) -> int:
    """Count as the rule is most simply written."""
    cjk = len(_FIND_ALL.findall(text))
    return cjk + (len(text) - cjk + 3) // 4


def _texts() -> dict[str, str]:
    """Join the real texts of each kind."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for record in json_lines("multilingual.jsonl"):
        kinds[record["kind"]].append(record["text"])
    return {kind: "\n".join(texts) for kind, texts in kinds.items()}


def _of_size(text: str, size: int) -> str:
    """Repeat a text to a number of UTF-8 bytes."""
    length = max(1, size * len(text) // len(text.encode()))
    return (text * (length // len(text) + 1))[:length]


def _rule() -> Table:
    texts = _texts()
    module = peer("agentmaker")
    theirs: Callable[[str], int] = module.count_tokens if module else _find_all
    rows: list[tuple[Cell, ...]] = []
    for kind in ("english", "chinese", "mixed", "russian"):
        text = _of_size(texts[kind], 1_000_000)
        text = text.encode("ascii", "ignore").decode() if kind == "english" else text
        timed = compare(lambda text=text: count_tokens(text), lambda text=text: theirs(text))
        goal = at_least(timed.times_faster, 5, "x") if kind in ("english", "chinese") else None
        memory = at_most(_peak(count_tokens, text) / 1e6, 1, " MB")
        faster = goal or f"{timed.times_faster:.1f}x"
        rows.append((kind, timed.ours * 1e3, timed.theirs * 1e3, faster, memory))
    return Table(
        title="count_tokens, 1 MB of UTF-8",
        columns=("text", "ours, ms", "peer, ms", "faster", "extra memory"),
        rows=tuple(rows),
        notes=(f"peer: {'agentmaker' if module else 'a list of all matches of the rule'}",),
    )


def _peak(counter: Callable[[str], int], text: str) -> int:
    counter(text)
    tracemalloc.start()
    counter(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _estimate_speed() -> Table:
    exact = TiktokenCounter()
    texts = _texts()
    rows: list[tuple[Cell, ...]] = []
    whole = "\n".join(texts.values())
    for kind, text in (("all kinds", whole), *sorted(texts.items())):
        text = _of_size(text, 200_000)
        timed = compare(
            lambda text=text: estimate_tokens(text), lambda text=text: exact(text), rounds=5
        )
        per_million = timed.ours / len(text) * 1e9
        rows.append((kind, per_million, at_least(timed.times_faster, 3, "x")))
    for length in (100, 300, 1_000, 10_000):
        text = texts["english"][:length]
        timed = compare(lambda text=text: estimate_tokens(text), lambda text=text: exact(text))
        per_million = timed.ours / len(text) * 1e9
        goal = at_least(timed.times_faster, 1, "x") if length == 100 else None
        rows.append((f"{length} characters", per_million, goal or f"{timed.times_faster:.2f}x"))
    rows += _lines(exact)
    return Table(
        title="estimate_tokens against tiktoken o200k_base, 200 kB unless said otherwise",
        columns=("text", "ms per million characters", "faster"),
        rows=tuple(rows),
        notes=(
            "Short ASCII texts are added up word by word, and what a word costs is remembered. The "
            "lines are different chat messages of 60 to 140 ASCII characters: with all words new "
            "at the start, and again.",
        ),
    )


def _lines(exact: Callable[[str], int]) -> list[tuple[Cell, ...]]:
    """Count many different lines, with nothing remembered and then again."""
    turns = (
        turn["text"]
        for record in json_lines("conversations.dev.jsonl.gz")
        for turn in record["turns"]
    )
    lines = list(dict.fromkeys(line for line in turns if 60 <= len(line) <= 140 and line.isascii()))
    size = sum(map(len, lines))

    def anew() -> None:
        short_texts.cache_clear()
        for line in lines:
            estimate_tokens(line)

    def again() -> None:
        for line in lines:
            estimate_tokens(line)

    def theirs() -> None:
        for line in lines:
            exact(line)

    rows: list[tuple[Cell, ...]] = []
    for name, ours in (("new", anew), ("again", again)):
        timed = compare(ours, theirs, rounds=5)
        rows.append(
            (f"{len(lines)} lines, {name}", timed.ours / size * 1e9, f"{timed.times_faster:.2f}x")
        )
    return rows


def _hostile() -> Table:
    units = ("a", " ", "a ", "a1", "中", "😀", "\n", "-", "\ud800", "\ud83d\ude00", "\u0301", "ก็")
    rows: list[tuple[Cell, ...]] = []
    for unit in units:
        text = unit * (1_000_000 // len(unit))
        taken = seconds(lambda text=text: estimate_tokens(text), rounds=3)
        rows.append((ascii(unit), at_most(taken, 1, " s")))
    return Table(
        title="estimate_tokens, a million characters of one kind",
        columns=("repeated", "taken"),
        rows=tuple(rows),
    )


def _accuracy(encoding: EstimatedEncoding) -> Table:
    exact = TiktokenCounter(encoding)
    kinds: defaultdict[str, dict[bool, list[str]]] = defaultdict(lambda: {False: [], True: []})
    real = {record["kind"] for record in json_lines("multilingual.jsonl")}
    for text in fit_texts():
        if text.kind in real:
            kinds[text.kind][text.held].append(text.text)

    def guess(text: str) -> int:
        return estimate_tokens(text, encoding=encoding)

    rows: list[tuple[Cell, ...]] = []
    for kind, parts in sorted(kinds.items()):
        every = accuracy([*parts[False], *parts[True]], guess, exact)
        held = accuracy(parts[True], guess, exact) if parts[True] else None
        rows.append(
            (
                kind,
                every.texts,
                at_least(every.bias, 0.85),
                at_most(max(every.bias, every.typical), 1.35),
                every.lowest,
                held.texts if held else 0,
                held.typical if held else None,
            )
        )
    texts = [text for parts in kinds.values() for part in parts.values() for text in part]
    held_texts = [text for parts in kinds.values() for text in parts[True]]
    every, held = accuracy(texts, guess, exact), accuracy(held_texts, guess, exact)
    rows.append(
        (
            "all",
            every.texts,
            every.bias,
            at_most(every.typical, 1.12),
            every.lowest,
            held.texts,
            at_most(held.typical, 1.12),
        )
    )
    return Table(
        title=f"estimate_tokens against exact {encoding}",
        columns=(
            "kind",
            "texts",
            "all estimated / all exact",
            "worst of that and the typical factor",
            "lowest text",
            "held out",
            "typical factor held out",
        ),
        rows=tuple(rows),
        notes=(
            "The typical factor is the geometric mean over texts of max(e/t, t/e).",
            "In the last row the fourth column is the typical factor alone.",
        ),
    )
