"""Make a source of a LlamaIndex retriever, and of whatever else stands where one may stand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle

from llama_index_muntin._conversion import candidates_of
from muntin.errors import ConfigurationError
from muntin.sources import CallableSource, ContextSource, source_named

if TYPE_CHECKING:
    from muntin.sources import OnError

__all__ = ("RetrieverSource", "source_of")


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
            node = TextNode(text="Meals are capped at 80.", id_="meals")
            return [NodeWithScore(node=node, score=0.9)]

    print([candidate.id for candidate in RetrieverSource("rag", Rules()).fetch("meals?")])
    #> ['meals']
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
            return retriever.retrieve(QueryBundle(query))

        def aask(query: str) -> object:
            return retriever.aretrieve(QueryBundle(query))

        super().__init__(
            name,
            ask,
            afetch=aask if is_async else None,
            read=partial(candidates_of, name=name),
            timeout=timeout,
            on_error=on_error,
        )


def source_of(name: str, given: object) -> ContextSource:
    """Make a source of whatever stands under a name.

    Args:
        name: Name of the source.
        given: A retriever, a `ContextSource`, or a function of the question that returns nodes,
            candidates or strings.

    Raises:
        ConfigurationError: It is none of these, or a source of another name.
    """
    if isinstance(given, ContextSource):
        return source_named(name, given)
    if isinstance(given, BaseRetriever):
        return RetrieverSource(name, given)
    if callable(given):
        return CallableSource(name, given, read=partial(candidates_of, name=name))
    raise ConfigurationError(
        f"source {name!r} is a {type(given).__name__}: give a retriever, a ContextSource or a "
        f"function of the question"
    )
