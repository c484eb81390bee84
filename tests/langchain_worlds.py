"""What tests of the LangChain adapter share: embedding, real retrievers, a small library."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ConfigDict, PrivateAttr

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun

__all__ = ("LIBRARY", "BM25Retriever", "WordEmbeddings", "library_store")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class WordEmbeddings(Embeddings):
    """Embed a text as the bag of its words: texts that share words are near."""

    size = 256

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * self.size
        for word in _words(text):
            vector[crc32(word.encode()) % self.size] += 1.0
        length = math.sqrt(sum(part * part for part in vector)) or 1.0
        return [part / length for part in vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


LIBRARY = [
    Document(id=f"d{at}", page_content=text, metadata={"page": at})
    for at, text in enumerate(
        (
            "Meals are capped at 80 per day, and no receipt is needed below 25.",
            "Hotels are capped at 500 per night; book through the portal.",
            "Flights above six hours may be booked in premium economy.",
            "Taxis are paid back with a receipt, tips up to ten percent.",
            "Expense reports are due on the fifth working day of the month.",
            "Meals are capped at 80 per day, and no receipt is needed under 25.",
            "Conference fees need the approval of your manager in advance.",
            "Rental cars are insured by the company; do not buy extra cover.",
        )
    )
]


def library_store() -> InMemoryVectorStore:
    """Put the library into a real vector store."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(LIBRARY)
    return store


class BM25Retriever(BaseRetriever):
    """Retrieve by Okapi BM25, as a user without langchain-community would write it."""

    documents: list[Document]
    k: int = 4

    model_config = ConfigDict(arbitrary_types_allowed=True)

    _index: Any = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        from rank_bm25 import BM25Okapi

        self._index = BM25Okapi([_words(document.page_content) for document in self.documents])

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        scores = self._index.get_scores(_words(query))
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: self.k]
        return [self.documents[at] for at in best]
