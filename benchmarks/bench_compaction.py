"""What a long chat costs under compaction, what it does to a prompt cache, and what survives it."""

from __future__ import annotations

import json
import math
import re
import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data, json_lines
from benchmarks._harness import Table, at_least, at_most, peer
from muntin import HistoryCompactor, Message, TiktokenCounter, count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SIZES = (250, 500, 1000, 2000)
TURNS = 200
READ, WRITE = 0.1, 1.25
"""Price of a cached and of a newly cached input token, in input tokens."""
BUDGETS = (0.25, 0.10)
WINDOW = 2000
"""Tokens a sliding window keeps: as many as compaction lets a history grow to."""


def run() -> list[Table]:
    """Measure all three."""
    return [long_chat(), prompt_cache(), *survival()]


# --- a chat that is compacted on every message ---------------------------------------------------


def _line(number: int) -> str:
    """About fifty tokens by the rule of thumb, each message another."""
    return (f"Message {number} says that item {number * 7} costs {number % 90} euros. " * 5)[:200]


def _role(number: int) -> str:
    return "assistant" if number % 2 else "user"


def _chat(
    size: int, make: Callable[[str, str], Any], compact: Callable[[list[Any]], object]
) -> float:
    """Compact after every message; return the processor's seconds."""
    history: list[Any] = []
    begun = time.process_time()
    for number in range(size):
        history.append(make(_line(number), _role(number)))
        compact(history)
    return time.process_time() - begun


def _ours(size: int) -> tuple[float, int, int]:
    sent: list[str] = []

    def summarize(text: str, instruction: str) -> str:  # noqa: ARG001 - agentmaker's protocol
        sent.append(text)
        return f"Recap number {len(sent)} of a chat about items and what they cost."

    compactor = HistoryCompactor(summarize)
    taken = _chat(size, lambda text, role: Message(text, role), compactor.compact)  # pyright: ignore[reportArgumentType] - roles of the bench
    return taken, len(sent), sum(map(len, sent))


def _theirs(size: int) -> tuple[float, int, int] | None:
    agentmaker = peer("agentmaker")
    if agentmaker is None:
        return None
    sent: list[str] = []

    def summarize(text: str, instruction: str) -> str:  # noqa: ARG001 - agentmaker's protocol
        sent.append(text)
        return f"Recap number {len(sent)} of a chat about items and what they cost."

    compactor = agentmaker.HistoryCompactor(None)
    taken = _chat(
        size,
        lambda text, role: agentmaker.Message(content=text, role=role),
        lambda history: compactor.compact(history, summarize=summarize),
    )
    return taken, len(sent), sum(map(len, sent))


def long_chat() -> Table:
    """Compact a growing chat after each message, with an instant summariser."""
    rows: list[tuple[Any, ...]] = []
    for size in SIZES:
        other = _theirs(size)
        own = min((_ours(size) for _ in range(3)), key=lambda figures: figures[0])
        last = size == SIZES[-1]
        rows.append(
            (
                size,
                at_most(own[0], 0.8, " s") if last else own[0],
                at_most(own[1], 110) if last else own[1],
                own[2],
                *((other[0], other[1], other[2], other[0] / own[0]) if other else [None] * 4),
            )
        )
    return Table(
        title="A chat compacted after every message (50-token messages, trigger 2000, keep 4)",
        columns=(
            "messages",
            "seconds",
            "model calls",
            "characters sent",
            "agentmaker: seconds",
            "calls",
            "characters",
            "times slower",
        ),
        rows=tuple(rows),
        notes=("Processor seconds of one thread; the summariser answers at once.",),
    )


# --- what a prompt cache sees --------------------------------------------------------------------


def _requests(compact: Callable[[list[Message]], Sequence[Message]]) -> list[list[Message]]:
    """The requests of a chat: one for each user message."""
    history = [Message("You help customers of a shop. " * 20, "system")]
    requests: list[list[Message]] = []
    for turn in range(TURNS):
        history.append(Message(_line(2 * turn), "user"))
        requests.append(list(compact(history)))
        history.append(Message(_line(2 * turn + 1), "assistant"))
    return requests


def _window(history: list[Message]) -> list[Message]:
    """Keep the system message and as many of the newest messages as the window takes."""
    room = WINDOW - count_tokens(str(history[0].content))
    kept: list[Message] = []
    for message in reversed(history[1:]):
        room -= count_tokens(str(message.content))
        if room < 0:
            break
        kept.append(message)
    return [history[0], *reversed(kept)]


def _bill(requests: list[list[Message]]) -> tuple[float, float, float]:
    """Share of tokens read from the cache, tokens sent, and the bill in uncached input tokens."""
    sent = read = 0.0
    bill = 0.0
    before: list[str] = []
    for request in requests:
        wire = [json.dumps(message.to_dict()) for message in request]
        sizes = [count_tokens(text) for text in wire]
        same = next(
            (at for at, pair in enumerate(zip(before, wire, strict=False)) if pair[0] != pair[1]),
            min(len(before), len(wire)),
        )
        cached = sum(sizes[:same])
        sent += sum(sizes)
        read += cached
        bill += READ * cached + WRITE * (sum(sizes) - cached)
        before = wire
    return read / sent, sent, bill


def _whole(requests: list[list[Message]]) -> float:
    """Share of consecutive requests of which the second merely continues the first."""
    return statistics.fmean(
        float(after[: len(before)] == before) for before, after in pairwise(requests)
    )


