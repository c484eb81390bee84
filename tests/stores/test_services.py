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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

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


@pytest.mark.slow
def test_a_conversation_loses_no_turn_when_its_workers_are_killed(postgres_url: str) -> None:
    """A deploy in the middle of a turn must neither lose the turn nor answer it twice."""
    from service_conversation import LOG, conversation

    program = str(Path(service_stores.__file__).with_name("service_conversation.py"))
    namespace, turns = f"talk-{uuid.uuid4().hex[:8]}", 60
    moments = random.Random(11)
    printed: list[str] = []
    with PostgresSaver.from_conn_string(postgres_url) as saver:
        saver.setup()
    until = time.monotonic() + 250
    for number in range(5):  # the last worker is not killed
        worker = Worker(program, postgres_url, namespace, "ab"[number % 2], str(turns))
        try:
            while not worker.lines and not worker.is_done:
                assert time.monotonic() < until
                time.sleep(0.05)
            time.sleep(moments.uniform(0.05, 0.4))
            while number == 4 and not worker.is_done:
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            worker.kill()
            printed += worker.lines
    assert printed[-1] == "done"
    with conversation(postgres_url, namespace) as (graph, config, results):
        state = graph.get_state(config).values
        said = [message.content for message in state["messages"] if message.type == "human"]
        answers = [message.content for message in state["messages"] if message.type == "ai"][1:]
        assert [text.partition(" by ")[0] for text in said] == [f"turn {n}" for n in range(turns)]
        assert [line for line in printed if line.startswith("turn")] == [
            text for text in said if text in printed
        ]
        assert answers[1:] == [f"answer to {text[:20]}" for text in said[1:]]
        assert state["messages"][2].content == LOG
        marker = next(m for m in state["llm_input_messages"] if "tr_" in str(m.content))
        found = re.search(r"tr_[0-9a-f]{20}", str(marker.content))
        assert found is not None
        assert "A-2718" in read_tool_result(found[0], pattern="step 2718:", store=results)


def test_a_server_that_is_gone_is_a_state_error(kind: str, url: str) -> None:
    """A failover must reach the caller as the error that the documentation names."""
    gone = re.sub(r":\d+/", ":9/", url)
    if kind == "langgraph":
        pytest.skip("its pool connects before the store is made, so a dead server ends there")
    with records(kind, gone, "gone") as store, pytest.raises(StateError, match="cannot"):
        StateStore(store).save(AgentState())
