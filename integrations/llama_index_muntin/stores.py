"""Keep states, originals of tool results and shared caches in a key-value store of LlamaIndex."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.storage.kvstore.types import BaseKVStore

from muntin.errors import ConfigurationError
from muntin.stores import DocumentRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from muntin.stores import Documents

__all__ = ("KVStoreRecords",)


class KVStoreRecords(DocumentRecords):
    """Keep records in a `BaseKVStore`: PostgreSQL, Redis, MongoDB, or memory.

    Records go into one collection, the versions of a record that has them into a collection of its
    own. Give each tenant a collection of its own.

    Args:
        kvstore: Any `BaseKVStore`.
        collection: Name of the collection.
        max_bytes: Bytes of all contents, see `RecordStore`.
        max_age: Seconds after its last write at which a record is gone.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: The store is not a `BaseKVStore`, or the collection is empty.

    ```python
    from llama_index.core.storage.kvstore import SimpleKVStore

    from llama_index_muntin import KVStoreRecords
    from muntin import ToolResultStore

    results = ToolResultStore(KVStoreRecords(SimpleKVStore(), collection="acme-results"))
    print(results.get(results.put("a long result")))
    #> a long result
    ```
    """

    def __init__(
        self,
        kvstore: BaseKVStore,
        *,
        collection: str = "muntin",
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        if not isinstance(cast("object", kvstore), BaseKVStore):
            raise ConfigurationError(
                f"kvstore must be a BaseKVStore of LlamaIndex, got {type(kvstore).__name__}"
            )
        if not isinstance(cast("object", collection), str) or not collection:
            raise ConfigurationError(f"collection must be a name, got {collection!r}")
        self._kvstore: Any = kvstore  # its own types leave the documents open
        self._collection = collection
        self.name = f"{type(kvstore).__name__}, collection {collection!r}"

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Return one document of the group `""`, or None."""
        return self._kvstore.get(name, collection=self._collection)

    async def adocument(self, name: str) -> Mapping[str, Any] | None:
        """Return one document of the group `""`, or None."""
        return await self._kvstore.aget(name, collection=self._collection)

    def documents(self, group: str) -> Documents:
        """Return all documents of a group."""
        return self._kvstore.get_all(collection=self._place(group))

    async def adocuments(self, group: str) -> Documents:
        """Return all documents of a group."""
        return await self._kvstore.aget_all(collection=self._place(group))

    def put_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        """Store a document."""
        self._kvstore.put(name, document, collection=self._place(group))

    async def aput_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        """Store a document."""
        await self._kvstore.aput(name, document, collection=self._place(group))

    def delete_document(self, group: str, name: str) -> None:
        """Delete a document, if it is there."""
        self._kvstore.delete(name, collection=self._place(group))

    async def adelete_document(self, group: str, name: str) -> None:
        """Delete a document, if it is there."""
        await self._kvstore.adelete(name, collection=self._place(group))

    def _place(self, group: str) -> str:
        return f"{self._collection}.{group}" if group else self._collection
