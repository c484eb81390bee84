# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# `create_agent` has parts without types.
"""What is sent of a conversation, and how long a decision about it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_agents import TASK, call, prose, result
from langchain_muntin import ContextWindowMiddleware, compact_messages, context_window_node
from langchain_muntin.testing import StrictChatModel
from strategies import any_text

if TYPE_CHECKING:
    from collections.abc import Callable

TALK: list[BaseMessage] = [
    message
    for at in range(40)
    for message in (
        HumanMessage(prose(60, at), id=f"h{at}"),
        AIMessage(prose(60, 100 + at), id=f"a{at}"),
    )
]
ASKED = HumanMessage(TASK, id="asked")


def by_an_agent(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Send a conversation through the middleware, its first message as the system prompt."""
    model = StrictChatModel(window=window)
    first: Any = messages[0]
    agent: Any = create_agent(model, system_prompt=first, middleware=[ContextWindowMiddleware()])
    agent.invoke({"messages": messages[1:]})
    return model.sent[0].messages


def by_a_node(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Write what to send with the node."""
    return context_window_node(window=window).invoke({"messages": messages})["llm_input_messages"]


def by_a_step(messages: list[BaseMessage], window: int) -> list[BaseMessage]:
    """Compact as a step of a chain."""
    return compact_messages(messages, window=window)


WAYS = pytest.mark.parametrize("way", [by_an_agent, by_a_node, by_a_step])


@WAYS
@pytest.mark.parametrize("window", [2000, 100_000], ids=["decided", "fits"])
@settings(max_examples=8)
@given(texts=st.lists(any_text.map("so {}\ud83d".format), min_size=4, max_size=4))
def test_whatever_is_sent_can_be_written_as_utf_8(
    way: Callable[[list[BaseMessage], int], list[BaseMessage]], window: int, texts: list[str]
) -> None:
    """Half a character in one message makes every later request of the thread fail."""
    first, asked, found, answer = texts
    talk = [HumanMessage(asked), call("c1"), result("c1", found), AIMessage(answer)]
    sent = way([SystemMessage(first), *TALK, *talk, ASKED], window)

    json.dumps([message.content for message in sent], ensure_ascii=False).encode()
    assert sent[0].type == "system"
    assert sent[-1].text == TASK
