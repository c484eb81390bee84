"""Documents in, the ones worth their tokens out: near-duplicates gone, inside a budget, reordered.

It does on langchain-core alone what the redundancy filter and the reordering of
langchain-community do, keeps the *better* copy of two, and returns the very documents it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from pydantic import ConfigDict, Field

from langchain_muntin._conversion import RELEVANCE, candidate_of, document_of
from langchain_muntin._documents import Ordering, Picking, arranged
from langchain_muntin._embedded import matched
from langchain_muntin._models import ModelFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import Document

    from muntin.passages import Candidate

__all__ = ("BudgetCompressor",)


class BudgetCompressor(BaseDocumentCompressor):
    """Keep the documents that say something new, as many as fit a token budget.

    Stands wherever a document compressor does, such as in a `ContextualCompressionRetriever` or a
    `DocumentCompressorPipeline`; `RunnableLambda` makes a step of a chain of it.

    ```python
    from langchain_core.documents import Document
    from langchain_muntin import BudgetCompressor

    found = [Document("Meals are capped at 80 per day.", metadata={"relevance_score": 0.7}),
             Document("Meals are capped at 80 per day!", metadata={"relevance_score": 0.9}),
             Document("Hotels are capped at 500.", metadata={"relevance_score": 0.5})]
    for document in BudgetCompressor(max_tokens=20).compress_documents(found, "meals?"):
        print(document.page_content)
    #> Meals are capped at 80 per day!
    #> Hotels are capped at 500.
    ```
    """

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens the documents may take, joined by blank lines; `None` does not limit them."""
    top_k: int | None = Field(default=None, ge=1)
    """Most documents; `None` takes all that fit."""
    dedup_threshold: float = 0.95
    """Similarity from which one of two is a near-duplicate; above 1 none is."""
    mmr_lambda: float = 0.7
    """Relevance against diversity in [0, 1]; 1 is pure relevance."""
    ordering: Ordering = "selection"
    """The best first, the strongest at both ends, or as they came."""
    embeddings: Embeddings | None = Field(default=None, repr=False)
    """Embeds documents and question; `None` compares words."""
    score: Any = Field(default=RELEVANCE, repr=False)
    """Where a document's score is: a metadata key or a function. Without one its rank counts."""
    counter: Any = Field(default=None, repr=False)
    """Counts tokens: a function of a text, or a model's name; `None` estimates."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002 - nothing runs below this one
    ) -> Sequence[Document]:
        """Return the documents worth their tokens.

        Raises:
            ConfigurationError: The embeddings return more or fewer vectors than there are texts.
        """
        texts = [document.page_content for document in documents]
        if self.embeddings is None or not texts:
            return self._picked(documents, None, None)
        vectors = matched(texts, self.embeddings.embed_documents(texts))
        return self._picked(documents, vectors, self.embeddings.embed_query(query))

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002 - nothing runs below this one
    ) -> Sequence[Document]:
        """Return the documents worth their tokens without blocking the loop."""
        texts = [document.page_content for document in documents]
        if self.embeddings is None or not texts:
            return self._picked(documents, None, None)
        vectors = matched(texts, await self.embeddings.aembed_documents(texts))
        return self._picked(documents, vectors, await self.embeddings.aembed_query(query))

    def _picked(
        self,
        documents: Sequence[Document],
        vectors: Sequence[Sequence[float]] | None,
        query_vector: list[float] | None,
    ) -> list[Document]:
        candidates: list[Candidate] = [
            candidate_of(
                document, score=self.score, embedding=None if vectors is None else vectors[at]
            )
            for at, document in enumerate(documents)
        ]
        picked = self._picking().pick(candidates, query_vector)
        return [document_of(candidates[at]) for at in arranged(picked, self.ordering)]

    def _picking(self) -> Picking:
        return Picking(
            max_tokens=self.max_tokens,
            top_k=self.top_k,
            mmr_lambda=self.mmr_lambda,
            dedup_threshold=self.dedup_threshold,
            counter=ModelFacts.of(self.counter).counter(),
        )
