"""Vectors that a vector store holds are used, whatever method it has, or their absence is said."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult
from pydantic import Field

from llama_doubles import found
from llama_index_muntin import BudgetPostprocessor
from muntin import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

TEXTS = ["Parcels ship on weekdays.", "On workdays packages leave.", "Ada lives in Lund."]
VECTORS = {"n0": [1.0, 0.0], "n1": [0.999, 0.02], "n2": [0.0, 1.0]}


class Integration(BasePydanticVectorStore):
    """A store that returns neither nodes nor vectors by id, as FAISS."""

    stores_text: bool = True
    asked: list[list[str]] = Field(default_factory=list[list[str]])

    @property
    def client(self) -> Any:
        return None

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Nothing to delete."""

    def query(self, query: Any, **_: Any) -> VectorStoreQueryResult:
        return VectorStoreQueryResult()


class WithVectors(Integration):
    """A store that returns nodes with their vectors in an order of its own, as Qdrant."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        self.asked.append(list(node_ids))
        return [
            TextNode(text="?", id_=one, embedding=VECTORS[one])
            for one in sorted(VECTORS, reverse=True)
            if one in node_ids
        ]


class WithAsyncVectors(WithVectors):
    """A store with an async method of its own."""

    async def aget_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return self.get_nodes(node_ids)


class WithoutVectors(Integration):
    """A store that returns nodes without their vectors, as Chroma."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        self.asked.append(list(node_ids))
        return [TextNode(text="?", id_=one) for one in node_ids]


class NotById(Integration):
    """A store that finds nodes by a filter alone, as Pinecone."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        raise ValueError("Getting nodes by node id not supported")


@pytest.mark.parametrize("kind", [WithVectors, WithAsyncVectors])
def test_vectors_of_an_integration_find_what_shares_no_word(
    kind: type[Integration], entry_point: EntryPoint
) -> None:
    """Only `SimpleVectorStore` was asked; with all others `vector_store` had no effect."""
    store = kind()
    nodes = found(*TEXTS)
    nodes[0].node.embedding = VECTORS["n0"]
    processor = BudgetPostprocessor(budget=500, vector_store=store, similarity="embedding")
    kept: Any = entry_point.call(processor, "postprocess_nodes", nodes, query_str="?")

    assert [one.node.node_id for one in kept] == ["n0", "n2"]
    assert store.asked == [["n1", "n2"]], "one request, without the node that has its vector"
    assert kept[1].node.embedding is None, "the vector is only compared"


@pytest.mark.parametrize(
    ("kind", "why"),
    [(WithoutVectors, "returned no vector for any of 3 nodes"), (NotById, "not supported")],
)
def test_a_store_that_returns_no_vectors_is_reported(
    kind: type[Integration], why: str, entry_point: EntryPoint
) -> None:
    """Duplicates were found by words alone, and nothing said so."""
    processor = BudgetPostprocessor(budget=500, vector_store=kind())
    with pytest.warns(UserWarning, match=why):
        entry_point.call(processor, "postprocess_nodes", found(*TEXTS), query_str="?")
    report = processor.last_report
    assert report is not None
    assert any(why in note for note in report.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once, not at every question
        entry_point.call(processor, "postprocess_nodes", found(*TEXTS), query_str="?")


@pytest.mark.parametrize("store", [Integration(), object()], ids=["not overridden", "no store"])
def test_a_store_that_cannot_return_vectors_is_refused(store: Any) -> None:
    """An argument without an effect is believed to have one."""
    with pytest.raises(ConfigurationError, match=r"get or get_nodes.*embed_model="):
        BudgetPostprocessor(budget=500, vector_store=store)
