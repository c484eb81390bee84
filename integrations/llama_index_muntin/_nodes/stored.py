"""Read the vectors of nodes from the vector store they came from.

`SimpleVectorStore` returns a vector by its id. Most integrations return nodes by their ids, some
with vectors (Qdrant, Postgres, LanceDB, Milvus), some without (Chroma). Others can do neither
(FAISS, Pinecone). A store that returns nothing is reported, because duplicates are then found by
words alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llama_index.core.schema import BaseNode

    from muntin.passages import Embedding

__all__ = ("StoredVectors",)

_CANNOT = (NotImplementedError, ValueError)
"""What integrations raise if they cannot return nodes by their ids."""


class StoredVectors:
    """Read vectors by node id.

    Args:
        store: A vector store of LlamaIndex.

    Raises:
        ConfigurationError: It has no method that returns nodes or vectors by id.
    """

    def __init__(self, store: Any) -> None:
        self.store = store
        self._name = type(store).__name__
        self._has_get = callable(getattr(store, "get", None))
        if not self._has_get and not _overrides(store, "get_nodes"):
            raise ConfigurationError(
                f"vector_store must return vectors by node id (get or get_nodes), which "
                f"{self._name} cannot: pass embed_model= to compute them, or leave vector_store out"
            )

    def read(self, ids: Sequence[str]) -> tuple[dict[str, Embedding], str]:
        """Return the vectors by id, and a note if the store returned none."""
        if self._has_get:
            return self._noted(ids, self._each(ids))
        try:
            found = self.store.get_nodes(node_ids=list(ids))
        except _CANNOT as error:
            return {}, self._cannot(error)
        return self._noted(ids, _vectors(found))

    async def aread(self, ids: Sequence[str]) -> tuple[dict[str, Embedding], str]:
        """Return what `read` returns, without blocking the loop."""
        if self._has_get or not _overrides(self.store, "aget_nodes"):
            return await asyncio.to_thread(self.read, ids)
        try:
            found = await self.store.aget_nodes(node_ids=list(ids))
        except _CANNOT as error:
            return {}, self._cannot(error)
        return self._noted(ids, _vectors(found))

    def _each(self, ids: Iterable[str]) -> dict[str, Embedding]:
        vectors: dict[str, Embedding] = {}
        for one in ids:
            try:
                vector = self.store.get(one)
            except KeyError:  # the node is not in this store
                continue
            if vector is not None:
                vectors[one] = vector
        return vectors

    def _noted(
        self, ids: Sequence[str], vectors: dict[str, Embedding]
    ) -> tuple[dict[str, Embedding], str]:
        if vectors or not ids:
            return vectors, ""
        return {}, (
            f"{self._name} returned no vector for any of {len(ids)} nodes: it returns nodes "
            f"without vectors, or the nodes are not in it"
        )

    def _cannot(self, error: Exception) -> str:
        return f"{self._name} returned no vectors: {error}"


def _vectors(nodes: Iterable[BaseNode]) -> dict[str, Embedding]:
    return {node.node_id: node.embedding for node in nodes if node.embedding is not None}


def _overrides(store: Any, name: str) -> bool:
    """Return whether a store has its own method, and not the one of the base class."""
    kind = cast("object", type(store))
    own: Any = getattr(kind, name, None)
    return own is not None and own is not getattr(BasePydanticVectorStore, name)
