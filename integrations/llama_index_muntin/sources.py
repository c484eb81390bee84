"""Make sources of LlamaIndex retrievers and of everything else a retriever is built from."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle

from llama_index_muntin._nodes import candidates_of
from muntin import adapting
from muntin.passages import CallableSource

if TYPE_CHECKING:
    from muntin.passages import Candidate, ContextSource, OnError

__all__ = ("Question", "RetrieverSource", "sources_of")


class RetrieverSource(CallableSource):
    """Make a source of a retriever.

    A retriever without an async search of its own is asked in a thread, so it never holds up the
    event loop; the base class would run it there.

    Args:
        name: Name of the source.
        retriever: Any `BaseRetriever`.
        timeout: Seconds to wait; `None` waits as long as it takes.
        on_error: What happens when it fails: `raise` ends the assembly, `skip` leaves it out.

    ```python
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index_muntin import RetrieverSource

    class Rules(BaseRetriever):
        def _retrieve(self, query_bundle):
            node = TextNode(text="Letters weigh 80 grams.", id_="letters")
            return [NodeWithScore(node=node, score=0.9)]

    print([candidate.id for candidate in RetrieverSource("rag", Rules()).fetch("letters?")])
    #> ['letters']
    ```
    """

    def __init__(
        self,
        name: str,
        retriever: BaseRetriever,
        *,
        timeout: float | None = None,
        on_error: OnError = "raise",
    ) -> None:
        name_of_search = "_aretrieve"  # asked by name: whether it was overridden, no more
        own = getattr(type(retriever), name_of_search)
        is_async = own is not getattr(BaseRetriever, name_of_search)

        def ask(query: str) -> object:
            return retriever.retrieve(_bundle_of(query))

        def aask(query: str) -> object:
            return retriever.aretrieve(_bundle_of(query))

        super().__init__(
            name,
            ask,
            afetch=aask if is_async else None,
            read=partial(candidates_of, name=name),
            timeout=timeout,
            on_error=on_error,
        )


class Question(str):
    """A question with the query bundle it came in: sources take text, retrievers the bundle.

    Query transforms put there what to embed in place of the question, and its vector.
    """

    __slots__ = ("bundle",)

    def __new__(cls, bundle: QueryBundle) -> Question:
        """Return the question of a bundle."""
        made = super().__new__(cls, bundle.query_str)
        made.bundle = bundle
        return made


def _bundle_of(query: str) -> QueryBundle:
    """Make a bundle of a question for one retriever alone: some write into it."""
    return copy.deepcopy(query.bundle) if isinstance(query, Question) else QueryBundle(query)


def sources_of(given: object) -> tuple[ContextSource, ...]:
    """Make sources of what an entry point takes as `sources`.

    Args:
        given: Retrievers, `ContextSource` objects or functions of the question, by name; or a list
            of `ContextSource` objects. A function returns nodes, candidates or strings.

    Raises:
        ConfigurationError: It is none of these, or a source has another name.
    """
    return adapting.sources_of(given, adapt=_adapted, read=_read)


def _adapted(name: str, given: Any) -> ContextSource | None:
    return RetrieverSource(name, given) if isinstance(given, BaseRetriever) else None


def _read(name: str, found: Any) -> list[Candidate]:
    return candidates_of(found, name=name)
