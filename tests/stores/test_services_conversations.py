"""One conversation and two workers: LangGraph's checkpointer, LlamaIndex's chat stores."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import MessagesState, StateGraph
from llama_index.core.llms import ChatMessage
from llama_index.storage.chat_store.postgres import PostgresChatStore
from llama_index.storage.chat_store.redis import RedisChatStore
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import NullPool

from langchain_muntin import context_window_node
from llama_index_muntin import CompactingMemory
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

    def worker() -> CompactingMemory:
        url = request.getfixturevalue(f"{kind}_url")
        store: Any = None
        if kind == "redis":
            store = RedisChatStore(redis_url=url)
        else:
            # Sessions over engines that keep no connection, which nothing would close.
            plain = create_engine(url.replace("://", "+psycopg://", 1), poolclass=NullPool)
            asynchronous = create_async_engine(
                url.replace("://", "+asyncpg://", 1), poolclass=NullPool
            )
            sessions: Any = async_sessionmaker(asynchronous)
            store = PostgresChatStore(sessionmaker(plain), sessions, table_name="chats")
        return CompactingMemory.from_defaults(token_limit=300, chat_store=store, session_id=session)

    first = worker()
    for number in range(20):
        first.put(ChatMessage(role="user", content=f"Where is order A-{number}?"))
        first.put(ChatMessage(role="assistant", content=f"Order A-{number} left the warehouse."))
    second = worker()
    assert len(second.get_all()) == 40
    second.put(ChatMessage(role="user", content="And the last one?"))
    third = worker()
    opened = [first, second, third]
    assert [message.content for message in third.get_all()][-2:] == [
        "Order A-19 left the warehouse.",
        "And the last one?",
    ]
    assert str(third.get()[-1].content) == "And the last one?"
    for memory in opened if kind == "redis" else []:
        memory.chat_store._redis_client.close()
