"""Real vector stores through both frameworks: the order is right, copies are found, ids are named.

Stores disagree about scores: FAISS and Chroma return distances, Qdrant similarities, LanceDB and
pgvector one or the other by framework. A distance that is read as a similarity puts the farthest
passage first.
"""

# The stores' packages have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingImports=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
import importlib
import math
import uuid
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

import langchain_muntin
import llama_index_muntin
from muntin import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from muntin.report import AssemblyReport

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore"),  # of the stores' packages; ours are tested elsewhere
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
]

ASKED = "When is the harbour open?"
COSINES = {
    "The harbour opens at six on weekdays and at eight on Sundays.": 0.97,
    "Ferries wait outside until the harbour master answers the radio.": 0.9,
    "A berth costs forty crowns per night, electricity included.": 0.8,
    "Lund has two bakeries near the station that sell rye bread.": 0.6,
    "The museum shows nets, anchors and a model of the old pier.": 0.4,
    "Letters to the islands travel with the morning boat.": 0.2,
}
"""Texts with their cosine to the question: the order in which they have to come back."""
BEST, *_ = COSINES
WORDED_ALIKE = "The harbour opens at six on weekdays and at eight on Sundays!"
"""The words of the best text; a little farther from the question."""
MEANT_ALIKE = "From Monday to Friday ships may enter from 6 a.m., on Sundays two hours later."
"""The vector of the best text, and no words of it."""
ALIKE = {WORDED_ALIKE: 0.95, MEANT_ALIKE: 0.969}
IN_ORDER = list(COSINES)


def vector(text: str) -> list[float]:
    """Return a vector of length 1 with the cosine of the text to the question."""
    cosine = {ASKED: 1.0, **COSINES, **ALIKE}.get(text, 0.0)  # Qdrant tries "dummy_text"
    place = 1 + IN_ORDER.index(text) if text in IN_ORDER else 1
    made = [0.0] * 8
    made[0], made[place] = cosine, math.sqrt(max(1 - cosine * cosine, 0.0))
    return made


class LangChainVectors(Embeddings):
    """The vectors, as LangChain asks for them."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class LlamaVectors(BaseEmbedding):
    """The vectors, as LlamaIndex asks for them."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


def _installed(name: str) -> Any:
    return pytest.importorskip(name, reason=f"pip install {name} to test it")


def langchain_store(kind: str, folder: Path, texts: list[str], request: Any) -> Any:
    """Make a store of one kind, filled, through LangChain."""
    documents = [Document(text, id=None) for text in texts]
    made = LangChainVectors()
    if kind == "faiss":
        _installed("faiss")
        return _installed("langchain_community.vectorstores").FAISS.from_documents(documents, made)
    if kind == "chroma":
        store = _installed("langchain_chroma").Chroma
        return store.from_documents(documents, made, persist_directory=str(folder))
    if kind == "qdrant":
        store = _installed("langchain_qdrant").QdrantVectorStore
        return store.from_documents(documents, made, path=str(folder), collection_name="muntin")
    if kind == "lancedb":
        _installed("lancedb")
        store = _installed("langchain_community.vectorstores").LanceDB
        return store.from_documents(documents, made, uri=str(folder))
    url = request.getfixturevalue("postgres_url")
    store = _installed("langchain_postgres").PGVector
    engine = importlib.import_module("sqlalchemy").create_engine(
        url.replace("postgresql://", "postgresql+psycopg://")
    )
    request.addfinalizer(engine.dispose)
    return store.from_documents(
        documents,
        made,
        connection=engine,
        collection_name=request.node.name,
        use_jsonb=True,
    )


