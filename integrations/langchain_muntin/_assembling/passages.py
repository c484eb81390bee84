"""What the retriever and the compressor share: aliases, vectors, choosing documents."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from langchain_muntin._values.documents import document_of
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from muntin.adapting import PassagePolicy, Retrieved, VectorCache
    from muntin.passages import AnyGiven, Embedding, Gathered

__all__ = ("ALIASES", "aembedded", "documents_of", "embedded")

ALIASES = {"max_tokens": "budget", "model": "counter", "order": "ordering"}
"""Aliases (earlier names and names of other tools) and the argument each of them means."""


def embedded(
    gathered: Gathered, question: str, embeddings: Embeddings | None, cache: VectorCache
) -> tuple[Gathered, Embedding | None]:
    """Add the vectors of passages, computing each once, and return the vector of the question.

    Raises:
        ConfigurationError: There are more or fewer vectors than texts.
    """
    if embeddings is None:
        return gathered, None
    texts = cache.missing_of(gathered)
    if texts:
        cache.remember(texts, embeddings.embed_documents(texts))
    return cache.added_to(gathered), embeddings.embed_query(question)


async def aembedded(
    gathered: Gathered, question: str, embeddings: Embeddings | None, cache: VectorCache
) -> tuple[Gathered, Embedding | None]:
    """Do what `embedded` does without blocking the event loop."""
    if embeddings is None:
        return gathered, None
    texts = cache.missing_of(gathered)
    vectors = await embeddings.aembed_documents(texts) if texts else []
    asked = await embeddings.aembed_query(question)

    def added() -> Gathered:
        cache.remember(texts, vectors)
        return cache.added_to(gathered)

    return await off_loop(added, size=gathered.characters), asked


def documents_of(
    policy: PassagePolicy,
    gathered: Gathered,
    question: str,
    vector: Embedding | None,
    *,
    strict: bool,
    given: AnyGiven = (),
) -> tuple[list[Document], Retrieved]:
    """Choose documents; warn or raise when some were found and none of them fits.

    Raises:
        ContextWindowExceeded: None of them fits, and `strict` is true.
    """
    chosen = policy.choose(gathered, question, query_embedding=vector, given=given)
    if chosen.shortfall is not None:
        if strict:
            raise chosen.shortfall
        warnings.warn(
            f"no document fits: {chosen.shortfall}. The next step gets none; raise the budget, or "
            f"give strict=True to make this an error",
            UserWarning,
            stacklevel=2,
        )
    return [document_of(candidate) for candidate in chosen.candidates], chosen
