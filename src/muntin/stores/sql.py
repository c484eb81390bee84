"""Records as rows of one table in any database that SQLAlchemy reaches."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar, cast

from muntin.errors import ConfigurationError, StateConflictError
from muntin.stores.base import RecordStore
from muntin.stores.record import ANY, Entry, Expected, Record, check_key, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Engine, Table
    from sqlalchemy.ext.asyncio import AsyncEngine

    from muntin.runtime import CallFlow

__all__ = ("SqlRecords",)

_ResultT = TypeVar("_ResultT")

_TRIES = 5
"""Times a write is tried whose row another writer inserts or deletes at the same moment."""


class SqlRecords(RecordStore):
    """Keep records in a table of a database: PostgreSQL, MySQL, SQLite, or another of SQLAlchemy's.

    Needs the extra `sql`. A write and its `also` records are one transaction. The table is made
    at the first write if it is missing; `create_table` does so ahead of time. Any number of
    namespaces share a table, and none of them can read another.

    Args:
        engine: An `Engine` or an `AsyncEngine`, made and disposed of by the caller. With an
            `AsyncEngine` the plain methods work in threads other than that of the event loop in
            which the async ones were used first, so that work in a worker thread can store.
        namespace: Separates tenants and kinds: 1 to 255 bytes of UTF-8.
        table: Name of the table: letters, digits and underscores.
        schema: Schema of the table; `None` takes the database's default.
        max_bytes: Bytes of all contents of the namespace, see `RecordStore`.
        max_age: Seconds after its last write at which a record is gone.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: SQLAlchemy is not installed, or an argument is not as described.

    ```python
    from sqlalchemy import create_engine
    from muntin import AgentState, StateStore
    from muntin.stores import SqlRecords

    engine = create_engine("sqlite://")
    states = StateStore(SqlRecords(engine, namespace="states"), key="thread-1")
    states.save(AgentState(goal="Move the archive"))
    print(states.load().goal)
    #> Move the archive
    ```
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        *,
        namespace: str = "muntin",
        table: str = "muntin_records",
        schema: str | None = None,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        try:
            from sqlalchemy import Engine
            from sqlalchemy.ext.asyncio import AsyncEngine
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "SqlRecords needs SQLAlchemy: pip install 'muntin[sql]'"
            ) from error
        if not isinstance(cast("object", engine), (Engine, AsyncEngine)):
            raise ConfigurationError(
                f"engine must be an SQLAlchemy Engine or AsyncEngine, got {type(engine).__name__}: "
                f"make one with create_engine(url) or create_async_engine(url)"
            )
        if not re.fullmatch(r"[A-Za-z_]\w{0,62}", table, re.ASCII):
            raise ConfigurationError(
                f"table must be a name of letters, digits and underscores, got {table!r}"
            )
        self.namespace = check_key(namespace)
        self.name = f"{table} in {engine.url.render_as_string()}, namespace {namespace!r}"
        self._plain_engine = engine if isinstance(engine, Engine) else None
        self._async_engine = engine if isinstance(engine, AsyncEngine) else None
        self._table = _table(table, schema)
        self._is_made = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def create_table(self) -> None:
        """Make the table if it is missing.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database refused.
        """
        self._run(self._make)

    async def acreate_table(self) -> None:
        """Make the table if it is missing; see `create_table`."""
        await self._arun(self._make)

    def read(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        return self._run(lambda connection: self._read(connection, key))

    async def aread(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        return await self._arun(lambda connection: self._read(connection, key))

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record; see `RecordStore.write`."""
        self._prepare()
        return self._run(lambda one: self._write(one, key, body, expected, also))

    async def awrite(
        self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]
    ) -> str:
        """Store a record; see `RecordStore.write`."""
        await self._aprepare()
        return await self._arun(lambda one: self._write(one, key, body, expected, also))

    def remove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        return self._run(lambda connection: self._remove(connection, key))

    async def aremove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        return await self._arun(lambda connection: self._remove(connection, key))

    def listing(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        return self._run(self._listing)

    async def alisting(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        return await self._arun(self._listing)

    def sweep(self) -> tuple[int, int]:
        """Remove what is beyond the limits in one transaction."""
        return self._run(self._sweep)

    async def asweep(self) -> tuple[int, int]:
        """Remove what is beyond the limits in one transaction."""
        return await self._arun(self._sweep)

    # --- statements ------------------------------------------------------------------------------

    def _make(self, connection: Connection) -> None:
        self._table.create(connection, checkfirst=True)

    def _prepare(self) -> None:
        """Make the table before the first write; two workers may do so at once."""
        from sqlalchemy.exc import DBAPIError

        if self._is_made:
            return
        try:
            self._run(self._make)
        except DBAPIError:
            if not self._run(self._ready):
                raise

    async def _aprepare(self) -> None:
        from sqlalchemy.exc import DBAPIError

        if self._is_made:
            return
        try:
            await self._arun(self._make)
        except DBAPIError:
            if not await self._arun(self._ready):
                raise

    def _ready(self, connection: Connection) -> bool:
        """Return whether the table is there."""
        if not self._is_made:
            from sqlalchemy import inspect

            self._is_made = inspect(connection).has_table(
                self._table.name, schema=self._table.schema
            )
        return self._is_made

    def _read(self, connection: Connection, key: str) -> Record | None:
        from sqlalchemy import select

        if not self._ready(connection):
            return None
        columns = self._table.c
        row = connection.execute(
            select(columns.body, columns.version, columns.sha256, columns.stored_at).where(
                self._is(key)
            )
        ).one_or_none()
        return None if row is None else _record(*row)

    def _write(
        self,
        connection: Connection,
        key: str,
        body: bytes,
        expected: Expected,
        also: Mapping[str, bytes],
    ) -> str:
        version = uuid.uuid4().hex
        if not self._replace(connection, key, body, version, expected):
            raise StateConflictError(f"another writer changed {key!r} in {self.name}")
        for name, content in also.items():
            self._replace(connection, name, content, version, ANY)
        return version

    def _replace(
        self, connection: Connection, key: str, body: bytes, version: str, expected: Expected
    ) -> bool:
        """Store a row; return whether the row to replace was there, or missing as expected."""
        row = {
            "version": version,
            "body": body,
            "sha256": digest_of(body),
            "size": len(body),
            "stored_at": self._clock(),
        }
        if expected is None:
            return self._insert(connection, key, row)
        if expected is not ANY:
            return self._update(connection, key, row, version=expected)
        for _ in range(_TRIES):
            if self._update(connection, key, row) or self._insert(connection, key, row):
                return True
        return False

    def _update(
        self, connection: Connection, key: str, row: dict[str, Any], *, version: str | None = None
    ) -> bool:
        from sqlalchemy import update

        changed = update(self._table).where(self._is(key)).values(row)
        if version is not None:
            changed = changed.where(self._table.c.version == version)
        return connection.execute(changed).rowcount > 0

    def _insert(self, connection: Connection, key: str, row: dict[str, Any]) -> bool:
        from sqlalchemy import insert
        from sqlalchemy.exc import IntegrityError

        try:
            with connection.begin_nested():
                connection.execute(
                    insert(self._table).values(namespace=self.namespace, key=key, **row)
                )
        except IntegrityError:  # another writer inserted it first
            return False
        return True

    def _remove(self, connection: Connection, key: str) -> bool:
        from sqlalchemy import delete

        if not self._ready(connection):
            return False
        return connection.execute(delete(self._table).where(self._is(key))).rowcount > 0

    def _listing(self, connection: Connection) -> list[Entry]:
        from sqlalchemy import select

        if not self._ready(connection):
            return []
        columns = self._table.c
        rows = connection.execute(
            select(columns.key, columns.size, columns.stored_at)
            .where(columns.namespace == self.namespace)
            .order_by(columns.stored_at, columns.key)
        )
        return [Entry(key=key, size=size, stored_at=stored_at) for key, size, stored_at in rows]

    def _sweeping(self) -> CallFlow[tuple[int, int]]:
        return (yield from self._asked("write", "sweep"))

    def _sweep(self, connection: Connection) -> tuple[int, int]:
        from sqlalchemy import delete, func, or_, select

        if not self._ready(connection):
            return 0, 0
        columns = self._table.c
        own = columns.namespace == self.namespace
        removed = 0
        if self.max_age is not None:
            oldest = self._clock() - self.max_age
            removed = connection.execute(
                delete(self._table).where(own, columns.stored_at <= oldest)
            ).rowcount
        held: int = connection.execute(
            select(func.coalesce(func.sum(columns.size), 0)).where(own)
        ).scalar_one()
        most = self._most_after(int(held))
        last: tuple[float, str] | None = None
        if held > most:
            by_age = select(columns.stored_at, columns.key, columns.size).where(own)
            for stored_at, key, size in connection.execute(
                by_age.order_by(columns.stored_at, columns.key)
            ):
                last = (stored_at, key)
                held -= size
                if held <= most:
                    break
        if last is not None:
            before = or_(
                columns.stored_at < last[0],
                (columns.stored_at == last[0]) & (columns.key <= last[1]),
            )
            removed += connection.execute(delete(self._table).where(own, before)).rowcount
        return removed, int(held)

    def _is(self, key: str) -> Any:
        from sqlalchemy import and_

        return and_(self._table.c.namespace == self.namespace, self._table.c.key == key)

    # --- plain and async -------------------------------------------------------------------------

    def _run(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        if self._plain_engine is not None:
            with self._plain_engine.begin() as connection:
                return work(connection)
        loop = self._loop
        if loop is None or not loop.is_running() or _running_loop() is loop:
            raise ConfigurationError(
                "the engine is async: await the method of the same name with an 'a' in front, or "
                "make the engine with create_engine"
            )
        return asyncio.run_coroutine_threadsafe(self._arun(work), loop).result()

    async def _arun(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        if self._async_engine is None:
            return await asyncio.to_thread(self._run, work)
        self._loop = asyncio.get_running_loop()
        async with self._async_engine.begin() as connection:
            return await connection.run_sync(work)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _table(name: str, schema: str | None) -> Table:
    from sqlalchemy import Column, Double, Index, Integer, LargeBinary, MetaData, String, Table

    return Table(
        name,
        MetaData(schema=schema),
        Column("namespace", String(255), primary_key=True),
        Column("key", String(255), primary_key=True),
        Column("version", String(32), nullable=False),
        Column("sha256", String(64), nullable=False),
        Column("size", Integer, nullable=False),
        Column("stored_at", Double, nullable=False),  # pyright: ignore[reportUnknownArgumentType] - typed without its number
        # MySQL's plain BLOB ends at 64 KB; the others ignore the length.
        Column("body", LargeBinary(length=2**32 - 1), nullable=False),
        Index(f"ix_{name}_age", "namespace", "stored_at"),
    )


def _record(body: object, version: str, sha256: str, stored_at: float) -> Record:
    problem = ""
    content = b""
    if isinstance(body, (bytes, bytearray, memoryview)):
        content = bytes(cast("bytes", body))
    if not isinstance(body, (bytes, bytearray, memoryview)):
        problem = f"its content is {type(body).__name__}, not bytes"
    elif digest_of(content) != sha256:
        problem = "its content does not have the hash that was stored with it"
    return Record(body=content, version=str(version), stored_at=float(stored_at), problem=problem)
