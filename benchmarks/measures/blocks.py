"""Is the passage with the answer in the block? Real questions, BM25 passages, duplicates.

An assembler takes the question, the offers of each source and a budget, and returns the block with
the ids it placed. An id counts only when its text is in the block.

Scenarios: `plain` has 20 passages in one source; `dup` adds a near-duplicate of each, half of them
in a second source; `borrow` has a second source with two short notes, so most of its quota is idle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks._data import data_path, json_lines
from benchmarks.measures.tokens import answered, count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Assembler: TypeAlias = "Callable[[str, dict[str, list[Offer]], int], tuple[str, list[str]]]"

__all__ = (
    "Offer",
    "Score",
    "cut_joined_text",
    "greedy",
    "llama_index_top",
    "mmr",
    "offers",
    "question_vector",
    "questions",
    "score",
)

_NOTE_WORDS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One passage that a source returns."""

    id: str
    text: str
    score: float
    """BM25, divided by the best of the question."""
    vector: Any
    is_gold: bool
    original: str
    """The id of the passage that this one is, or repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one block achieves."""

    gold: bool
    """Whether a whole gold passage or its near-duplicate is in the block."""
    answer: bool
    """Whether an answer is in the block."""
    over: bool
    use: float
    """Tokens of the block, divided by the budget."""
    twins: float | None
    """Share of the placed passages whose duplicate is placed too. None if nothing is placed."""


@lru_cache(maxsize=1)
def questions() -> tuple[dict[str, Any], ...]:
    """Return the questions."""
    return tuple(json_lines("retrieval.dev.jsonl.gz"))


@lru_cache(maxsize=1)
def _vectors() -> Any:
    rows = np.load(data_path("retrieval.dev.embeddings.npy")).astype(np.float32)
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)


@lru_cache(maxsize=1)
def _question_rows() -> dict[str, int]:
    return {record["question"]: record["emb"] for record in questions()}


def question_vector(question: str) -> Any:
    """Return the vector of a question."""
    return _vectors()[_question_rows()[question]]


def offers(record: dict[str, Any], scenario: str) -> dict[str, list[Offer]]:
    """Return what each source offers for a question, best first."""
    originals = [
        _offer(one["id"], f"{one['title']}\n{one['text']}", one, one) for one in record["passages"]
    ]
    copies = [_copy(one) for one in record["passages"]]
    found = {"rag": originals}
    if scenario == "dup":
        found = {"rag": [*originals, *copies[0::2]], "memory": copies[1::2]}
    elif scenario == "borrow":
        found["memory"] = [_note(copies[at]) for at in (2, 6)]
    return {name: sorted(some, key=lambda one: -one.score) for name, some in found.items()}


def _offer(name: str, text: str, scored: dict[str, Any], passage: dict[str, Any]) -> Offer:
    return Offer(
        id=name,
        text=text,
        score=scored["score"],
        vector=_vectors()[scored["emb"]],
        is_gold=passage["gold"],
        original=passage["id"],
    )


def _copy(passage: dict[str, Any]) -> Offer:
    return _offer(f"{passage['id']}~", passage["dup"]["text"], passage["dup"], passage)


def _note(copy: Offer) -> Offer:
    return Offer(
        id=copy.id,
        text=" ".join(copy.text.split()[:_NOTE_WORDS]),
        score=copy.score,
        vector=copy.vector,
        is_gold=False,
        original=copy.original,
    )


def score(
    record: dict[str, Any],
    found: dict[str, list[Offer]],
    budget: int,
    block: str,
    ids: Sequence[str] | None,
) -> Score:
    """Score a block. Without ids the placed passages are looked up in the text."""
    offered = [one for some in found.values() for one in some]
    if ids is None:
        placed = _placed(block, offered)
    else:
        wanted = set(ids)
        placed = [one for one in offered if one.id in wanted and one.text in block]
    tokens = count(block)
    copies = Counter(one.original for one in placed)
    doubled = sum(copies[one.original] > 1 for one in placed)
    return Score(
        gold=any(one.is_gold for one in placed),
        answer=answered(block, record["answers"]),
        over=tokens > budget,
        use=tokens / budget,
        twins=doubled / len(placed) if placed else None,
    )


def _placed(block: str, offered: list[Offer]) -> list[Offer]:
    """Return the offers in a block; each place counts once, for the longest text."""
    placed: list[Offer] = []
    for one in sorted(offered, key=lambda one: -len(one.text)):
        before, found, after = block.partition(one.text)
        if found:
            placed.append(one)
            block = f"{before}\0{after}"
    return placed


# --- what people use today -----------------------------------------------------------------------


def _by_score(found: dict[str, list[Offer]]) -> list[Offer]:
    return sorted((one for some in found.values() for one in some), key=lambda one: -one.score)


def _filled(ordered: Sequence[Offer], budget: int) -> tuple[str, list[str]]:
    placed: list[Offer] = []
    for one in ordered:
        budget -= count(f"{one.text}\n\n")
        if budget < 0:
            break
        placed.append(one)
    return "\n\n".join(one.text for one in placed), [one.id for one in placed]


def greedy(_question: str, found: dict[str, list[Offer]], budget: int) -> tuple[str, list[str]]:
    """Place passages by score until one does not fit."""
    return _filled(_by_score(found), budget)


def cut_joined_text(
    _question: str, found: dict[str, list[Offer]], budget: int
) -> tuple[str, list[str] | None]:
    """Join all passages and cut the text at the budget, as "stuff" chains do."""
    from tiktoken import get_encoding

    encoding = get_encoding("o200k_base")
    joined = "\n\n".join(one.text for one in _by_score(found))
    return encoding.decode(encoding.encode(joined, disallowed_special=())[:budget]), None


def mmr(weight: float, most: int) -> Any:
    """Return an assembler that orders by LangChain's maximal marginal relevance."""

    def assemble(
        question: str, found: dict[str, list[Offer]], budget: int
    ) -> tuple[str, list[str]]:
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        offered = _by_score(found)
        order = maximal_marginal_relevance(
            question_vector(question),
            [one.vector for one in offered],
            lambda_mult=weight,
            k=min(most, len(offered)),
        )
        return _filled([offered[at] for at in order], budget)

    return assemble


def llama_index_top(
    _question: str, found: dict[str, list[Offer]], budget: int
) -> tuple[str, list[str]]:
    """Place what LlamaIndex's similarity cut-off leaves, by score."""
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.schema import NodeWithScore, TextNode

    offered = {one.id: one for one in _by_score(found)}
    nodes = [
        NodeWithScore(node=TextNode(id_=one.id, text=one.text), score=one.score)
        for one in offered.values()
    ]
    left = SimilarityPostprocessor(similarity_cutoff=0.3).postprocess_nodes(nodes)
    return _filled([offered[node.node.node_id] for node in left], budget)