def prompt_cache() -> Table:
    """Compare what is sent: compacted, cut by a sliding window, or whole."""
    calls: list[int] = []

    def summarize(text: str, instruction: str) -> str:
        calls.append(count_tokens(text) + count_tokens(instruction))
        return "The customer asked what items cost and was told. " * 8

    compactor = HistoryCompactor(summarize)
    kinds: dict[str, list[list[Message]]] = {
        "HistoryCompactor": _requests(compactor.compact),
        "sliding window": _requests(_window),
        "whole history": _requests(lambda history: history),
    }
    rows: list[tuple[Any, ...]] = []
    for name, requests in kinds.items():
        share, sent, bill = _bill(requests)
        extra = sum(calls) if name == "HistoryCompactor" else 0
        shown = at_least(share, 0.85) if name == "HistoryCompactor" else share
        rows.append(
            (name, shown, _whole(requests), sent, bill, bill + extra, len(calls) if extra else 0)
        )
    return Table(
        title=f"Prompt cache over {TURNS} turns (read {READ}, write {WRITE} of an input token)",
        columns=(
            "sent",
            "share read from cache",
            "requests that only continue",
            "tokens sent",
            "bill",
            "bill with summaries",
            "summaries",
        ),
        rows=tuple(rows),
        notes=(
            "What two consecutive requests begin with alike is read, the rest is written.",
            "Summaries are billed at the full input price; what is written by the model is not "
            "billed in any row.",
        ),
    )


# --- what survives of real conversations ---------------------------------------------------------


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[at : at + 3]) for at in range(len(words) - 2)}


_COMMON = frozenset(
    re.findall(
        r"\w+",
        "that this with from have they would could about there their what which when were been "
        "will them then than some also into more your just like said very",
    )
)


def _cases(limit: int = 3) -> Iterator[tuple[str, list[dict[str, Any]], dict[str, Any]]]:
    """Questions with their evidence, each with the conversation up to where it is asked."""
    for record in json_lines("conversations.dev.jsonl.gz"):
        queries = record["queries"]
        kind = record["kind"].partition(":")[0]
        step = max(1, len(queries) // limit) if kind == "irc" else 1
        for query in queries[::step][:limit]:
            turns = record["turns"][: query["at"]]
            if len(turns) > 12 and query["evidence"]:
                yield kind, turns, query


def _rendered(turn: dict[str, Any]) -> str:
    return f"{turn['speaker']}: {turn['text']}"


def _tail(turns: list[dict[str, Any]], budget: int, count: Callable[[str], int]) -> int:
    """Count how many of the newest turns fit a budget."""
    kept = 0
    for turn in reversed(turns):
        budget -= count(_rendered(turn))
        if budget < 0:
            break
        kept += 1
    return kept


def _truncated(turns: list[dict[str, Any]], budget: int, count: Callable[[str], int]) -> str:
    kept = _tail(turns, budget, count)
    return "\n".join(_rendered(turn) for turn in turns[len(turns) - kept :])


def _compacted(turns: list[dict[str, Any]], budget: int, count: Callable[[str], int]) -> str:
    """Half of the budget for the newest turns, the rest for a recap by extraction."""
    kept = max(1, _tail(turns, budget // 2, count))
    left = budget - sum(count(_rendered(turn)) for turn in turns[len(turns) - kept :])
    compactor = HistoryCompactor(
        keep_recent=kept,
        trigger_tokens=budget,
        max_summary_tokens=max(16, left),
        token_counter=count,
    )
    messages = [Message(_rendered(turn), turn["role"]) for turn in turns]
    return "\n".join(str(message.content) for message in compactor.compact(messages))


def _kept(text: str, turns: list[dict[str, Any]], query: dict[str, Any]) -> tuple[float, float]:
    """Share of evidence turns and of the answer's words that are still there (NaN: not asked)."""
    left, words = _shingles(text), set(_words(text))
    evidence = [turns[at] for at in query["evidence"] if at < len(turns)]
    long = [turn for turn in evidence if len(_words(turn["text"])) >= 4]
    whole = [
        len(shingles & left) >= 0.8 * len(shingles)
        for shingles in (_shingles(turn["text"]) for turn in long)
    ]
    share = statistics.fmean(map(float, whole)) if whole else float("nan")
    told = set(_words(" ".join(_rendered(turn) for turn in evidence)))
    asked = {w for w in _words(query.get("answer") or "") if len(w) > 3 and w not in _COMMON}
    asked &= told
    return share, len(asked & words) / len(asked) if asked else float("nan")


def _mean(values: list[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else None


def survival() -> list[Table]:
    """Compact real meetings and chats to a share of their size, without a model."""
    if not has_data():
        return []
    count = TiktokenCounter()
    figures: dict[tuple[str, float, str], list[tuple[float, float, float]]] = {}
    for kind, turns, query in _cases():
        total = sum(count(_rendered(turn)) for turn in turns)
        for share in BUDGETS:
            budget = int(total * share)
            for name, method in (("compacted", _compacted), ("newest turns", _truncated)):
                text = method(turns, budget, count)
                evidence, answer = _kept(text, turns, query)
                used = count(text) / budget
                figures.setdefault((kind, share, name), []).append((evidence, answer, used))
    rows = [
        (
            kind,
            f"{share:.0%}",
            name,
            len(found),
            *(_mean([f[at] for f in found]) for at in range(3)),
        )
        for (kind, share, name), found in sorted(
            figures.items(), key=lambda item: (item[0][0], -item[0][1], item[0][2])
        )
    ]
    return [
        Table(
            title="What survives compaction without a model (real meetings and chats)",
            columns=("kind", "kept", "how", "questions", "evidence turns", "answer words", "used"),
            rows=tuple(rows),
            notes=(
                "An evidence turn survives when 80 % of its three-word runs do. Compacted: half of "
                "the budget for the newest turns, half for a recap by extraction, made before the "
                "question is known.",
            ),
        )
    ]
