"""Several sources as one retriever: one budget, nothing said twice, the best first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config, patch_config, set_config_context
from pydantic import ConfigDict, Field

from langchain_muntin._conversion import document_of
from langchain_muntin._documents import Ordering, arranged, within
from langchain_muntin._embedded import aembedded, embedded
from langchain_muntin._given import standing_sources
from langchain_muntin._models import ModelFacts
from muntin.config import ContextConfig
from muntin.errors import ConfigurationError
from muntin.passages import Scope, agather, gather, rank

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from contextvars import Context

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from muntin.passages import Gathered

__all__ = ("AssembledRetriever",)


class AssembledRetriever(BaseRetriever):
    """Retrieve from several sources at once, as one ranking without repeats inside one budget.

    Scores of different sources are put on one scale first, what two of them say is kept once, and
    the better copy stays. The documents are the very ones the sources returned.

    ```python
    from langchain_core.documents import Document
    from langchain_muntin import AssembledRetriever

    retriever = AssembledRetriever(
        sources={
            "rag": lambda question: [Document("Meals are capped at 80.", id="meals")],
            "memory": lambda question: [Document("Ada is a vegetarian."),
                                        Document("Meals are capped at 80!")],
        },
        max_tokens=100,
    )
    print([document.page_content for document in retriever.invoke("meals?")])
    #> ['Ada is a vegetarian.', 'Meals are capped at 80.']
    ```
    """

    sources: Any = Field(repr=False)
    """Sources by name, or a list of `ContextSource` objects."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens the documents may take, joined by blank lines; `None` does not limit them."""
    k: int | None = Field(default=None, ge=1)
    """Most documents; `None` takes all that fit. A `k` given to `invoke` wins."""
    config: ContextConfig | None = None
    """Knobs of selection; its ratios are not read. `None` takes the defaults."""
    scope: Scope | None = None
    """For whom sources are asked; a `scope` given to `invoke` wins."""
    ordering: Ordering = "selection"
    """The best first, the strongest at both ends, or source by source as they came."""
    embeddings: Embeddings | None = Field(default=None, repr=False)
    """Embeds documents and question; `None` goes by scores and words."""
    counter: Any = Field(default=None, repr=False)
    """Counts tokens: a function of a text, or a model's name; `None` estimates."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

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
        """Retrieve documents without blocking the loop."""
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
    ) -> list[Document]:
        most, sources, whose = self._most(k), standing_sources(self.sources), scope or self.scope
        with _below(run_manager) as context:
            gathered = context.run(gather, sources, query, whose)
        vector = None
        if self.embeddings is not None:
            gathered, vector = embedded(gathered, query, self.embeddings)
        return self._picked(gathered, vector, most)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        scope: Scope | None = None,
    ) -> list[Document]:
        most, sources, whose = self._most(k), standing_sources(self.sources), scope or self.scope
        with _below(run_manager) as context:
            asking = agather(sources, query, whose)
            gathered = await asyncio.create_task(asking, context=context)
        vector = None
        if self.embeddings is not None:
            gathered, vector = await aembedded(gathered, query, self.embeddings)
        return self._picked(gathered, vector, most)

    def _most(self, k: int | None) -> int | None:
        """Return how many documents are wanted at most; `None` for all that fit."""
        most = self.k if k is None else k
        if most is not None and most < 1:
            raise ConfigurationError(f"k must be at least 1, not {most}")
        return most

    def _picked(
        self, gathered: Gathered, vector: list[float] | None, k: int | None
    ) -> list[Document]:
        config = self.config or ContextConfig()
        ranking = rank(gathered.candidates, config, query_embedding=vector)
        picked = list(ranking.order)
        if self.max_tokens is not None:
            counter = ModelFacts.of(self.counter).counter()
            texts = [ranking.offers[at].candidate.content for at in picked]
            picked = [picked[at] for at in within(texts, self.max_tokens, counter, most=k)]
        return [
            document_of(ranking.offers[at].candidate) for at in arranged(picked[:k], self.ordering)
        ]


def _below(
    run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
) -> AbstractContextManager[Context]:
    """Open the context of runs below this one: what it was told, and this run as their parent."""
    config = patch_config(ensure_config(), callbacks=run_manager.get_child())
    return set_config_context(config)
