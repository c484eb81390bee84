# pyright: reportPrivateUsage=false, reportUnknownVariableType=false
# What was learned of a model is private, and `create_agent` has parts without types.
"""What becomes of a request that was refused for its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_agents import TASK, prose
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel

if TYPE_CHECKING:
    from conftest import EntryPoint


@pytest.mark.parametrize("scale", [1.2, 2.0, 3.5])
def test_one_refusal_teaches_how_much_fits(entry_point: EntryPoint, scale: float) -> None:
    """Two refusals in a row end the run, and one at each step costs a request each."""
    model = StrictChatModel(window=8000, max_tokens=500, scale=scale)
    middleware = ContextWindowMiddleware()
    agent: Any = create_agent(model, middleware=[middleware])
    talk = [*(HumanMessage(prose(60, at)) for at in range(105)), HumanMessage(TASK)]
    for _ in range(2):
        entry_point(agent.invoke, agent.ainvoke, {"messages": talk})

    assert len(model.refused) == 1
    assert len(model.sent) == 2
    assert all(4000 < request.tokens <= 7500 for request in model.sent)
    assert middleware._keeper.lessons.ratio("o200k_base") == pytest.approx(scale, rel=0.02)


class Charging(StrictChatModel):
    """Charges for its first answer what the script says."""

    charges: int = 0

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._answer(messages, kwargs)
        if len(self.sent) > 1:
            return reply
        usage: Any = {"input_tokens": self.charges, "output_tokens": 1, "total_tokens": 1}
        return reply.model_copy(update={"usage_metadata": usage})


@pytest.mark.parametrize("charges", [1200, 2400, 60_000])
def test_what_was_charged_once_refuses_nothing_that_fits(
    entry_point: EntryPoint, charges: int
) -> None:
    """A search that the provider ran was charged with the prompt; the window is what it was."""
    model = Charging(window=16_000, charges=charges)
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    for question in (prose(660), prose(9000)):
        entry_point(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(question)]}, config)

    assert len(model.sent) == 2
    assert model.sent[1].messages[-1].text == prose(9000)


def test_a_limit_that_a_refusal_names_is_remembered(entry_point: EntryPoint) -> None:
    """A server that was started with a smaller window refuses every request of the told size."""
    model = StrictChatModel(window=512, says_window=False)
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware(window=2400)], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    for at in range(40):
        entry_point(
            agent.invoke, agent.ainvoke, {"messages": [HumanMessage(prose(40, at))]}, config
        )

    assert len(model.sent) == 40
    assert len(model.refused) == 1


class RefusingOnce(StrictChatModel):
    """Refuses one request with a text that names no limit."""

    text: str = "invalid params, context window exceeds limit (2013)"
    at: int = 1

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        if len(self.sent) == self.at and not self.refused:
            self._check(messages, kwargs.get("tools") or (), kwargs)
            self.refused.append(ValueError(self.text))
            raise ValueError(self.text)
        return super()._answer(messages, kwargs)


@pytest.mark.parametrize(
    "text",
    [
        "invalid params, context window exceeds limit (2013)",
        "Error code: 400 - {'error': {'code': '1261', 'message': 'Prompt exceeds max length'}}",
        "input is too long for the model (trace 4711)",
    ],
)
def test_a_refusal_without_a_limit_costs_a_quarter_and_only_once(
    entry_point: EntryPoint, text: str
) -> None:
    """An error code read as the limit left 669 of 25,809 tokens, and so in every later request."""
    model = RefusingOnce(window=60_000, text=text)
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    talk = [HumanMessage(prose(600, at)) for at in range(20)]
    for messages in (talk, [HumanMessage(TASK)], [HumanMessage(TASK)]):
        entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, config)

    whole, cut, after = (request.tokens for request in model.sent)
    assert len(model.refused) == 1
    assert 0.5 * whole < cut < 0.8 * whole
    assert after > whole


class Binding(StrictChatModel):
    """Refuses signed thinking, as a model does behind a changed prefix."""

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        for message in messages:
            if isinstance(message.content, list) and "'signature'" in str(message.content):
                error = ValueError(
                    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is "
                    "bound to a different conversation."
                )
                self.refused.append(error)
                raise error
        return super()._answer(messages, kwargs)


def test_a_refusal_of_signed_thinking_is_answered_without_it(entry_point: EntryPoint) -> None:
    """The thread would be dead: every later request sends the same block."""
    model = Binding(window=8000, provider="anthropic")
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    thought: Any = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    answer = AIMessage([thought, {"type": "text", "text": "Here."}])
    for messages in ([HumanMessage("Look."), answer, HumanMessage(TASK)], [HumanMessage(TASK)]):
        entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, config)

    assert len(model.refused) == 1
    assert len(model.sent) == 2
    assert "Here." in str(model.sent[1].messages)


class Cutting(StrictChatModel):
    """Reads the last 4,096 tokens only, and reports them, as Ollama does."""

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._answer(messages, kwargs)
        read = min(self.sent[-1].tokens, 4096)
        usage: Any = {"input_tokens": read, "output_tokens": 1, "total_tokens": read + 1}
        return reply.model_copy(update={"usage_metadata": usage})


@pytest.mark.filterwarnings("ignore::muntin.adapting.TruncatedByServer")
def test_a_server_that_cuts_in_silence_teaches_its_limit_and_no_ratio(
    entry_point: EntryPoint,
) -> None:
    """Read as a ratio, the report made every later prompt larger instead of smaller."""
    model = Cutting(window=60_000)
    middleware = ContextWindowMiddleware()
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t1"}}
    talk = [HumanMessage(prose(600, at)) for at in range(20)]
    for messages in (talk, *([HumanMessage(TASK)] for _ in range(3))):
        entry_point(agent.invoke, agent.ainvoke, {"messages": messages}, config)

    first, second, third, fourth = (request.tokens for request in model.sent)
    assert min(first, second) > 8192
    assert max(third, fourth) <= 4096
