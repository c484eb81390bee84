"""Records in SQL databases: sync and async engines, in one transaction, tenants apart."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from muntin import (
    AgentState,
    ConfigurationError,
    StateConflictError,
    StateCorruptError,
    StateError,
    StateStore,
    ToolResultStore,
)
from muntin.stores import RecordStore, SqlRecords
from muntin.testing import RecordStoreSuite

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine


def engine_of(path: Path) -> Engine:
    """An engine over a SQLite file; it keeps no connection open between calls."""
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)

    # The driver would begin a transaction only at the first write, and then fail at once where
    # another writer is at work.
    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class TestSqlAlchemy(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return SqlRecords(engine_of(folder / "records.db"), **limits)


def test_an_async_engine_serves_async_methods_and_worker_threads(tmp_path: Path) -> None:
    """A conversation is fitted in a worker thread, and its originals go to the same database."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}", poolclass=NullPool)
    records = SqlRecords(engine)
    states, results = StateStore(records, key="thread"), ToolResultStore(records)

    async def go() -> str:
        await records.acreate_table()
        await states.asave(AgentState(goal="g"))
        await states.aupdate(lambda state: state.key_findings.append("f"))
        assert (await states.aload()).key_findings == ["f"]
        key = await asyncio.to_thread(results.put, "from a thread")
        with pytest.raises(ConfigurationError, match="the engine is async"):
            results.put("from the loop")
        found = await results.aget(str(key))
        await engine.dispose()
        return found

    assert asyncio.run(go()) == "from a thread"
    with pytest.raises(ConfigurationError, match="the engine is async"):
        states.load()


def test_namespaces_do_not_see_each_other(tmp_path: Path) -> None:
    """A tenant that learns the id of another tenant's result must not read it."""
    engine = engine_of(tmp_path / "records.db")
    one, other = (ToolResultStore(SqlRecords(engine, namespace=f"tenant-{n}")) for n in (1, 2))
    key = one.put("secret of tenant 1") or ""
    assert key in one
    assert key not in other
    assert other.delete(key) is False
    assert other.records.entries() == []
    assert other.records.evict() == 0
    assert one.get(key) == "secret of tenant 1"


def test_a_refused_write_changes_nothing(tmp_path: Path) -> None:
    records = SqlRecords(engine_of(tmp_path / "records.db"))
    records.put("k", b"one", expected=None, also={"k.previous": b"zero"})
    with pytest.raises(StateConflictError):
        records.put("k", b"late", expected="another", also={"k.previous": b"late"})
    previous = records.get("k.previous")
    assert previous is not None
    assert previous.body == b"zero"


def test_rows_that_another_program_changed_are_reported(tmp_path: Path) -> None:
    engine = engine_of(tmp_path / "records.db")
    records = SqlRecords(engine)
    for value in ("changed", b"changed"):
        records.put("k", b"original")
        with engine.begin() as connection:
            connection.execute(text("UPDATE muntin_records SET body = :body"), {"body": value})
        with pytest.raises(StateCorruptError, match="damaged"):
            records.get("k")


def test_a_database_that_cannot_be_reached_is_a_state_error(tmp_path: Path) -> None:
    records = SqlRecords(create_engine(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder.db'}"))
    with pytest.raises(StateError, match="cannot read muntin_records in sqlite"):
        records.get("k")
    with pytest.raises(StateError, match="unable to open database file"):
        StateStore(records).save(AgentState())


def test_errors_show_neither_the_password_nor_the_contents() -> None:
    """Errors go to logs that many people read."""
    engine = create_engine("postgresql+psycopg://u:hunter2@127.0.0.1:9/none")
    results = ToolResultStore(SqlRecords(engine))
    with pytest.raises(StateError) as caught:
        results.put("a secret result")
    assert "hunter2" not in str(caught.value)
    assert "a secret result" not in str(caught.value)


@pytest.mark.parametrize("wrong", ["sqlite://", None, 5])
def test_what_is_no_engine_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="engine must be"):
        SqlRecords(wrong)
    with pytest.raises(ConfigurationError, match="table must be"):
        SqlRecords(create_engine("sqlite://"), table="a b")
    with pytest.raises(ConfigurationError, match="1 to 255 bytes"):
        SqlRecords(create_engine("sqlite://"), namespace="")
