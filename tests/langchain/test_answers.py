# pyright: reportPrivateUsage=false, reportUnknownVariableType=false
# What was learned of a model is private, and `create_agent` has parts without types.
"""What a provider did to a request without an error is read from its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import Field

from langchain_agents import TASK, prose
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from muntin.adapting import is_edited_request, overflow_of_answer

if TYPE_CHECKING:
    from conftest import EntryPoint

FULL = [
    ({"stop_reason": "model_context_window_exceeded"}, "It is in"),
    ({"stopReason": "model_context_window_exceeded"}, ""),
    ({"finish_reason": "model_length"}, "It is in"),
    ({"done_reason": "length"}, ""),
    ({"finish_reason": "length"}, " "),
]
WHOLE: list[tuple[dict[str, Any], str]] = [
    ({"stop_reason": "end_turn"}, "Yes."), ({"finish_reason": "length"}, "A long answer"),
    ({"stop_reason": "max_tokens"}, ""), ({}, ""), ({"finish_reason": "tool_calls"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "text"), FULL)
def test_a_full_window_is_read_from_the_answer(metadata: dict[str, Any], text: str) -> None:
    """The status is 200, so nothing else shows that the answer was cut."""
    full = overflow_of_answer(metadata, text)

    assert full is not None
    assert full.is_overflow


@pytest.mark.parametrize(("metadata", "text"), WHOLE)
def test_a_complete_answer_is_no_overflow(metadata: dict[str, Any], text: str) -> None:
    """A second request for a good answer is paid for nothing."""
    assert overflow_of_answer(metadata, text) is None


class Reporting(StrictChatModel):
    """Reports something with its first answers."""

    reported: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    charges: int = 0

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._answer(messages, kwargs)
        at = len(self.sent) - 1
        metadata = self.reported[at] if at < len(self.reported) else {"stop_reason": "end_turn"}
        update: dict[str, Any] = {"response_metadata": metadata}
        if self.charges:
            usage = {"input_tokens": self.charges, "output_tokens": 1, "total_tokens": 1}
            update["usage_metadata"] = usage
        return reply.model_copy(update=update)


def asked(
    model: Any, entry_point: EntryPoint, messages: int = 30
) -> tuple[Any, ContextWindowMiddleware]:
    middleware = ContextWindowMiddleware()
    agent: Any = create_agent(model, middleware=[middleware])
    talk = [*(HumanMessage(prose(60, at)) for at in range(messages)), HumanMessage(TASK)]
    return entry_point(agent.invoke, agent.ainvoke, {"messages": talk}), middleware


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_the_window_cut_is_asked_for_once_more(
    entry_point: EntryPoint, times: int
) -> None:
    """Half an answer that looks like a whole one is worse than an error."""
    model = Reporting(
        window=16_000, reported=[{"stop_reason": "model_context_window_exceeded"}] * times
    )
    asked(model, entry_point)

    assert len(model.sent) == 2
    assert model.sent[1].tokens <= 0.8 * model.sent[0].tokens


def test_a_cut_answer_without_a_smaller_request_is_returned(entry_point: EntryPoint) -> None:
    """Where nothing can be left out, the cut answer is better than none."""
    model = Reporting(
        window=16_000, reported=[{"stop_reason": "model_context_window_exceeded"}] * 9
    )
    done, _ = asked(model, entry_point, messages=0)

    assert len(model.sent) == 1
    assert done["messages"][-1].text


@pytest.mark.parametrize("edited", [True, False])
def test_usage_of_an_edited_request_teaches_nothing(
    entry_point: EntryPoint, *, edited: bool
) -> None:
    """Context editing removes results on the server: a ratio of a half would overrun the window."""
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4}] if edited else []
    report = {"stop_reason": "end_turn", "context_management": {"applied_edits": edits}}
    model = Reporting(window=64_000, reported=[report] * 3, charges=1100)
    _, middleware = asked(model, entry_point)
    ratio = middleware._keeper.lessons.ratio("o200k_base")

    assert is_edited_request(report) is edited
    assert (ratio == 1.0) is edited
