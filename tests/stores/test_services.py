"""Stores on real servers: the suite, and worker processes that are killed at any moment."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import service_stores
from muntin import (
    AgentState,
    StateError,
    StateStore,
    ToolResultStore,
    read_tool_result,
)
from muntin.testing import RecordStoreSuite
from service_stores import KINDS, UPDATES, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from muntin.stores import RecordStore

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store on a server."""
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest) -> str:
    """The URL of the server that the kind needs."""
    return request.getfixturevalue(f"{KINDS[kind]}_url")


class TestOnServers(RecordStoreSuite):
    @pytest.fixture(autouse=True)
    def _served(self, kind: str, url: str) -> Iterator[None]:
        self.open: list[Any] = []
        self.kind, self.url = kind, url
        yield
        for one in reversed(self.open):
            one.__exit__(None, None, None)

    def make(self, folder: Path, **limits: Any) -> RecordStore:
        namespace = re.sub(r"\W", "-", str(folder))[-40:]
        opened = records(self.kind, self.url, namespace, **limits)
        self.open.append(opened)
        return opened.__enter__()

    async def aclose(self, store: RecordStore) -> None:
        if self.kind == "llama_index-redis":
            opened: Any = store
            await opened._kvstore._async_redis_client.aclose()


class Worker:
    """A worker process and the lines it has printed."""

    def __init__(self, program: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, program, *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(line.rstrip("\n") for line in self._process.stdout)

    @property
    def is_done(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        if not self.is_done:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.mark.parametrize("kind", ["sqlalchemy", "langgraph"], indirect=True)
def test_two_killed_workers_lose_no_update_and_read_each_others_originals(
    kind: str, url: str
) -> None:
    """Deploys kill workers at any moment, and the other one goes on with the same state."""
    kill_workers(kind, url, most_kills=2)


@pytest.mark.slow
def test_workers_that_are_killed_often_lose_no_update(kind: str, url: str) -> None:
    kill_workers(kind, url, most_kills=8)


def kill_workers(kind: str, url: str, most_kills: int) -> None:
    """Let two workers with two writers each add findings, and kill them in turns."""
    namespace = f"killed-{uuid.uuid4().hex[:8]}"
    moments = random.Random(7)
    names = ("a", "b")
    with records(kind, url, namespace) as store:  # a deploy makes the tables before workers start
        assert store.entries() == []
    program = service_stores.__file__
    workers = {name: Worker(program, kind, url, namespace, name) for name in names}
    printed: dict[str, list[str]] = {name: [] for name in names}
    kills = 0
    until = time.monotonic() + 250
    try:
        while not all(worker.is_done for worker in workers.values()):
            assert time.monotonic() < until, {n: w.lines[-1:] for n, w in workers.items()}
            time.sleep(moments.uniform(0.05, 0.3))
            name = names[kills % 2]
            added = [line for line in workers[name].lines if line.startswith("added")]
            if kills < most_kills and added and not workers[name].is_done:
                workers[name].kill()
                printed[name] += workers[name].lines
                workers[name] = Worker(program, kind, url, namespace, name)
                kills += 1
        for name, worker in workers.items():
            worker.kill()
            printed[name] += worker.lines
            assert worker.lines[-1:] == ["done"]
    finally:
        for worker in workers.values():
            worker.kill()
    assert kills >= 1  # a busy machine may finish before the second one
    with records(kind, url, namespace) as store:
        state = StateStore(store, key="shared").load()
        every = {f"{n}.{half}.{i}" for n in names for half in range(2) for i in range(UPDATES)}
        assert sorted(map(str, state.key_findings)) == sorted(every)
        for name in names:
            marker = next(line for line in printed[name] if line.startswith("kept"))
            found = re.search(r"tr_[0-9a-f]{20}", marker)
            assert found is not None
            text = read_tool_result(found[0], pattern="step 321", store=ToolResultStore(store))
            assert f"{name} step 321" in text


def test_a_server_that_is_gone_is_a_state_error(kind: str, url: str) -> None:
    """A failover must reach the caller as the error that the documentation names."""
    gone = re.sub(r":\d+/", ":9/", url)
    if kind == "langgraph":
        pytest.skip("its pool connects before the store is made, so a dead server ends there")
    with records(kind, gone, "gone") as store, pytest.raises(StateError, match="cannot"):
        StateStore(store).save(AgentState())
