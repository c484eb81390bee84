"""Several sources as one retriever: one budget, nothing said twice, the best first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import set_config_context
from pydantic import ConfigDict, Field

from langchain_muntin._conversion import document_of
from langchain_muntin._documents import Ordering, arranged, within
from langchain_muntin._embedded import aembedded, embedded
from langchain_muntin._given import standing_sources
from langchain_muntin._models import ModelFacts
from muntin.candidates import Scope  # noqa: TC001 - pydantic reads annotations
from muntin.config import ContextConfig
from muntin.ranking import rank
from muntin.sources import agather, gather

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document

    from muntin.sources import Gathered

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

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        scope: Scope | None = None,
    ) -> list[Document]:
        sources, whose = standing_sources(self.sources), scope or self.scope
        with set_config_context({"callbacks": run_manager.get_child()}) as context:
            gathered = context.run(gather, sources, query, whose)
        vector = None
        if self.embeddings is not None:
            gathered, vector = embedded(gathered, query, self.embeddings)
        return self._picked(gathered, vector, k or self.k)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        scope: Scope | None = None,
    ) -> list[Document]:
        sources, whose = standing_sources(self.sources), scope or self.scope
        with set_config_context({"callbacks": run_manager.get_child()}) as context:
            asking = agather(sources, query, whose)
            gathered = await asyncio.create_task(asking, context=context)
        vector = None
        if self.embeddings is not None:
            gathered, vector = await aembedded(gathered, query, self.embeddings)
        return self._picked(gathered, vector, k or self.k)

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
