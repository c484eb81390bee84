"""Tools that a message adds stay in the thread: later calls are only valid while they do."""

from __future__ import annotations

from typing import Any

import pytest

from muntin import count_tokens, fit_messages
from muntin.errors import ContextWindowExceeded
from muntin.messages import arrange_roles

SCHEMA = {"type": "object", "properties": {"parcel": {"type": "string", "description": "x " * 90}}}


def anthropic() -> tuple[list[Any], Any]:
    tool = {"name": "weigh", "description": "Weigh a parcel.", "input_schema": SCHEMA}
    added = {"role": "system", "content": [{"type": "tool_addition", "tools": [tool]}]}
    talk: list[Any] = [{"role": "user", "content": "Which parcels are there?"}, added]
    for at in range(12):
        call = {"type": "tool_use", "id": f"c{at}", "name": "weigh", "input": {"parcel": str(at)}}
        result = {"type": "tool_result", "tool_use_id": f"c{at}", "content": f"{at} kg. " * 60}
        talk += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]},
                 {"role": "assistant", "content": f"Parcel {at} weighs {at} kg. " * 9},
                 {"role": "user", "content": f"And parcel {at + 1}?"}]  # fmt: skip
    return talk, added


def bedrock() -> tuple[list[Any], Any]:
    talk, _ = anthropic()
    spec = {"toolSpec": {"name": "weigh", "inputSchema": {"json": SCHEMA}}}
    added = {"role": "system", "content": [{"toolAddition": {"tools": [spec]}}]}
    return [talk[0], added, *talk[2:]], added


def openai() -> tuple[list[Any], Any]:
    tool = {"type": "function", "name": "weigh", "parameters": SCHEMA}
    added = {"type": "additional_tools", "role": "developer", "tools": [tool]}
    talk: list[Any] = [{"role": "user", "content": "Which parcels are there?"}, added]
    for at in range(12):
        talk += [
            {"type": "function_call", "call_id": f"c{at}", "name": "weigh", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{at}", "output": f"{at} kg. " * 60},
            {"type": "message", "role": "assistant", "content": f"Parcel {at}: {at} kg. " * 9},
            {"role": "user", "content": f"And parcel {at + 1}?"},
        ]
    return talk, added


def langchain() -> tuple[list[Any], Any]:
    made: Any = pytest.importorskip("langchain_core.messages")
    _, block = anthropic()
    added = made.SystemMessage(block["content"])
    talk: list[Any] = [made.HumanMessage("Which parcels are there?"), added]
    for at in range(12):
        call = {"name": "weigh", "args": {"parcel": str(at)}, "id": f"c{at}"}
        talk += [made.AIMessage("", tool_calls=[call]),
                 made.ToolMessage(f"{at} kg. " * 60, tool_call_id=f"c{at}"),
                 made.AIMessage(f"Parcel {at} weighs {at} kg. " * 9),
                 made.HumanMessage(f"And parcel {at + 1}?")]  # fmt: skip
    return talk, added


FORMS = {"anthropic": anthropic, "bedrock": bedrock, "openai": openai, "langchain": langchain}


@pytest.mark.parametrize("budget", [300, 500, 900, 1500, 3000])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:content block of unknown type")
def test_a_message_that_adds_tools_stays_at_every_budget(form: str, budget: int) -> None:
    """Without it the model calls a tool that no longer exists, and no line says so."""
    talk, added = FORMS[form]()
    try:
        fitted = fit_messages(talk, budget=budget, counter=count_tokens)
    except ContextWindowExceeded:
        assert budget < 500
        return

    assert sum(message is added for message in fitted.messages) == 1
    assert fitted.report.used <= budget
    pinned = [one.kind for one in fitted.report.decisions if one.reason == "pinned"]
    assert pinned == (["kept"] if budget <= 1500 else [])  # a larger budget keeps every message


@pytest.mark.parametrize("system", ["placed", "first"])
@pytest.mark.filterwarnings("ignore:content block of unknown type")
def test_added_tools_never_become_a_text(system: Any) -> None:
    """A user message that quotes a schema offers no tool."""
    talk, added = anthropic()

    assert any(message is added for message in arrange_roles([talk[2], *talk], system=system))
