"""Find the vectors of retrieved nodes, which most stores do not hand out.

In this order: the one the node carries, the one a vector store still holds, one computed by an
embedding model. What has none is compared by its words, so duplicates are never simply missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.schema import MetadataMode

from muntin.adapting import VectorCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from muntin.passages import Embedding

__all__ = ("NodeVectors",)


class NodeVectors:
    """Look up or compute the vectors of nodes and of the question.

    Args:
        embed_model: A LlamaIndex embedding model; `None` computes none.
        vector_store: Where the nodes came from; `None` is not asked.
    """

    def __init__(self, embed_model: Any = None, vector_store: Any = None) -> None:
        self._model = embed_model
        self._store = vector_store
        self._computed = VectorCache()

    def found(self, nodes: Sequence[NodeWithScore]) -> list[Embedding | None]:
        """Return the vectors of nodes, `None` where there is none to be had."""
        vectors = [self._held(found) for found in nodes]
        texts = self._missing(nodes, vectors)
        if texts:
            self._computed.remember(texts, self._model.get_text_embedding_batch(texts))
        return self._completed(nodes, vectors)

    async def afound(self, nodes: Sequence[NodeWithScore]) -> list[Embedding | None]:
        """Return what `found` returns, without blocking the loop."""
        import asyncio

        vectors = (
            [self._held(found) for found in nodes]
            if self._store is None
            else await asyncio.to_thread(lambda: [self._held(found) for found in nodes])
        )
        texts = self._missing(nodes, vectors)
        if texts:
            self._computed.remember(texts, await self._model.aget_text_embedding_batch(texts))
        return self._completed(nodes, vectors)

    def question(self, query: QueryBundle | None) -> Embedding | None:
        """Return the vector of the question, or of what a transform wants embedded in its place."""
        if query is None or query.embedding is not None or self._model is None:
            return None if query is None else query.embedding
        if query.custom_embedding_strs:
            return self._model.get_agg_embedding_from_queries(query.custom_embedding_strs)
        return self._model.get_query_embedding(query.query_str)

    async def aquestion(self, query: QueryBundle | None) -> Embedding | None:
        """Return what `question` returns, without blocking the loop."""
        if query is None or query.embedding is not None or self._model is None:
            return None if query is None else query.embedding
        if query.custom_embedding_strs:
            return await self._model.aget_agg_embedding_from_queries(query.custom_embedding_strs)
        return await self._model.aget_query_embedding(query.query_str)

    def __getstate__(self) -> dict[str, Any]:
        return {"_model": self._model, "_store": self._store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_model"], state["_store"])

    def _held(self, found: NodeWithScore) -> Embedding | None:
        if found.node.embedding is not None:
            return found.node.embedding
        get = getattr(self._store, "get", None)
        if get is None:
            return None
        try:
            return get(found.node.node_id)
        except (KeyError, NotImplementedError):  # not in there, or a store that keeps no vectors
            return None

    def _missing(
        self, nodes: Sequence[NodeWithScore], vectors: Sequence[Embedding | None]
    ) -> list[str]:
        """List the texts that have to be embedded, each once."""
        if self._model is None:
            return []
        texts = [
            _text(found) for found, vector in zip(nodes, vectors, strict=True) if vector is None
        ]
        return self._computed.missing(texts)

    def _completed(
        self, nodes: Sequence[NodeWithScore], vectors: Sequence[Embedding | None]
    ) -> list[Embedding | None]:
        if self._model is None:
            return list(vectors)
        return [
            self._computed.get(_text(found)) if vector is None else vector
            for found, vector in zip(nodes, vectors, strict=True)
        ]


def _text(found: NodeWithScore) -> str:
    return found.node.get_content(metadata_mode=MetadataMode.EMBED)
