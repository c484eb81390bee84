"""One conversation and two workers: LangGraph's checkpointer, LlamaIndex's chat stores."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import uuid
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import MessagesState, StateGraph
from llama_index.core.llms import ChatMessage

import chat_workers
from chat_workers import LIMIT, chat_memory, work
from langchain_muntin import context_window_node
from muntin import ToolResultStore, read_tool_result
from service_stores import records

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Sent(MessagesState):
    """A conversation, and also it what is sent to the model."""

    llm_input_messages: list[BaseMessage]


def graph_of(store: ToolResultStore) -> Any:
    """A graph that fits what it sends and answers with how much that was."""

    def answer(state: Sent) -> dict[str, Any]:
        sent = state["llm_input_messages"]
        return {"messages": [AIMessage(f"I read {len(sent)} of {len(state['messages'])}.")]}

    graph: Any = StateGraph(Sent)
    graph.add_node("window", context_window_node(budget=600, store=store))
    graph.add_node("model", answer)
    graph.set_entry_point("window")
    graph.add_edge("window", "model")
    graph.set_finish_point("model")
    return graph


def test_a_conversation_goes_on_with_another_worker_and_its_originals(postgres_url: str) -> None:
    """A load balancer sends each request of a chat to another worker."""
    namespace = uuid.uuid4().hex[:8]
    config: Any = {"configurable": {"thread_id": namespace}}
    log = "\n".join(f"step {number}: A-{number} ok" for number in range(3_000))
    call: Any = {"name": "read_log", "args": {}, "id": "c1", "type": "tool_call"}
    begin = [
        HumanMessage("Read the log."),
        AIMessage("", tool_calls=[call]),
        ToolMessage(log, tool_call_id="c1"),
    ]
    with (
        PostgresSaver.from_conn_string(postgres_url) as saver,
        records("sqlalchemy", postgres_url, namespace) as kept,
    ):
        saver.setup()
        first = graph_of(ToolResultStore(kept)).compile(checkpointer=saver)
        first.invoke({"messages": begin}, config)
    with (
        PostgresSaver.from_conn_string(postgres_url) as saver,
        records("sqlalchemy", postgres_url, namespace) as kept,
    ):
        results = ToolResultStore(kept)
        second = graph_of(results).compile(checkpointer=saver)
        state = second.get_state(config).values
        assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
        found = re.search(r"tr_[0-9a-f]{20}", str(state["llm_input_messages"][2].content))
        assert found is not None
        assert "A-2718" in read_tool_result(found[0], pattern="step 2718:", store=results)
        state = second.invoke({"messages": [HumanMessage("And now?")]}, config)
        assert len(state["messages"]) == 6
        assert state["messages"][2].content == log


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_a_memory_goes_on_with_another_worker(kind: str, request: pytest.FixtureRequest) -> None:
    """The second worker must neither start an empty chat nor write over the first one's."""
    session = uuid.uuid4().hex[:8]
    url = request.getfixturevalue(f"{kind}_url")
    with (
        chat_memory(kind, url, session) as first,
        chat_memory(kind, url, session) as second,
        chat_memory(kind, url, session) as third,
    ):
        for number in range(20):
            first.put(ChatMessage(role="user", content=f"Where is order A-{number}?"))
            first.put(ChatMessage(role="assistant", content=f"Order A-{number} left us."))
        assert len(second.get_all()) == 40
        second.put(ChatMessage(role="user", content="And the last one?"))
        assert [message.content for message in third.get_all()][-2:] == [
            "Order A-19 left us.",
            "And the last one?",
        ]
        assert str(third.get()[-1].content) == "And the last one?"


@pytest.mark.parametrize("puts", [30, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_two_processes_put_read_and_fold_one_conversation(
    kind: str, puts: int, request: pytest.FixtureRequest
) -> None:
    """Two workers behind a load balancer wrote over each other's messages."""
    session = uuid.uuid4().hex[:8]
    url = request.getfixturevalue(f"{kind}_url")
    with chat_memory(kind, url, session) as memory:
        memory.put(ChatMessage(role="user", content="first"))  # makes the table
        # Redis' async connections belong to a loop that ends; in the other process nothing minds.
        mode = "async" if kind == "redis" else "sync"
        other = subprocess.Popen(
            [sys.executable, chat_workers.__file__, kind, url, session, "other", str(puts), mode],
            stdout=subprocess.PIPE,
            text=True,
        )
        while len(memory.get_all()) == 1 and other.poll() is None:
            time.sleep(0.05)  # until the other process has begun
        own = work(memory, "own", puts, is_async=mode == "sync")
        seen = {"own": asyncio.run(own)}
        seen["other"] = json.loads(other.communicate(timeout=500)[0])
    with chat_memory(kind, url, session) as memory:
        kept = [str(message.content) for message in memory.get_all()]

    assert len(kept) == 2 * puts + 1
    for name, one in seen.items():
        texts = [f"{name} {number}: order A-{number} is on its way." for number in range(puts)]
        assert [text for text in kept if text.startswith(f"{name} ")] == texts
        assert one["lost"] == 0, "a worker reads at once what it put"
        assert one["folds"] > 0
        assert one["largest"] <= LIMIT
    turns = [text.split()[0] for text in kept[1:]]
    assert any(one != other for one, other in pairwise(turns[5:-5])), "they wrote at one time"
