# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# `create_agent` has parts without types.
"""Results of tools enter the state short enough, whatever form they come in."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from langchain_agents import TASK, call, calls, prose, result, tool
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin._agents.tool_results import capped
from langchain_muntin.testing import StrictChatModel
from muntin import ConfigurationError, TiktokenCounter, ToolResultStore, count_message, count_tokens
from muntin.adapting import ResultCap

if TYPE_CHECKING:
    from conftest import EntryPoint

LONG = prose(3000)
COUNT = TiktokenCounter()


def cap(tokens: int = 200) -> ResultCap:
    """Make a cap with a store of its own."""
    store = ToolResultStore.in_memory()
    return ResultCap(max_tokens=tokens, store=store, prompts=None, budget=None)


def found(given: Any) -> list[ToolMessage]:
    """List the messages in whatever a tool returned."""
    if isinstance(given, ToolMessage):
        return [given]
    if isinstance(given, Command):
        return found(given.update)
    if isinstance(given, dict):
        return found(given.get("messages"))
    return (
        [one for part in given for one in found(part)] if isinstance(given, (list, tuple)) else []
    )


LARGE, SMALL = result("c1", LONG), result("c2", "Fine.")


@pytest.mark.parametrize(
    "given",
    [
        LARGE,
        [SMALL, LARGE],
        Command(update={"messages": [LARGE]}),
        Command(update={"messages": (SMALL, LARGE), "note": LONG}),
        Command(update={"messages": LARGE}),
        Command(update=[("messages", [LARGE]), ("note", LONG)]),
        [Command(update={"messages": [LARGE]}), SMALL],
        [Command(update={"note": LONG}), LARGE],
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_in_which_a_tool_answers_is_capped(given: Any) -> None:
    """One result that slips through fills the window for the rest of the thread."""
    limit = cap()
    short = capped(given, limit, None)

    assert type(short) is type(given)
    assert all(count_tokens(message.text) <= 200 for message in found(short))
    assert [m.tool_call_id for m in found(short)] == [m.tool_call_id for m in found(given)]
    assert capped(short, limit, None) is short
    assert LARGE.text == LONG


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": LONG},
        {"type": "text-plain", "text": LONG, "mime_type": "text/plain"},
        {"type": "input_text", "text": LONG},
        {"type": "file", "mime_type": "text/plain", "text": LONG},
        {
            "type": "document",
            "source": {"type": "text", "data": LONG, "media_type": "text/plain"},
        },
        {
            "type": "search_result",
            "source": "https://example.org",
            "title": "Log",
            "content": [{"type": "text", "text": LONG}],
        },
        {"type": "non_standard", "value": {"type": "text", "text": LONG}},
    ],
    ids=lambda block: block["type"],
)
def test_a_cap_makes_no_result_larger(block: dict[str, Any]) -> None:
    """A short text beside the long block it stands for costs more than nothing done."""
    image = {"type": "image", "url": "https://example.org/door.png"}
    given = ToolMessage([block, image], tool_call_id="c1", id="m1", artifact={"kept": True})
    short = capped(given, cap(), None)

    assert count_message(short) < 200 + count_message(given.model_copy(update={"content": [image]}))
    assert image in short.content
    assert (short.id, short.artifact) == ("m1", {"kept": True})


def test_the_cap_is_counted_as_requests_are(entry_point: EntryPoint) -> None:
    """By an estimate, hexadecimal text takes twice what it was allowed."""
    digests = "\n".join(hashlib.sha256(str(at).encode()).hexdigest() for at in range(400))
    for counter in (COUNT, None):
        model = StrictChatModel(window=100_000, replies=[call("c1"), "Done."])
        middleware = ContextWindowMiddleware(max_result_tokens=1000, counter=counter)
        agent: Any = create_agent(model, tools=[tool(lambda key: digests)], middleware=[middleware])
        done = entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(TASK)]})

        assert 500 < COUNT(done["messages"][2].text) <= 1000


# --- the tool that reads originals ---------------------------------------------------------------


def namesake() -> BaseTool:
    """Make a tool of the user that has the name of ours."""

    def read_tool_result(key: str) -> str:
        """Read a result of the user's own."""
        return LONG

    return StructuredTool.from_function(read_tool_result)


def test_another_tool_of_the_same_name_is_refused_or_an_ordinary_one(
    entry_point: EntryPoint,
) -> None:
    """The markers would send the model to a tool that knows nothing of them."""
    script: list[Any] = [calls("c1", name="read_tool_result"), "Done."]
    model = StrictChatModel(window=8000, replies=script)
    agent: Any = create_agent(model, tools=[namesake()], middleware=[ContextWindowMiddleware()])
    with pytest.raises(ConfigurationError, match="another tool of the agent is named"):
        entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(TASK)]})

    without = ContextWindowMiddleware(read_back=False, max_result_tokens=100)
    agent = create_agent(model, tools=[namesake()], middleware=[without])
    done = entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(TASK)]})
    assert count_tokens(done["messages"][2].text) <= 110


def test_two_stores_in_one_agent_are_refused(entry_point: EntryPoint) -> None:
    """One of the two reading tools would answer for both."""
    two: list[Any] = [ContextWindowMiddleware(), ContextWindowMiddleware(name="inner")]
    agent: Any = create_agent(StrictChatModel(), middleware=two)

    with pytest.raises(ConfigurationError, match="the same store"):
        entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(TASK)]})


def test_an_agent_without_tools_is_given_none(entry_point: EntryPoint) -> None:
    """Its model may take none, and there is nothing to read."""
    for talk, tools in (([], 0), ([call("c1"), result("c1", "4")], 1)):
        model = StrictChatModel()
        agent: Any = create_agent(model, middleware=[ContextWindowMiddleware()])
        given = [HumanMessage("Hi."), *talk, HumanMessage(TASK)]
        entry_point(agent.invoke, agent.ainvoke, {"messages": given})
        assert len(model.sent[0].tools) == tools

        plain = GenericFakeChatModel(messages=iter([AIMessage("Yes.")]))
        middleware = ContextWindowMiddleware(window=8000, counter=count_tokens)
        agent = create_agent(plain, middleware=[middleware])
        done = entry_point(agent.invoke, agent.ainvoke, {"messages": given})
        assert done["messages"][-1].text == "Yes."
