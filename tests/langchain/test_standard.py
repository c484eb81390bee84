"""LangChain's own suite for retrievers, run as any integration runs it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_tests")

from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_muntin import AssembledRetriever
from langchain_worlds import LIBRARY, BM25Retriever, library_store


class TestAssembledRetriever(RetrieversIntegrationTests):
    """A retriever that passes is one that existing chains can be given."""

    @property
    def retriever_constructor(self) -> type[AssembledRetriever]:
        return AssembledRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {
            "sources": {
                "rag": library_store().as_retriever(search_kwargs={"k": 5}),
                "words": BM25Retriever(documents=LIBRARY, k=5),
            }
        }

    @property
    def retriever_query_example(self) -> str:
        return "How much may I spend on meals?"
