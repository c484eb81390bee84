"""Search and add in a store of past interactions, whatever its methods are called.

LangChain vector stores (`similarity_search`, `add_texts`), LlamaIndex indexes (`as_retriever`,
`insert`), their retrievers (read only), and plain stores (`search(query, top_k=)`,
`add(text, metadata=)`) are recognised by their methods, without importing a framework. Each
operation is a `Call` with a plain and perhaps an async way.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from muntin.errors import ConfigurationError, SourceError
from muntin.runtime import method_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.runtime import Call

__all__ = ("RecallStore", "StoreCalls", "result_text", "store_calls")


class StoreCalls(Protocol):
    """Make the calls for the two operations of a store."""

    def search(self, query: str, k: int) -> Call:
        """Return the call that finds the k entries nearest to a query."""
        ...

    def add(self, text: str, metadata: dict[str, Any], entry_id: str) -> Call:
        """Return the call that adds a text, under an id if the store takes ids."""
        ...


class RecallStore(Protocol):
    """The least a store needs: two methods."""

    def search(self, query: str, /, *, top_k: int) -> Any:
        """Return the entries nearest to a query, the nearest first."""
        ...

    def add(self, text: str, /, *, metadata: dict[str, Any]) -> Any:
        """Add a text."""
        ...


def store_calls(store: Any) -> StoreCalls:
    """Return the calls of a store, chosen by the methods it has.

    Raises:
        ConfigurationError: It has no method to search with.
    """
    if hasattr(store, "similarity_search"):
        return _VectorStore(store)
    if hasattr(store, "as_retriever"):
        return _Index(store)
    if hasattr(store, "search"):
        return _Plain(store)
    for verb in ("retrieve", "invoke"):
        if hasattr(store, verb):
            return _Retriever(store, verb)
    raise ConfigurationError(
        f"a store needs search(query, top_k=), similarity_search(query, k=), or as_retriever(); "
        f"{type(store).__name__} has none of them"
    )


def result_text(result: Any) -> str:
    """Return the text in what a store returned for one entry.

    Raises:
        SourceError: There is no text in it.
    """
    if isinstance(result, str):
        return result
    if isinstance(result, tuple):
        return result_text(next(iter(cast("tuple[Any, ...]", result)), None))
    if isinstance(result, Mapping):
        entry = cast("Mapping[str, Any]", result)
        found = [entry[key] for key in _TEXT_NAMES if key in entry]
    else:
        value: object = cast("object", result)
        found = [getattr(value, key) for key in _TEXT_NAMES if hasattr(value, key)]
    if found and isinstance(found[0], str):
        return found[0]
    kind = type(cast("object", result)).__name__
    raise SourceError("recall", f"returned a {kind} without page_content, text or content")


_TEXT_NAMES = ("page_content", "text", "content")


class _VectorStore:
    """A LangChain vector store."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def search(self, query: str, k: int) -> Call:
        return method_call(self._store, "similarity_search", query, k=k)

    def add(self, text: str, metadata: dict[str, Any], entry_id: str) -> Call:
        _needs(self._store, "add_texts")
        known = _takes(self._store.add_texts, "ids")
        ids: dict[str, Any] = {"ids": [entry_id]} if known else {}
        return method_call(self._store, "add_texts", [text], metadatas=[metadata], **ids)


class _Index:
    """A LlamaIndex index."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def search(self, query: str, k: int) -> Call:
        return method_call(self._index.as_retriever(similarity_top_k=k), "retrieve", query)

    def add(self, text: str, metadata: dict[str, Any], entry_id: str) -> Call:
        _needs(self._index, "insert")
        # An index exists only where its framework is loaded; the core never imports it.
        schema: Any = sys.modules.get("llama_index.core.schema")
        if schema is None:
            raise ConfigurationError(
                f"{type(self._index).__name__} looks like a LlamaIndex index, but LlamaIndex is "
                f"not loaded: give the store search() and add() instead"
            )
        document = schema.Document(text=text, metadata=metadata, id_=entry_id)
        return method_call(self._index, "insert", document)


class _Plain:
    """A store with `search` and `add`."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def search(self, query: str, k: int) -> Call:
        return method_call(self._store, "search", query, top_k=k)

    def add(self, text: str, metadata: dict[str, Any], entry_id: str) -> Call:
        del entry_id  # it is in the metadata; this kind of store takes no ids
        _needs(self._store, "add")
        return method_call(self._store, "add", text, metadata=metadata)


class _Retriever:
    """A retriever of either framework, which can search and not add."""

    def __init__(self, retriever: Any, verb: str) -> None:
        self._retriever = retriever
        self._verb = verb

    def search(self, query: str, k: int) -> Call:
        del k  # a retriever has its own k; the caller drops the surplus
        return method_call(self._retriever, self._verb, query)

    def add(self, text: str, metadata: dict[str, Any], entry_id: str) -> Call:
        del text, metadata, entry_id
        raise ConfigurationError(
            f"{type(self._retriever).__name__} is a retriever and cannot be added to: give the "
            f"vector store or index behind it to index interactions"
        )


def _needs(store: Any, verb: str) -> None:
    if not hasattr(store, verb):
        raise ConfigurationError(
            f"{type(store).__name__} has no {verb}(): interactions cannot be indexed in it"
        )


def _takes(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
