"""Keep states, originals of tool results and shared caches in a store of LangGraph."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError
from muntin.stores import DocumentRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langgraph.store.base import BaseStore

    from muntin.stores import Documents

__all__ = ("LangGraphRecords",)

_PAGE = 1_000
"""Items asked for at once; all versions of a record come in one page."""


class LangGraphRecords(DocumentRecords):
    """Keep records in a `BaseStore`: PostgreSQL, Redis, MongoDB, SQLite, or memory.

    Items go under the namespace with `records` or `versions` after it, and are not indexed for
    search. Give each tenant a namespace of its own.

    Args:
        store: Any `BaseStore`. `None` takes the one of the graph that runs, at each call.
        namespace: Labels of the namespace: no dots, not empty, the first not `langgraph`.
        max_bytes: Bytes of all contents, see `RecordStore`.
        max_age: Seconds after its last write at which a record is gone. The store's own `ttl` must
            not be shorter.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: The store is not a `BaseStore`, or the namespace is not valid.

    ```python
    from langgraph.store.memory import InMemoryStore

    from langchain_muntin import LangGraphRecords
    from muntin import AgentState, StateStore

    records = LangGraphRecords(InMemoryStore(), namespace=("acme", "states"))
    states = StateStore(records, key="thread-1")
    states.save(AgentState(goal="Move the archive"))
    print(states.load().goal)
    #> Move the archive
    ```
    """

    def __init__(
        self,
        store: BaseStore | None = None,
        *,
        namespace: tuple[str, ...] = ("muntin",),
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        if store is not None and not all(hasattr(store, verb) for verb in ("put", "search")):
            raise ConfigurationError(
                f"store must be a BaseStore of LangGraph or None, got {type(store).__name__}"
            )
        if not _is_namespace(namespace):
            raise ConfigurationError(
                f"namespace must be a tuple of labels without dots, the first not 'langgraph', got "
                f"{namespace!r}"
            )
        self._given = store
        self._namespace = namespace
        self.name = f"the LangGraph store, namespace {'.'.join(namespace)}"

    @property
    def _store(self) -> BaseStore:
        if self._given is not None:
            return self._given
        from langgraph.config import get_store

        try:
            return get_store()
        except RuntimeError as error:
            raise ConfigurationError(
                "LangGraphRecords was given no store, and no graph is running: give it one"
            ) from error

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Return one document of the group `""`, or None."""
        found = self._store.get(self._place(""), name)
        return None if found is None else found.value

    async def adocument(self, name: str) -> Mapping[str, Any] | None:
        """Return one document of the group `""`, or None."""
        found = await self._store.aget(self._place(""), name)
        return None if found is None else found.value

    def documents(self, group: str) -> Documents:
        """Return all documents of a group."""
        place = self._place(group)
        found: dict[str, Mapping[str, Any]] = {}
        for offset in range(0, 2**62, _PAGE):
            page = self._store.search(place, limit=_PAGE, offset=offset)
            # A prefix also matches longer namespaces, and in some stores longer labels.
            found.update({item.key: item.value for item in page if item.namespace == place})
            if len(page) < _PAGE:
                break
        return found

    async def adocuments(self, group: str) -> Documents:
        """Return all documents of a group."""
        place = self._place(group)
        found: dict[str, Mapping[str, Any]] = {}
        for offset in range(0, 2**62, _PAGE):
            page = await self._store.asearch(place, limit=_PAGE, offset=offset)
            found.update({item.key: item.value for item in page if item.namespace == place})
            if len(page) < _PAGE:
                break
        return found

    def put_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        """Store a document."""
        self._store.put(self._place(group), name, document, index=False)

    async def aput_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        """Store a document."""
        await self._store.aput(self._place(group), name, document, index=False)

    def delete_document(self, group: str, name: str) -> None:
        """Delete a document, if it is there."""
        self._store.delete(self._place(group), name)

    async def adelete_document(self, group: str, name: str) -> None:
        """Delete a document, if it is there."""
        await self._store.adelete(self._place(group), name)

    def _place(self, group: str) -> tuple[str, ...]:
        return (*self._namespace, "versions", group) if group else (*self._namespace, "records")


def _is_namespace(namespace: object) -> bool:
    if not isinstance(namespace, tuple) or not namespace:
        return False
    labels = cast("tuple[object, ...]", namespace)
    valid = all(isinstance(label, str) and label and "." not in label for label in labels)
    return valid and labels[0] != "langgraph"