def llama_index_store(kind: str, folder: Path, request: Any) -> Any:
    """Make an empty store of one kind for LlamaIndex."""
    package = {"pgvector": "postgres"}.get(kind, kind)
    module = _installed(f"llama_index.vector_stores.{package}")
    if kind == "faiss":
        return module.FaissVectorStore(faiss_index=importlib.import_module("faiss").IndexFlatL2(8))
    if kind == "chroma":
        chroma = importlib.import_module("chromadb").PersistentClient(str(folder))
        return module.ChromaVectorStore(chroma_collection=chroma.create_collection("muntin"))
    if kind == "qdrant":
        client = importlib.import_module("qdrant_client").QdrantClient(path=str(folder))
        return module.QdrantVectorStore("muntin", client=client)
    if kind == "lancedb":
        return module.LanceDBVectorStore(uri=str(folder), table_name="muntin")
    host, port = request.getfixturevalue("postgres_url").split("@")[1].split("/")[0].split(":")
    store = module.PGVectorStore.from_params(
        host=host, port=port, user="postgres", password="-", database="postgres",
        table_name="muntin_nodes", embed_dim=8,
    )  # fmt: skip
    request.addfinalizer(lambda: asyncio.run(store.close()))
    return store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a short name for the store."""
    made = tmp_path / "s"
    made.mkdir()
    return made


KINDS = ("faiss", "chroma", "qdrant", "lancedb", "pgvector")
TEXTS = [*reversed(IN_ORDER), WORDED_ALIKE, MEANT_ALIKE]
"""What is stored, in an order that is wrong."""
LANGCHAIN_READS: dict[str, Callable[[Any], Any]] = {
    "retriever": lambda store: store.as_retriever(search_kwargs={"k": 8}),
    "pairs": lambda store: lambda question: store.similarity_search_with_score(question, k=8),
}


def _check(texts: list[str], report: AssemblyReport, *, vectors: bool) -> None:
    """Check order, copies and ids of what came out."""
    assert [text for text in texts if text in IN_ORDER] == IN_ORDER
    dropped = {one.preview: one for one in report.decisions if one.kind == "dropped"}
    copies = [WORDED_ALIKE, MEANT_ALIKE] if vectors else [WORDED_ALIKE]
    assert len(texts) == len(TEXTS) - len(copies)
    for copy in copies:
        assert copy not in texts
        (found,) = [one for preview, one in dropped.items() if copy.startswith(preview[:40])]
        assert found.reason == "near_duplicate"
        assert found.nearest in {one.id for one in report.decisions if one.kind == "kept"}
    ids = [one.id for one in report.decisions]
    assert all(ids)
    assert len(set(ids)) == len(TEXTS)


@pytest.mark.parametrize("reads", LANGCHAIN_READS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_store_through_langchain(
    kind: str, reads: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    """The farthest passage must not win, and one passage must not be placed three times."""
    store = langchain_store(kind, folder, TEXTS, request)
    source = LANGCHAIN_READS[reads](store)

    for vectors in (False, True):
        retriever = langchain_muntin.AssembledRetriever(
            sources={"rag": source},
            budget=2000,
            counter=count_tokens,
            embeddings=LangChainVectors() if vectors else None,
        )
        texts = [one.page_content for one in retriever.invoke(ASKED)]
        assert retriever.last_report is not None
        _check(texts, retriever.last_report, vectors=vectors)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_through_llama_index(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    """The farthest passage must not win, and one passage must not be placed three times."""
    store = llama_index_store(kind, folder, request)
    # Qdrant takes no other ids than UUIDs.
    nodes = [TextNode(text=text, id_=str(uuid.UUID(int=n))) for n, text in enumerate(TEXTS)]
    made = LlamaVectors()
    index = VectorStoreIndex(
        nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=made
    )
    found = index.as_retriever(similarity_top_k=8).retrieve(ASKED)

    for embed_model in (None, made):
        processor = llama_index_muntin.BudgetPostprocessor(
            budget=2000, counter=count_tokens, embed_model=embed_model
        )
        texts = [one.text for one in processor.postprocess_nodes(found, query_str=ASKED)]
        assert processor.last_report is not None
        carries = all(one.node.embedding is not None for one in found)
        _check(texts, processor.last_report, vectors=embed_model is not None or carries)
        named = {one.id for one in processor.last_report.decisions}
        assert named == {node.node_id for node in nodes}
