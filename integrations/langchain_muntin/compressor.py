"""Documents in, documents out: without near-duplicates, inside a budget, in a chosen order.

It needs langchain-core alone and does what the redundancy filter and the reordering of
langchain-community do. It keeps the better copy of two, and returns the documents it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from pydantic import ConfigDict, Field, PrivateAttr

from langchain_muntin._assembling.passages import ALIASES, aembedded, documents_of, embedded
from langchain_muntin._values.documents import RELEVANCE, candidate_of
from langchain_muntin._values.models import ESTIMATE, counter_of
from muntin.adapting import Ordering, PassagePolicy, VectorCache, check_given, construct
from muntin.config import ContextConfig
from muntin.passages import Gathered
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import Document

    from muntin.passages import Embedding
    from muntin.report import AssemblyReport

__all__ = ("BudgetCompressor",)

_SOURCE = "documents"


class BudgetCompressor(BaseDocumentCompressor):
    """Keep the documents that add something, as many as fit a token budget.

    Use it as any document compressor, for example in a `ContextualCompressionRetriever` or a
    `DocumentCompressorPipeline`; `RunnableLambda` makes a step of a chain of it. The best document
    is shortened if it alone is over the budget. `last_report` lists what happened to each document.

    Raises:
        ConfigurationError: A number is out of range, or a keyword is unknown.

    If not even a part of one document fits, it issues a `UserWarning`; with `strict=True` it raises
    `ContextWindowExceeded`.

    ```python
    from langchain_core.documents import Document
    from langchain_muntin import BudgetCompressor

    found = [Document("Parcels ship on weekdays at 9.", metadata={"relevance_score": 0.7}),
             Document("Parcels ship on weekdays at 9!", metadata={"relevance_score": 0.9}),
             Document("Depots close at 18.", metadata={"relevance_score": 0.5})]
    for document in BudgetCompressor(budget=20).compress_documents(found, "when?"):
        print(document.page_content)
    #> Parcels ship on weekdays at 9!
    #> Depots close at 18.
    ```
    """

    budget: int | None = Field(default=None, ge=1, strict=True)
    """Tokens the documents may take, joined by blank lines; `None` does not limit them.
    `max_tokens` is an alias."""
    top_k: int | None = Field(default=None, ge=1, strict=True)
    """Most documents; `None` takes all that fit. `k` and `top_n` are aliases."""
    dedup_threshold: float = Field(default=0.95, ge=0, allow_inf_nan=False)
    """Similarity from which one of two is a near-duplicate; above 1 none is."""
    mmr_lambda: float = Field(default=0.7, ge=0, le=1)
    """Relevance against diversity in [0, 1]; 1 is pure relevance."""
    shorten: bool = False
    """Whether the best document that does not fit is cut to what is left."""
    ordering: Ordering = "selection"
    """The best first, the strongest at both ends, or as they came."""
    embeddings: Embeddings | None = Field(default=None, repr=False)
    """Embeds documents and question, each text once; `None` compares words."""
    score: Any = Field(default=RELEVANCE, repr=False)
    """Where a document's score is: a metadata key or a function. Without one its rank counts."""
    counter: Any = Field(default=None, repr=False)
    """Counts tokens: a function of a text, or a model or its name; `None` estimates. `model` is an
    alias."""
    given: Any = Field(default=(), repr=False)
    """What the model has already, such as the messages of the conversation, or a function that
    returns it: documents in it are left out."""
    strict: bool = False
    """Whether it is an error, rather than a warning, when there are documents and none fits."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    _vectors: VectorCache = PrivateAttr(default_factory=VectorCache)
    _report: Any = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # type checkers see the signature of the fields

        def __init__(self, **fields: Any) -> None:
            construct(super().__init__, type(self), fields, _ALIASES)
            check_given(self.given)
            self._policy()

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the documents of the last call that ended; `None` before the first."""
        return self._report

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002 - nothing runs below this one
    ) -> Sequence[Document]:
        """Return the documents worth their tokens.

        Raises:
            ConfigurationError: The embeddings return more or fewer vectors than there are texts.
            ContextWindowExceeded: There are documents, none fits, and `strict` is true.
        """
        gathered, vector = embedded(self._read(documents), query, self.embeddings, self._vectors)
        return self._kept(gathered, query, vector)

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002 - nothing runs below this one
    ) -> Sequence[Document]:
        """Return the documents worth their tokens without blocking the event loop."""
        gathered, vector = await aembedded(
            self._read(documents), query, self.embeddings, self._vectors
        )
        return await off_loop(lambda: self._kept(gathered, query, vector), size=gathered.characters)

    def _read(self, documents: Sequence[Document]) -> Gathered:
        read = tuple(candidate_of(document, score=self.score) for document in documents)
        return Gathered(candidates={_SOURCE: read})

    def _kept(self, gathered: Gathered, query: str, vector: Embedding | None) -> Sequence[Document]:
        documents, chosen = documents_of(
            self._policy(), gathered, query, vector, strict=self.strict, given=self.given
        )
        self._report = chosen.report
        return documents

    def _policy(self) -> PassagePolicy:
        return PassagePolicy(
            budget=self.budget,
            counter=counter_of(self.counter) or ESTIMATE,
            config=ContextConfig(
                source_ratios={_SOURCE: 1.0},
                mmr_lambda=float(self.mmr_lambda),
                dedup_threshold=float(self.dedup_threshold),
                shorten=self.shorten,
            ),
            top_k=self.top_k,
            ordering=self.ordering,
        )


_ALIASES = {**ALIASES, "k": "top_k", "top_n": "top_k"}
