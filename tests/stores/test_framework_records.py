"""Records in the stores of LangGraph and LlamaIndex, in memory and in SQLite."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from llama_index.core.storage.kvstore import SimpleKVStore

from langchain_muntin import LangGraphRecords
from llama_index_muntin import KVStoreRecords
from muntin import AgentState, ConfigurationError, StateStore, ToolResultStore
from muntin.testing import RecordStoreSuite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from muntin.stores import RecordStore

_STORES: dict[tuple[type, Path], Any] = {}


def store_of(kind: type, folder: Path) -> Any:
    """The one store of a test, as a server would be."""
    return _STORES.setdefault((kind, folder), kind())


class TestLangGraphInMemory(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return LangGraphRecords(store_of(InMemoryStore, folder), namespace=("a", "b"), **limits)


class TestKVStoreInMemory(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return KVStoreRecords(store_of(SimpleKVStore, folder), **limits)


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        store.setup()
        yield store


def test_the_sqlite_store_of_langgraph_keeps_states_and_results(sqlite_store: SqliteStore) -> None:
    records = LangGraphRecords(sqlite_store, namespace=("acme",))
    results = ToolResultStore(records)
    states = StateStore(records, key="thread 1")
    key = results.put("NUL \0 and half \ud83d") or ""
    assert results.get(key) == "NUL \0 and half \ud83d"
    for number in range(5):
        states.update(lambda state, n=number: state.key_findings.append(f"f{n}"))
    assert len(states.load().key_findings) == 5
    assert states.load().revision == 5
    assert states.delete()


def test_namespaces_that_begin_alike_stay_apart() -> None:
    """A prefix search also finds `tenant-10` where `tenant-1` was meant."""
    store = InMemoryStore()
    one = LangGraphRecords(store, namespace=("tenant-1",))
    other = LangGraphRecords(store, namespace=("tenant-1", "records"))
    for number, records in enumerate((one, other)):
        records.put("k", f"{number}".encode(), expected=None)
        records.put(f"only-{number}", b"x")
    assert sorted(entry.key for entry in one.entries()) == ["k", "only-0"]
    assert sorted(entry.key for entry in other.entries()) == ["k", "only-1"]
    found = one.get("k")
    assert found is not None
    assert found.body == b"0"


def test_a_listing_of_many_records_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain_muntin.stores._PAGE", 7)
    records = LangGraphRecords(InMemoryStore())
    for number in range(30):
        records.put(f"k{number}", b"x")
    assert len(records.entries()) == 30
    assert len(asyncio.run(records.aentries())) == 30


def test_inside_a_graph_its_own_store_is_used() -> None:
    """The store is known only when the graph runs; a module makes its stores when it is loaded."""
    from langgraph.graph import StateGraph

    states = StateStore(LangGraphRecords(), key="shared")

    def node(value: dict[str, str]) -> dict[str, str]:
        states.update(lambda state: state.key_findings.append(value["text"]))
        return {"text": str(states.load().revision)}

    make_graph: Any = StateGraph  # a plain dict as state
    graph = make_graph(dict)
    graph.add_node("node", node)
    graph.set_entry_point("node")
    graph.set_finish_point("node")
    store = InMemoryStore()
    compiled = graph.compile(store=store)
    assert compiled.invoke({"text": "a"}) == {"text": "1"}
    assert compiled.invoke({"text": "b"}) == {"text": "2"}
    outside = StateStore(LangGraphRecords(store), key="shared")
    assert outside.load().key_findings == ["a", "b"]
    with pytest.raises(ConfigurationError, match="no graph is running"):
        states.save(AgentState())


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph",), "a", (5,)])
def test_a_namespace_that_the_store_would_refuse_is_refused_at_once(namespace: Any) -> None:
    with pytest.raises(ConfigurationError, match="namespace must be"):
        LangGraphRecords(InMemoryStore(), namespace=namespace)


def test_what_is_no_store_is_refused() -> None:
    wrong: Any = {"put": 1}
    with pytest.raises(ConfigurationError, match="store must be a BaseStore"):
        LangGraphRecords(wrong)
    with pytest.raises(ConfigurationError, match="kvstore must be a BaseKVStore"):
        KVStoreRecords(wrong)
    with pytest.raises(ConfigurationError, match="collection must be"):
        KVStoreRecords(SimpleKVStore(), collection="")
