"""Are both passages of a two-step question in the block? HotpotQA questions, BM25 passages.

A passage counts when its id is named and its text is in the block, white space aside. Titles are
the first line of the text (`titled`), beside the text (`metadata`) or nowhere (`bare`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from benchmarks._data import json_lines
from benchmarks.measures.tokens import answered, count

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("answers_placed", "both_placed", "greedy", "offers", "questions")

Passage = dict[str, Any]
"""`id`, `title` (empty if there is none), `text`, `score`."""


@lru_cache(maxsize=1)
def _records() -> tuple[dict[str, str], tuple[dict[str, Any], ...]]:
    first, *rest = json_lines("multihop.dev.jsonl.gz")
    return first["docs"], tuple(rest)


def questions() -> tuple[dict[str, Any], ...]:
    """Return the questions."""
    return _records()[1]


def offers(record: dict[str, Any], titles: str) -> list[Passage]:
    """Return the passages of a question, best first."""
    found: list[Passage] = []
    for name, score in record["candidates"]:
        document = _records()[0][name]
        title, _, text = document.partition("\n")
        found.append(
            {
                "id": name,
                "title": "" if titles == "bare" else title,
                "text": document if titles == "titled" else text,
                "score": score,
            }
        )
    return found


def both_placed(
    assemble: Callable[[str, list[Passage], int], tuple[str, list[str]]], titles: str, budget: int
) -> list[bool]:
    """Return for each question whether both passages are in the block."""
    return [_both(assemble, record, offers(record, titles), budget) for record in questions()]


def answers_placed(
    assemble: Callable[[str, list[Passage], int], tuple[str, list[str]]], titles: str, budget: int
) -> list[bool]:
    """Return for each question that is not answered by yes or no whether the answer is placed."""
    found: list[bool] = []
    for record in questions():
        if record["answer"].lower() not in ("yes", "no"):
            block, _ = assemble(record["question"], offers(record, titles), budget)
            found.append(count(block) <= budget and answered(block, [record["answer"]]))
    return found


def _both(
    assemble: Callable[..., tuple[str, list[str]]],
    record: dict[str, Any],
    offered: list[Passage],
    budget: int,
) -> bool:
    block, ids = assemble(record["question"], offered, budget)
    flat = " ".join(block.split())
    texts = {one["id"]: " ".join(one["text"].split()) for one in offered}
    return count(block) <= budget and all(
        gold in ids and texts[gold] in flat for gold in record["gold"]
    )


def greedy(_question: str, offered: list[Passage], budget: int) -> tuple[str, list[str]]:
    """Place passages by score, without those that do not fit."""
    lines: list[str] = []
    ids: list[str] = []
    for one in offered:
        tokens = count(f"- {one['text']}\n")
        if tokens <= budget:
            budget -= tokens
            lines.append(f"- {one['text']}")
            ids.append(one["id"])
    return "\n".join(lines), ids
