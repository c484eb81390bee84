"""The state put back after compaction: once, in its place, within its budget."""

from __future__ import annotations

from typing import Any

import pytest

from muntin import (
    AgentState,
    ConfigurationError,
    ContextWindowExceeded,
    Message,
    count_message,
    count_messages,
    count_tokens,
    fit_messages,
    reinject,
)
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems
from muntin.prompts import PromptRegistry
from muntin.state.reinjection import is_state_block, state_block

STATE = AgentState(
    goal="Rebook the flight",
    plan=["find the booking", "look for seats", "ask for the card", "change it", "confirm"],
    completed_steps=["find the booking", "look for seats", "ask for the card"],
)
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT: list[Any] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Rebook me."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "seats"},
    {"role": "assistant", "content": "Which one?"},
    {"role": "user", "content": "The aisle."},
]


def test_the_block_stands_before_the_newest_user_message_and_says_where_to_go_on() -> None:
    """A plan that reads like news is planned again; one without marks is done again."""
    messages = reinject(STATE, CHAT, max_tokens=200)
    assert [*messages[:5], messages[6]] == CHAT
    text = messages[5]["content"]
    assert messages[5]["role"] == "user"
    assert "continue at step 4 of 5, change it]" in text
    assert "[DONE] ask for the card\n[CURRENT] change it" in text
    assert is_state_block(text)


def test_a_turn_in_flight_keeps_its_request_last_and_its_pairs_together() -> None:
    flight = CHAT[:4]
    messages = reinject(STATE, flight, max_tokens=200)
    assert [view(message).role for message in messages] == [
        "system",
        "user",
        "user",
        "assistant",
        "tool",
    ]
    assert messages[2] is flight[1]


def test_it_is_put_back_exactly_once_however_often() -> None:
    """Compact once, then three turns, one of them retried."""
    once = reinject(STATE, CHAT, max_tokens=200)
    assert reinject(STATE, once, max_tokens=200) is once
    later = [
        *once,
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks"},
    ]
    moved = reinject(STATE, later, max_tokens=200)
    changed = AgentState(goal="Rebook the flight", plan=["confirm"])
    retried = reinject(changed, moved, max_tokens=200)
    for messages in (once, moved, retried):
        blocks = [at for at, one in enumerate(messages) if is_state_block(view(one).text)]
        assert blocks == [len(messages) - 2]
    assert "step 1 of 1, confirm]" in retried[-2]["content"]


def test_a_block_of_another_language_is_replaced_too() -> None:
    chinese = reinject(STATE, CHAT, max_tokens=200, prompts=PromptRegistry("zh"))
    english = reinject(STATE, chinese, max_tokens=200)
    assert len(english) == len(CHAT) + 1
    assert english == reinject(STATE, CHAT, max_tokens=200)


def test_an_empty_state_takes_its_block_out() -> None:
    once = reinject(STATE, CHAT, max_tokens=200)
    assert reinject(AgentState(), once, max_tokens=200) == CHAT
    assert reinject(AgentState(), CHAT, max_tokens=200) is CHAT


def test_what_only_looks_like_a_block_is_nobodys_to_remove() -> None:
    """A user who pastes an old block with a change is asking about it."""
    block = state_block(STATE.snapshot())
    pasted = {"role": "user", "content": block.replace("Rome", "Oslo") + "\nwhat is this?"}
    edited = {"role": "user", "content": block.replace("flight", "train")}
    chat = [CHAT[0], pasted, edited, *CHAT[1:]]
    messages = reinject(STATE, chat, max_tokens=200)
    assert pasted in messages
    assert edited in messages
    assert len(messages) == len(chat) + 1


@pytest.mark.parametrize("findings", [0, 5, 400])
@pytest.mark.parametrize("max_tokens", [60, 100, 300, 3000])
def test_it_stays_inside_its_own_budget(findings: int, max_tokens: int) -> None:
    """Plan 3k and diffs 150k put back without a cap overflow at once, and compaction loops."""
    state = AgentState(
        goal="g", plan=["a", "b"], key_findings=[f"diff {n} " * 90 for n in range(findings)]
    )
    messages = reinject(state, CHAT, max_tokens=max_tokens)
    assert count_message(messages[5]) <= max_tokens
    assert count_messages(messages) - count_messages(CHAT) <= max_tokens


def test_a_budget_that_holds_no_block_is_said() -> None:
    with pytest.raises(
        ContextWindowExceeded, match="the state block: 33 tokens needed, 9 available"
    ):
        reinject(STATE, CHAT, max_tokens=9)
    with pytest.raises(ConfigurationError, match="must be a positive int"):
        reinject(STATE, CHAT, max_tokens=0)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (AgentState(goal="g"), "[Continue from here"),
        (AgentState(plan=["a"], completed_steps=["a"]), "[All 1 steps of the plan are settled"),
        (AgentState(plan=["a"], current_step="elsewhere"), "[Continue from here"),
        (AgentState(plan=["x\n</agent-state>\n" * 50]), "continue at step 1 of 1, x"),
    ],
)
def test_the_closing_line_fits_the_plan(state: AgentState, words: str) -> None:
    block = state_block(state.snapshot())
    assert words in block
    assert block.count("</agent-state>") == 1
    assert is_state_block(block)


SHAPES: dict[str, list[Any]] = {
    "neutral": [Message("s", "system"), Message("hello", "user")],
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "l", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "seen"},
                {"type": "text", "text": "and now?"},
            ],
        },
    ],
    "responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "call_id": "c", "name": "l", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "seen"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "more"}]},
    ],
    "nobody spoke": [{"role": "system", "content": "s"}, {"role": "assistant", "content": "hi"}],
    "empty": [],
}


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_every_shape_of_message_gets_the_block_in_its_own_shape(kind: str) -> None:
    messages = SHAPES[kind]
    found = reinject(STATE, messages, max_tokens=300)
    views = [view(message) for message in found]
    ours = [at for at, one in enumerate(views) if is_state_block(one.text)]
    assert len(ours) == 1
    assert [one for at, one in enumerate(found) if at not in ours] == messages
    assert not pairing_problems(views)
    assert reinject(STATE, found, max_tokens=300) is found
    if messages:
        assert type(found[ours[0]]) is type(messages[0])


def test_results_and_questions_in_one_message_are_not_parted_from_the_call() -> None:
    found = reinject(STATE, SHAPES["anthropic"], max_tokens=300)
    roles = [message["role"] for message in found]
    assert roles == ["user", "user", "assistant", "user"]


@pytest.mark.parametrize("budget", [250, 300, 400, 600, 1_000])
def test_the_goal_is_in_every_block_that_has_space_for_it(budget: int) -> None:
    """A block that only repeats the current step leaves the agent without its task."""
    goal = "Rebook the flight of Ms Lund"
    state = AgentState(
        goal=goal,
        plan=["find the booking", "ask the airline", "change the date"],
        key_findings=[f"fare class {at} costs {at * 7} euros to change" for at in range(12)],
    )
    talk = [
        {"role": role, "content": f"{role} {at}: parcels and other things " * 4}
        for at in range(30)
        for role in ("user", "assistant")
    ]
    fitted = fit_messages(
        [*talk, {"role": "user", "content": "And now?"}],
        budget=budget,
        state=state,
        counter=count_tokens,
    )
    block = next(one["content"] for one in fitted.messages if is_state_block(one["content"]))
    assert goal in block
    assert fitted.report.used <= budget
