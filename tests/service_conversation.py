"""One conversation on PostgreSQL that worker processes continue in turns.

    python tests/service_conversation.py URL NAMESPACE WORKER TURNS

As a program it is a worker: it finishes a turn that another worker left unfinished, adds turns up
to the number asked for, and prints a line after each. The first turn reads a long log.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import MessagesState, StateGraph

from langchain_muntin import context_window_node
from muntin import ToolResultStore
from service_stores import records

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("LOG", "conversation")

LOG = "\n".join(f"step {number}: A-{number} ok" for number in range(3_000))


class Sent(MessagesState):
    """A conversation, and what of it is sent to the model."""

    llm_input_messages: list[BaseMessage]


@contextmanager
def conversation(url: str, namespace: str) -> Generator[tuple[Any, Any, ToolResultStore]]:
    """Open the graph of a conversation, its configuration, and the store of its originals."""

    def answer(state: Sent) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer to {state['messages'][-1].content[:20]}")]}

    with (
        PostgresSaver.from_conn_string(url) as saver,
        records("sqlalchemy", url, namespace) as kept,
    ):
        results = ToolResultStore(kept)
        graph: Any = StateGraph(Sent)
        graph.add_node("window", context_window_node(budget=600, store=results))
        graph.add_node("model", answer)
        graph.set_entry_point("window")
        graph.add_edge("window", "model")
        graph.set_finish_point("model")
        config: Any = {"configurable": {"thread_id": namespace}}
        yield graph.compile(checkpointer=saver), config, results


def work(url: str, namespace: str, worker: str, turns: int) -> None:
    """Finish what was left unfinished and add the turns that are missing."""
    with conversation(url, namespace) as (graph, config, _):
        while True:
            state = graph.get_state(config)
            messages = state.values.get("messages", [])
            done = sum(message.type == "human" for message in messages)
            if state.next:
                graph.invoke(None, config)
                _print(f"finished {done - 1} by {worker}")
                continue
            if done == turns:
                break
            new: list[BaseMessage] = [HumanMessage(f"turn {done} by {worker}")]
            if not done:
                call: Any = {"name": "read_log", "args": {}, "id": "c1", "type": "tool_call"}
                new += [AIMessage("", tool_calls=[call]), ToolMessage(LOG, tool_call_id="c1")]
            graph.invoke({"messages": new}, config)
            _print(f"turn {done} by {worker}")
    _print("done")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _url, _namespace, _worker, _turns = sys.argv[1:]
    work(_url, _namespace, _worker, int(_turns))
