"""Speed of the LlamaIndex adapter beside what LlamaIndex itself does.

The memories hold the same messages under the same limit, and each is asked for what it would send.
`ChatMemoryBuffer` re-counts the remaining history after every message it drops, so it is timed
once per size. The selections choose ten of the same vectors, in the form in which each keeps them
and in the other's.
"""

from __future__ import annotations

import random
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._harness import Table, at_least, at_most, compare, exponent, peer, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 2000
SIZES = (300, 1000)
WORDS = [
    "the", "office", "keeps", "travel", "rules", "for", "every", "country", "and", "each",
    "of", "them", "names", "a", "cap", "in", "euros", "that", "holds", "per", "day", "unless",
    "the", "manager", "has", "agreed", "to", "more", "before", "the", "journey", "began",
    "and", "says", "so",
]  # fmt: skip


def run() -> list[Table]:
    """Time memory and selection; an absent LlamaIndex leaves empty tables with a note."""
    if peer("llama_index.core") is None:
        return [_absent("Memory"), _absent("Selection")]
    warnings.simplefilter("ignore")
    return [_memory(), _turns(), _selection()]


def _absent(title: str) -> Table:
    return Table(title=title, columns=("work",), rows=(), notes=("LlamaIndex is not installed.",))


def _messages(count: int, start: int = 0) -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [
        ChatMessage(
            role="user" if at % 2 == 0 else "assistant",
            content=" ".join(WORDS[(at * 7 + place) % len(WORDS)] for place in range(40))
            + f" {at}",
        )
        for at in range(start, start + count)
    ]


def _ours(messages: list[Any]) -> Any:
    from llama_index_muntin import CompactingMemory
    from muntin import TiktokenCounter

    memory = CompactingMemory.from_defaults(
        token_limit=LIMIT,
        token_counter=TiktokenCounter("cl100k_base"),
        summarizer=lambda _text, _instruction: "They spoke of travel rules.",
    )
    for message in messages:
        memory.put(message)
    return memory


def _memory() -> Table:
    """Read what a memory would send."""
    from llama_index.core.memory import ChatMemoryBuffer

    rows: list[tuple[Any, ...]] = []
    for size in SIZES:
        messages = _messages(size)
        theirs = ChatMemoryBuffer.from_defaults(token_limit=LIMIT)
        theirs.set(messages)
        ours = _ours(messages)
        fresh = iter(_messages(10_000, start=size))

        def turn(memory: Any = ours, fresh: Any = fresh) -> Any:
            memory.put(next(fresh))  # so that no earlier answer can be handed out again
            return memory.get()

        begun = time.perf_counter()
        theirs.get()
        taken = time.perf_counter() - begun
        own = seconds(turn, rounds=9)
        rows.append((f"{size} messages, limit {LIMIT}", taken * 1e3, own * 1e3, taken / own))
    most = rows[-1]
    rows[-1] = (*most[:3], at_least(most[3], 200, "x"))
    return Table(
        title="Memory: `get` after one more message",
        columns=("work", "ChatMemoryBuffer, ms", "CompactingMemory (put and get), ms", "faster"),
        rows=tuple(rows),
        notes=("Ours is charged for the put as well; theirs for the get alone, once.",),
    )


def _turns() -> Table:
    """Time one turn at different lengths of the conversation."""
    points: list[tuple[float, float]] = []
    rows: list[tuple[Any, ...]] = []
    for size in (500, 1000, 2000, 4000):
        memory = _ours(_messages(size))
        fresh = iter(_messages(10_000, start=size))

        def turn(memory: Any = memory, fresh: Any = fresh) -> None:
            memory.put(next(fresh))
            memory.get()

        taken = seconds(turn, rounds=9, shortest=0.2)
        points.append((size, taken))
        rows.append((f"{size} messages", taken * 1e3))
    rows.append(("exponent of growth (0 is flat, 1 is linear)", at_most(exponent(points), 0.25)))
    return Table(title="Memory: one turn, put and get", columns=("held", "ms"), rows=tuple(rows))


def _selection() -> Table:
    """Choose ten of n vectors."""
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings

    from muntin import Candidate, mmr_select

    dimensions = 384
    rows: list[tuple[Any, ...]] = []
    for size in (100, 1000):
        rng = random.Random(size)
        listed = [[rng.gauss(0, 1) for _ in range(dimensions)] for _ in range(size)]
        arrays = [np.array(vector, dtype=np.float32) for vector in listed]
        query = [rng.gauss(0, 1) for _ in range(dimensions)]
        scores = [rng.random() for _ in range(size)]
        for form, own, their in (
            ("lists, ours arrays", arrays, listed),
            ("lists", listed, listed),
            ("arrays", arrays, arrays),
        ):
            candidates = [
                Candidate(f"passage {at}", scores[at], embedding=own[at]) for at in range(size)
            ]

            def theirs(query: Any = query, vectors: Any = their) -> Any:
                return get_top_k_mmr_embeddings(query, vectors, similarity_top_k=10)

            def ours(candidates: Any = candidates) -> Any:
                return mmr_select(candidates, top_k=10)

            timed = compare(ours, theirs, rounds=3)
            faster: Any = timed.times_faster
            if size == 1000 and form == "lists, ours arrays":
                faster = at_least(faster, 300, "x")
            rows.append((f"10 of {size}: {form}", timed.theirs * 1e3, timed.ours * 1e3, faster))
    rows.append(("postprocessor, 40 nodes, 2,000 tokens", None, _postprocessor_ms(), None))
    return Table(
        title=f"Selection by maximal marginal relevance, d={dimensions}",
        columns=("work", "LlamaIndex, ms", "muntin, ms", "faster"),
        rows=tuple(rows),
        notes=(
            "LlamaIndex keeps vectors as lists of floats. Turning 1,000 of them into rows takes "
            "longer than choosing ten; whoever keeps arrays pays for it once.",
            "The postprocessor finds copies by words, counts, fits and copies the nodes.",
        ),
    )


def _postprocessor_ms() -> float:
    from llama_index.core.schema import NodeWithScore, TextNode

    from llama_index_muntin import BudgetPostprocessor

    nodes = [
        NodeWithScore(node=TextNode(text=message.content or "", id_=str(at)), score=0.9 - at / 100)
        for at, message in enumerate(_messages(40))
    ]
    processor = BudgetPostprocessor(budget=2000)
    work: Callable[[], Any] = lambda: processor.postprocess_nodes(nodes, query_str="cap?")  # noqa: E731 - handed on
    return seconds(work) * 1e3
