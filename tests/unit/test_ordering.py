"""Results that stand apart from their calls make a whole conversation unsendable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from muntin.messages.result_order import straight_order
from muntin.messages.shapes import view
from muntin.testing import check_request

if TYPE_CHECKING:
    from collections.abc import Sequence

USER = {"role": "user", "content": "Look."}


def calls(*ids: str) -> dict[str, Any]:
    made = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "A door."}


def straightened(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    order = straight_order([view(message) for message in messages])
    return list(messages) if order is None else [messages[at] for at in order]


def test_a_sound_conversation_is_left_alone() -> None:
    """Moving messages that stand right would cost the prompt cache for nothing."""
    history = [USER, calls("a", "b"), result("b"), result("a"), USER]

    assert straight_order([view(message) for message in history]) is None


def test_interleaved_rounds_are_parted() -> None:
    """Two agents in one thread write their rounds into each other."""
    history = [USER, calls("a"), calls("b"), result("a"), result("b")]

    assert straightened(history) == [USER, calls("a"), result("a"), calls("b"), result("b")]


def test_a_user_who_spoke_before_the_result_came_comes_after_it() -> None:
    """An impatient question must not part a call from its result."""
    late = {"role": "user", "content": "Are you there?"}

    assert straightened([USER, calls("a"), late, result("a")]) == [
        USER,
        calls("a"),
        result("a"),
        late,
    ]


def test_an_id_that_is_used_again_belongs_to_its_own_round() -> None:
    """Small models count their calls anew in every round."""
    history = [USER, calls("a"), result("a"), USER, calls("a"), USER, result("a")]

    assert straightened(history) == [
        USER,
        calls("a"),
        result("a"),
        USER,
        calls("a"),
        result("a"),
        USER,
    ]


def test_parallel_items_keep_their_place() -> None:
    """Responses items of one model turn stay together; their results come behind the last."""
    made = [
        {"type": "function_call", "call_id": one, "name": "look", "arguments": "{}"} for one in "ab"
    ]
    back = [{"type": "function_call_output", "call_id": one, "output": "x"} for one in "ab"]

    assert straight_order([view(message) for message in [USER, *made, *back]]) is None


@given(st.permutations(["a", "b", "c"]), st.lists(st.booleans(), min_size=3, max_size=3))
def test_whatever_the_order_the_result_is_accepted(order: list[str], talks: list[bool]) -> None:
    """However rounds overlap, a provider must take what comes out."""
    history: list[dict[str, Any]] = [USER, calls("a"), calls("b"), calls("c")]
    for one, talk in zip(order, talks, strict=True):
        history += [USER] if talk else []
        history.append(result(one))

    assert check_request(straightened(history))
