"""Give gathered candidates vectors, where an embedding model is at hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

    from muntin.passages import Candidate, Gathered

__all__ = ("aembedded", "embedded", "matched")


def embedded(
    gathered: Gathered, question: str, embeddings: Embeddings
) -> tuple[Gathered, list[float]]:
    """Embed what has no vector yet, in one request, and the question.

    Raises:
        ConfigurationError: There are more or fewer vectors than texts.
    """
    texts = _texts(gathered)
    vectors = embeddings.embed_documents(texts) if texts else []
    return _with(gathered, texts, vectors), embeddings.embed_query(question)


async def aembedded(
    gathered: Gathered, question: str, embeddings: Embeddings
) -> tuple[Gathered, list[float]]:
    """Embed what has no vector yet without blocking the loop; otherwise like `embedded`."""
    texts = _texts(gathered)
    vectors = await embeddings.aembed_documents(texts) if texts else []
    return _with(gathered, texts, vectors), await embeddings.aembed_query(question)


def matched(texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """Return the vectors of some texts, one for each.

    Raises:
        ConfigurationError: There are more or fewer, so nobody knows which belongs to which.
    """
    if len(vectors) != len(texts):
        raise ConfigurationError(
            f"the embeddings returned {len(vectors)} vectors for {len(texts)} texts: they must "
            f"return one for each, in the order of the texts"
        )
    return vectors


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
    known = dict(zip(texts, matched(texts, vectors), strict=True))

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
