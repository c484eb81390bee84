# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# `create_agent` and checkpointers have parts without types.
"""Agents whose process is killed at any step, on SQLite and PostgreSQL checkpointers."""

from __future__ import annotations

import json
import os
import signal
import uuid
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_agents import TASK, call, prose, tool
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from muntin import ToolResultStore
from service_stores import records

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

ROUNDS = 14
KILLS = {"model": (3, 9), "tool": (6, 12), "recap": (1,)}
"""Where the process ends, and at which of these steps."""


@contextmanager
def sqlite_world(folder: Path) -> Generator[tuple[Any, ToolResultStore]]:
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        yield saver, ToolResultStore.sqlite(folder / "results.db")


@contextmanager
def postgres_world(url: str, namespace: str) -> Generator[tuple[Any, ToolResultStore]]:
    with (
        PostgresSaver.from_conn_string(url) as saver,
        records("sqlalchemy", url, namespace) as kept,
    ):
        saver.setup()
        yield saver, ToolResultStore(kept)


def go_on(world: Callable[[], Any], log: Path, thread: str, *, kills: bool) -> None:
    """Run the agent, or resume it, to its end or until it is killed; write down every request."""

    def note(kind: str, **facts: Any) -> int:
        """Write a line; return how many of its kind there are now."""
        with log.open("a") as file:
            file.write(json.dumps({"kind": kind, **facts}) + "\n")
        return sum(one["kind"] == kind for one in lines(log))

    def may_end(kind: str, **facts: Any) -> None:
        if note(kind, **facts) in KILLS[kind] and kills:
            os.kill(os.getpid(), signal.SIGKILL)

    def reply(messages: list[Any]) -> Any:
        made = [
            m.tool_calls[0]["id"] for m in messages if isinstance(m, AIMessage) and m.tool_calls
        ]
        at = int(str(made[-1])[1:]) + 1 if made else 0
        may_end("model", texts=[m.text for m in messages], at=at)
        return call(f"c{at}") if at < ROUNDS else "PAY-7000 and PAY-7001."

    def look_up(key: str) -> str:
        may_end("tool")
        return prose(600, int(key[1:]))

    def recap(text: str, instruction: str) -> str:
        may_end("recap")
        return "They went through the ledgers."

    model = StrictChatModel(window=7000, replies=reply)
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 200}
    with world() as (saver, store):
        agent: Any = create_agent(
            model,
            tools=[tool(look_up)],
            middleware=[ContextWindowMiddleware(summarizer=recap, store=store)],
            checkpointer=saver,
        )
        begun = agent.get_state(config).values
        given = None if begun else {"messages": [("user", TASK)]}
        done = agent.invoke(given, config, durability="sync")
        note("end", answer=done["messages"][-1].text, refused=len(model.refused))


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def in_child(work: Callable[[], None]) -> int:
    """Do work in a process of its own; return its exit code, negative if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def requests(log: Path) -> list[list[str]]:
    """Return the requests by step, the newest where one was sent again."""
    return list({one["at"]: one["texts"] for one in lines(log) if one["kind"] == "model"}.values())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_agent_that_is_killed_goes_on_as_if_it_was_not(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A deployment ends processes at any moment; a thread must not be refused for ever after."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""

    def world_of(name: str) -> Callable[[], Any]:
        if kind == "postgres":
            return lambda: postgres_world(url, name)
        folder = tmp_path / name
        folder.mkdir()
        return lambda: sqlite_world(folder)

    runs: dict[bool, Path] = {}
    killed = 0
    for kills in (False, True):
        name = uuid.uuid4().hex[:8]
        log = runs[kills] = tmp_path / f"{name}.jsonl"
        log.touch()
        world = world_of(name)
        for _ in range(10):
            code = in_child(lambda: go_on(world, log, name, kills=kills))  # noqa: B023 - run at once
            if code == 0:
                break
            assert code == -signal.SIGKILL
            killed += 1
    plain, resumed = runs[False], runs[True]
    recaps = {log: sum(one["kind"] == "recap" for one in lines(log)) for log in runs.values()}

    assert killed == sum(map(len, KILLS.values()))
    end = lines(resumed)[-1]
    assert (end["answer"], end["refused"]) == ("PAY-7000 and PAY-7001.", 0)
    assert all(TASK in texts for texts in requests(resumed))
    decided, again = (
        sum(b[: len(a)] != a for a, b in pairwise(requests(log))) for log in (plain, resumed)
    )
    assert len(requests(resumed)) == len(requests(plain))
    assert 2 <= decided <= again <= decided + killed
    # What was asked for when the process ended is asked for again, and nothing else.
    assert 1 <= recaps[plain] <= decided
    assert recaps[resumed] <= recaps[plain] + killed
