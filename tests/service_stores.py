"""Record stores over real servers, for tests and for the worker processes that tests start.

    python tests/service_stores.py KIND URL NAMESPACE WORKER

As a program it is a worker: it adds 25 findings to a shared state, keeps an original, and prints a
line after each. Started again it goes on with what is missing.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from muntin import AgentState, StateStore, ToolResultStore, truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Generator

    from muntin.stores import RecordStore

__all__ = ("KINDS", "records")

KINDS = {
    "sqlalchemy": "postgres",
    "langgraph": "postgres",
    "llama_index-postgres": "postgres",
    "llama_index-redis": "redis",
}
"""Kinds of stores and the server each needs."""
UPDATES = 25


@contextmanager
def records(kind: str, url: str, namespace: str, **limits: Any) -> Generator[RecordStore]:
    """Open a store of a kind on a server."""
    if kind == "sqlalchemy":
        from sqlalchemy import create_engine

        from muntin.stores import SqlRecords

        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        try:
            yield SqlRecords(engine, namespace=namespace, **limits)
        finally:
            engine.dispose()
    elif kind == "langgraph":
        from langgraph.store.postgres import PostgresStore
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        from langchain_muntin import LangGraphRecords

        settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0}
        with ConnectionPool(
            url, min_size=1, max_size=4, kwargs={**settings, "row_factory": dict_row}, open=True
        ) as pool:
            server: Any = pool
            store = PostgresStore(server)
            store.setup()
            yield LangGraphRecords(store, namespace=(namespace,), **limits)
    elif kind == "llama_index-postgres":
        from llama_index.storage.kvstore.postgres import PostgresKVStore
        from sqlalchemy.pool import NullPool

        from llama_index_muntin import KVStoreRecords

        kvstore: Any = PostgresKVStore(
            table_name="kv",
            connection_string=url.replace("postgresql://", "postgresql+psycopg2://"),
            async_connection_string=url.replace("postgresql://", "postgresql+asyncpg://"),
            create_engine_kwargs={"poolclass": NullPool},  # a pool would outlive its event loop
        )
        try:
            yield KVStoreRecords(kvstore, collection=namespace, **limits)
        finally:
            if kvstore._engine is not None:
                kvstore._engine.dispose()
    else:
        from llama_index.storage.kvstore.redis import RedisKVStore

        from llama_index_muntin import KVStoreRecords

        redis: Any = RedisKVStore(redis_uri=url)
        try:
            yield KVStoreRecords(redis, collection=namespace, **limits)
        finally:
            redis._redis_client.close()


def work(store: RecordStore, worker: str) -> None:
    """Add the findings of a worker that are not there yet, and keep its original."""
    states = StateStore(store, key="shared", timeout=60)
    results = ToolResultStore(store)
    lock = threading.Lock()

    def report(line: str) -> None:
        with lock:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    shown = truncate_tool_result(
        "\n".join(f"{worker} step {n}" for n in range(500)), 60, store=results
    )
    report(f"kept {shown.splitlines()[0]}")

    def add(half: int) -> None:
        for number in range(UPDATES):
            name = f"{worker}.{half}.{number}"

            def change(state: AgentState, name: str = name) -> None:
                if name not in state.key_findings:
                    state.key_findings.append(name)

            states.update(change)
            report(f"added {name}")

    threads = [threading.Thread(target=add, args=(half,)) for half in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("done")


if __name__ == "__main__":
    _kind, _url, _namespace, _worker = sys.argv[1:]
    with records(_kind, _url, _namespace) as _store:
        work(_store, _worker)
