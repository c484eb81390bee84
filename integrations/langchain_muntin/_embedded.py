"""Give gathered candidates vectors, where an embedding model is at hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

    from muntin.candidates import Candidate
    from muntin.sources import Gathered

__all__ = ("aembedded", "embedded")


def embedded(
    gathered: Gathered, question: str, embeddings: Embeddings
) -> tuple[Gathered, list[float]]:
    """Embed what has no vector yet, in one request, and the question."""
    texts = _texts(gathered)
    vectors = embeddings.embed_documents(texts) if texts else []
    return _with(gathered, texts, vectors), embeddings.embed_query(question)


async def aembedded(
    gathered: Gathered, question: str, embeddings: Embeddings
) -> tuple[Gathered, list[float]]:
    """Embed what has no vector yet without blocking the loop."""
    texts = _texts(gathered)
    vectors = await embeddings.aembed_documents(texts) if texts else []
    return _with(gathered, texts, vectors), await embeddings.aembed_query(question)


def _texts(gathered: Gathered) -> list[str]:
    """List the texts to embed, each once."""
    return list(
        dict.fromkeys(
            candidate.content
            for candidates in gathered.candidates.values()
            for candidate in candidates
            if candidate.embedding is None
        )
    )


def _with(gathered: Gathered, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> Gathered:
    known = dict(zip(texts, vectors, strict=True))

    def one(candidate: Candidate) -> Candidate:
        if candidate.embedding is not None:
            return candidate
        return replace(candidate, embedding=known[candidate.content])

    return replace(
        gathered,
        candidates={
            name: tuple(one(candidate) for candidate in candidates)
            for name, candidates in gathered.candidates.items()
        },
    )
