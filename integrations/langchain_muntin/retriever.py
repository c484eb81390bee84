"""Retrieve from several sources at once: one ranking without duplicates inside one budget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config, patch_config, set_config_context
from pydantic import ConfigDict, Field, PrivateAttr

from langchain_muntin._assembling.passages import ALIASES, aembedded, documents_of, embedded
from langchain_muntin._values.models import ESTIMATE, counter_of
from langchain_muntin.sources import sources_of
from muntin.adapting import (
    Ordering,
    PassagePolicy,
    VectorCache,
    check_given,
    check_retrieval,
    construct,
)
from muntin.config import ContextConfig  # noqa: TC001 - pydantic reads annotations
from muntin.errors import ConfigurationError
from muntin.passages import Scope, agather, gather, read_given
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from contextvars import Context

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from muntin.passages import AnyGiven, Embedding, Gathered
    from muntin.report import AssemblyReport

__all__ = ("AssembledRetriever",)


class AssembledRetriever(BaseRetriever):
    """Retrieve from several sources at once, as one ranking without duplicates inside one budget.

    Scores of different sources are put on one scale first, a passage that two sources return is
    kept once in its better copy, and the budget is divided by the ratios; what one source leaves
    goes to the others. The documents are the objects that the sources returned; a shortened one is
    a copy. `last_report` lists what happened to each document.

    Raises:
        ConfigurationError: A number is out of range, a keyword is unknown, or a source is not one.

    If documents were found and not even a part of one fits, it issues a `UserWarning`; with
    `strict=True` it raises `ContextWindowExceeded`.

    ```python
    from langchain_core.documents import Document
    from langchain_muntin import AssembledRetriever

    retriever = AssembledRetriever(
        sources={
            "manual": lambda question: [Document("Parcels ship on weekdays.", id="ship")],
            "memory": lambda question: [Document("Ada prefers the depot in Lund."),
                                        Document("Parcels ship on weekdays!")],
        },
        budget=100,
    )
    print([document.page_content for document in retriever.invoke("when do parcels ship?")])
    #> ['Parcels ship on weekdays.', 'Ada prefers the depot in Lund.']
    ```
    """

    sources: Any = Field(repr=False)
    """Sources by name: retrievers, runnables, functions, `ContextSource` objects or documents; or a
    list of `ContextSource` objects."""
    budget: int | None = Field(default=None, ge=1, strict=True)
    """Tokens the documents may take, joined by blank lines; `None` does not limit them.
    `max_tokens` is an alias."""
    k: int | None = Field(default=None, ge=1, strict=True)
    """Most documents; `None` takes all that fit. A `k` given to `invoke` wins."""
    ratios: Any = None
    """Share of each source; `None` takes those set in `config`, else equal shares."""
    config: ContextConfig | None = None
    """Options of selection and allocation; `None` takes the defaults."""
    scope: Scope | None = None
    """Scope in which sources search; a `scope` given to `invoke` wins."""
    ordering: Ordering = "selection"
    """The best first, the strongest at both ends, or source by source as they came."""
    embeddings: Embeddings | None = Field(default=None, repr=False)
    """Embeds documents and question, each text once; `None` uses scores and words."""
    counter: Any = Field(default=None, repr=False)
    """Counts tokens: a function of a text, or a model or its name; `None` estimates. `model` is an
    alias."""
    given: Any = Field(default=(), repr=False)
    """What the model has already, such as the messages of the conversation, or a function that
    returns it: documents in it are left out. A `given` passed to `invoke` wins."""
    strict: bool = False
    """Whether it is an error, rather than a warning, when documents were found and none fits."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    _vectors: VectorCache = PrivateAttr(default_factory=VectorCache)
    _report: Any = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # type checkers see the signature of the fields

        def __init__(self, **fields: Any) -> None:
            construct(super().__init__, type(self), fields, ALIASES)
            check_retrieval(sources_of(self.sources), self.ratios, self.config)
            check_given(self.given)
            self._policy(None)

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the documents of the last call that ended; `None` before the first."""
        return self._report

    def invoke(
        self,
        input: str,  # noqa: A002 - the name Runnable gives it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Retrieve documents; sources see the configuration of the run."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(super().invoke, input, config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - the name Runnable gives it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Retrieve documents without blocking the event loop."""
        with set_config_context(ensure_config(config)) as context:
            asking = super().ainvoke(input, config, **kwargs)
            return await asyncio.create_task(asking, context=context)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        scope: Scope | None = None,
        given: AnyGiven = None,
    ) -> list[Document]:
        policy, sources = self._policy(k), sources_of(self.sources)
        had = read_given(self.given if given is None else given)
        with _below(run_manager) as context:
            gathered = context.run(gather, sources, query, scope or self.scope)
        gathered, vector = embedded(gathered, query, self.embeddings, self._vectors)
        return self._placed(policy, gathered, query, vector, had)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        scope: Scope | None = None,
        given: AnyGiven = None,
    ) -> list[Document]:
        policy, sources = self._policy(k), sources_of(self.sources)
        had = read_given(self.given if given is None else given)
        with _below(run_manager) as context:
            asking = agather(sources, query, scope or self.scope)
            gathered = await asyncio.create_task(asking, context=context)
        gathered, vector = await aembedded(gathered, query, self.embeddings, self._vectors)
        return await off_loop(
            lambda: self._placed(policy, gathered, query, vector, had), size=gathered.characters
        )

    def _policy(self, k: int | None) -> PassagePolicy:
        """Return the policy of one call.

        Raises:
            ConfigurationError: `k` is below 1.
        """
        top_k = self.k if k is None else k
        if top_k is not None and top_k < 1:
            raise ConfigurationError(f"k must be at least 1, got {top_k}")
        return PassagePolicy(
            budget=self.budget,
            counter=counter_of(self.counter) or ESTIMATE,
            config=self.config,
            ratios=self.ratios,
            top_k=top_k,
            ordering=self.ordering,
        )

    def _placed(
        self,
        policy: PassagePolicy,
        gathered: Gathered,
        query: str,
        vector: Embedding | None,
        given: tuple[str, ...],
    ) -> list[Document]:
        documents, chosen = documents_of(
            policy, gathered, query, vector, strict=self.strict, given=given
        )
        self._report = chosen.report
        return documents


def _below(
    run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
) -> AbstractContextManager[Context]:
    """Open the context of runs below this one, with this run as their parent."""
    config = patch_config(ensure_config(), callbacks=run_manager.get_child())
    return set_config_context(config)
