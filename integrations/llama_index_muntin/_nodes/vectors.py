"""Find the vectors of retrieved nodes, which most stores do not hand out.

In this order: the one the node carries, the one a vector store still holds, one computed by an
embedding model. What has none is compared by its words, so duplicates are never simply missed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import MetadataMode

from llama_index_muntin._nodes.stored import StoredVectors
from muntin.adapting import VectorCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from muntin.passages import Embedding

__all__ = ("NodeVectors", "Vectors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Vectors of retrieved nodes."""

    of_nodes: list[Embedding | None]
    """One for each node; `None` where there is none."""
    note: str
    """Why the vector store returned none; `""` if it did, or if there is no store."""


class NodeVectors:
    """Look up or compute the vectors of nodes and of the question.

    Args:
        embed_model: A LlamaIndex embedding model; `None` computes none.
        vector_store: Where the nodes came from; `None` is not asked.

    Raises:
        ConfigurationError: The vector store cannot return vectors.
    """

    def __init__(self, embed_model: Any = None, vector_store: Any = None) -> None:
        self._model = embed_model
        self._stored = None if vector_store is None else StoredVectors(vector_store)
        self._warned = False
        self._computed = VectorCache()

    def found(self, nodes: Sequence[NodeWithScore]) -> Vectors:
        """Return the vectors of nodes."""
        absent = self._absent(nodes)
        held, note = self._stored.read(absent) if self._stored and absent else ({}, "")
        vectors = [_carried(found, held) for found in nodes]
        texts = self._missing(nodes, vectors)
        if texts:
            self._computed.remember(texts, self._model.get_text_embedding_batch(texts))
        return self._completed(nodes, vectors, note)

    async def afound(self, nodes: Sequence[NodeWithScore]) -> Vectors:
        """Return what `found` returns, without blocking the loop."""
        absent = self._absent(nodes)
        held, note = await self._stored.aread(absent) if self._stored and absent else ({}, "")
        vectors = [_carried(found, held) for found in nodes]
        texts = self._missing(nodes, vectors)
        if texts:
            self._computed.remember(texts, await self._model.aget_text_embedding_batch(texts))
        return self._completed(nodes, vectors, note)

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
        return {"_model": self._model, "_store": self._stored and self._stored.store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_model"], state["_store"])

    def _absent(self, nodes: Sequence[NodeWithScore]) -> list[str]:
        """List the ids of nodes that carry no vector, each once."""
        return list(dict.fromkeys(one.node.node_id for one in nodes if one.node.embedding is None))

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
        self, nodes: Sequence[NodeWithScore], vectors: list[Embedding | None], note: str
    ) -> Vectors:
        if self._model is not None:
            vectors = [
                self._computed.get(_text(found)) if vector is None else vector
                for found, vector in zip(nodes, vectors, strict=True)
            ]
        if note and not self._warned and None in vectors:
            self._warned = True
            warnings.warn(f"{note}; duplicates are found by words", UserWarning, stacklevel=5)
        return Vectors(of_nodes=vectors, note=note)


def _carried(found: NodeWithScore, held: Mapping[str, Embedding]) -> Embedding | None:
    own = found.node.embedding
    return held.get(found.node.node_id) if own is None else own


def _text(found: NodeWithScore) -> str:
    return found.node.get_content(metadata_mode=MetadataMode.EMBED)
