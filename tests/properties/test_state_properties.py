"""What holds of every agent state: it survives saving, fits its budget, and forges nothing."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from counters import COUNTERS
from muntin import AgentState, ContextWindowExceeded, count_message, reinject
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems
from muntin.state.agent_state import Step
from muntin.state.reinjection import is_state_block
from strategies import agent_states, nasty_text

if TYPE_CHECKING:
    from collections.abc import Callable

HEADINGS = (
    "## Current Goal",
    "## Plan",
    "## Key Findings So Far",
    "## Failed Approaches (DO NOT retry)",
    "## Open Questions",
)


@pytest.fixture(params=sorted(COUNTERS), scope="module")
def counting(request: pytest.FixtureRequest) -> Callable[[str], int]:
    """Every counter, made once for all examples."""
    name: str = request.param
    return COUNTERS[name]()


@given(state=agent_states())
@example(AgentState(plan=["", Step("", "current")], current_step="s1"))  # two are called current
def test_a_state_survives_saving_and_loading(state: AgentState) -> None:
    """An agent that is restarted must not begin another piece of work."""
    saved = json.loads(json.dumps(state.to_dict()))
    loaded = AgentState.from_dict(saved)
    assert loaded == state
    assert loaded.to_dict() == saved
    assert loaded.to_context() == state.to_context()


@given(state=agent_states(), max_tokens=st.integers(1, 400))
@example(state=AgentState(plan=[""]), max_tokens=1)  # a step that says nothing
@example(state=AgentState(plan=["", "look"], key_findings=[" "]), max_tokens=1)
def test_a_state_is_never_over_its_budget(
    counting: Callable[[str], int], state: AgentState, max_tokens: int
) -> None:
    """A state put back without a cap overflows the window right after compaction."""
    before = copy.deepcopy(state)
    text = state.to_context(max_tokens, counter=counting)
    assert counting(text) <= max_tokens
    assert text or state.is_empty()
    assert state == before
    text.encode("utf-8")


@given(state=agent_states(), max_tokens=st.one_of(st.none(), st.integers(60, 400)))
def test_no_text_forges_a_heading(state: AgentState, max_tokens: int | None) -> None:
    """A tool's text that ends up as a finding could otherwise mark the plan as done."""
    text = state.to_context(max_tokens)
    headings = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert len(headings) == len(set(headings))
    assert set(headings) <= set(HEADINGS)
    marks = [line for line in text.splitlines() if line.startswith(("[DONE]", "[CURRENT]", "[ ]"))]
    assert len(marks) <= len(state.plan) + len(state.completed_steps) + 1


@given(state=agent_states(), text=nasty_text)
def test_inserting_a_step_in_front_moves_no_mark(state: AgentState, text: str) -> None:
    """By position, every completed step would come back as open and its neighbour as done."""
    before = {step.id: step.status for step in AgentState.from_dict(state.to_dict()).steps()}
    loaded = AgentState.from_dict(state.to_dict())
    if any(text in (step.text, step.id) for step in loaded.steps()):
        return
    if text in (*loaded.completed_steps, loaded.current_step):
        return
    loaded.plan.insert(0, text)
    after = {step.id: step.status for step in loaded.steps()}
    # Only the step that was next by default may cede its turn to the new one.
    moved = {key for key, status in before.items() if after[key] != status}
    assert all(before[key] == "current" and after[key] == "pending" for key in moved)
    assert len(moved) <= 1


@given(mine=agent_states(), theirs=agent_states())
def test_merging_loses_no_note_and_is_idempotent(mine: AgentState, theirs: AgentState) -> None:
    """The writer who saves last must not erase what the other one found."""
    merged = mine.merged_with(theirs).snapshot()
    for side in (mine.snapshot(), theirs.snapshot()):
        for name in ("findings", "failures", "questions", "steps"):
            kept = {one.id for one in getattr(merged, name)}
            assert {one.id for one in getattr(side, name)} <= kept
    assert merged.merged_with(theirs.snapshot()) == merged
    assert sum(step.status == "current" for step in merged.steps) <= 1


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CONVERSATIONS: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"role": "user", "content": "go"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}],
    [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "user", "content": "go"},
    ],
    [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "l", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "seen"},
                {"type": "text", "text": "and now?"},
            ],
        },
    ],
    [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": "wait, first this"},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    ],
)


@given(
    states=st.lists(agent_states(), min_size=1, max_size=3),
    messages=st.sampled_from(CONVERSATIONS),
    max_tokens=st.integers(20, 500),
)
def test_a_state_is_put_back_once_within_its_budget_and_parts_no_pair(
    counting: Callable[[str], int],
    states: list[AgentState],
    messages: list[dict[str, Any]],
    max_tokens: int,
) -> None:
    """Blocks that pile up, or that stand between a call and its result, break the next request."""
    found: object = messages
    given_messages = copy.deepcopy(messages)
    for state in states:
        try:
            found = reinject(state, found, max_tokens=max_tokens, counter=counting)  # pyright: ignore[reportArgumentType] - what came out goes in again
        except ContextWindowExceeded:
            return
        views = [view(message) for message in found]
        ours = [at for at, one in enumerate(views) if is_state_block(one.text)]
        assert len(ours) == (0 if state.is_empty() else 1)
        assert [m for at, m in enumerate(found) if at not in ours] == given_messages
        assert not [p for p in pairing_problems(views) if p.kind == "orphan"]
        for at in ours:
            assert count_message(found[at], counter=counting) <= max_tokens
        assert reinject(state, found, max_tokens=max_tokens, counter=counting) is found
    assert messages == given_messages
