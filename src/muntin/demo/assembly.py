"""Assemble the demonstration's context from documentation, a memory and a tool result."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from muntin.config import ContextConfig
from muntin.passages import CallableSource, Candidate, ContextBuilder
from muntin.text import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting import NamedCounter
    from muntin.demo.corpus import Passages
    from muntin.passages import AssembledContext, ContextSource

__all__ = ("QUESTION", "assemble")

QUESTION = "How do I read a large CSV file row by row without loading it all into memory?"
"""The question of a run that is given none."""

_SYSTEM = "You answer questions about Python. Use only the passages below and name their source."


def assemble(
    question: str,
    passages: Passages,
    window: int,
    counter: NamedCounter,
    *,
    reserve_ratio: float = 0.2,
) -> AssembledContext:
    """Assemble a context for a question out of documentation, memory and a tool result.

    Args:
        question: The question.
        passages: The documentation.
        window: Tokens of the model's window.
        counter: Counts tokens.
        reserve_ratio: Share of the window left for the answer.
    """
    sources: list[ContextSource] = [
        CallableSource("rag", passages.search),
        CallableSource("memory", _ranked(_shipped("memory.md").splitlines())),
        CallableSource("tool", _ranked([_shipped("tool_result.txt").rstrip()])),
    ]
    config = ContextConfig.for_window(
        window,
        use_ratio=1.0,
        output_reserve_ratio=reserve_ratio,
        source_ratios={"rag": 0.6, "memory": 0.2, "tool": 0.2},
        min_chunk_tokens=0,
        shorten=True,
    )
    builder = ContextBuilder(config, counter=counter)
    return builder.assemble(question, sources=sources, system_prompt=_SYSTEM)


def _ranked(texts: Sequence[str]) -> Callable[[str], list[Candidate]]:
    """Make a source of a few texts, scored by the words they share with the question."""

    def fetch(question: str) -> list[Candidate]:
        scores = bm25_scores(question, texts)
        top = max(float(scores.max()), 1e-9)
        found = [Candidate(text, float(score) / top) for text, score in zip(texts, scores)]  # noqa: B905 - one score a text
        return sorted(found, key=lambda candidate: -(candidate.score or 0.0))

    return fetch


def _shipped(name: str) -> str:
    return files("muntin.demo").joinpath(name).read_text(encoding="utf-8")
