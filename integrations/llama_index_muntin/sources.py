"""Make a source of a LlamaIndex retriever, and of whatever else stands where one may stand."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle

from llama_index_muntin._nodes import candidates_of
from muntin.errors import ConfigurationError
from muntin.passages import CallableSource, ContextSource, source_named

if TYPE_CHECKING:
    from muntin.passages import OnError

__all__ = ("Question", "RetrieverSource", "source_of")


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
    """A question that knows the bundle it came in: a source takes text, a retriever takes more.

    Query transforms leave what is to be embedded instead of the question there, and its vector.
    """

    __slots__ = ("bundle",)

    def __new__(cls, bundle: QueryBundle) -> Question:
        """Take the question out of a bundle."""
        made = super().__new__(cls, bundle.query_str)
        made.bundle = bundle
        return made


def _bundle_of(query: str) -> QueryBundle:
    """Make a bundle of a question for one retriever alone: some write into it."""
    return copy.deepcopy(query.bundle) if isinstance(query, Question) else QueryBundle(query)


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
