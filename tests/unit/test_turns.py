"""What belongs together, and where a conversation may be cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from muntin.messages.message import ToolCall
from muntin.messages.shapes import MessageView, ToolResult, view
from muntin.messages.turns import (
    cut_points,
    in_flight,
    leading_system,
    newest_user,
    pairing_problems,
    turn_starts,
    units,
)
from strategies import conversations


def read(script: str) -> list[MessageView]:
    """Read a script of `S U A`, `A:c1,c2` (calls), `T:c1` (results) and `N` (an injected note)."""
    return [_read(word) for word in script.split()]


def _read(word: str) -> MessageView:
    letter, _, ids = word.partition(":")
    names = ids.split(",") if ids else []
    if letter == "A":
        calls = tuple(ToolCall(name, "f") for name in names)
        return MessageView(role="assistant", text="a", calls=calls)
    if letter == "T":
        results = tuple(ToolResult(call_id=name, text="r") for name in names)
        return MessageView(role="tool", results=results)
    if letter == "R":
        return MessageView(role="assistant", reasoning="r", leads=True, item=True)
    if letter == "I":
        calls = tuple(ToolCall(name, "f") for name in names)
        return MessageView(role="assistant", calls=calls, item=True)
    if letter == "N":
        return MessageView(role="user", text="n", injected=True)
    return MessageView(role="system" if letter == "S" else "user", text=letter)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("S U A", [(0,), (1,), (2,)]),
        ("U A:1 T:1 A", [(0,), (1, 2), (3,)]),
        ("U A:1,2 T:1 T:2", [(0,), (1, 2, 3)]),
        ("A:1 A:2 T:1 T:2", [(0, 2), (1, 3)]),  # interleaved
        ("A:1 U T:1", [(0, 2), (1,)]),  # somebody spoke in between
        ("A:1 T:1 U A:1 T:1", [(0, 1), (2,), (3, 4)]),  # ids used again
        ("A:1 A:2 T:1,2", [(0, 1, 2)]),  # one message answers two
        ("R I:1 I:2 T:1 T:2 R A", [(0, 1, 2, 3, 4), (5, 6)]),  # items of one model turn
        ("T:9 A", [(0,), (1,)]),
    ],
)
def test_units_hold_what_belongs_together(script: str, expected: list[tuple[int, ...]]) -> None:
    assert [unit.indices for unit in units(read(script))] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("U A:1 T:1", []),
        ("U A:1", []),  # the open tail
        ("U A:1,2 T:1", []),  # half answered, still running
        ("U A:1 U", [(1, "unanswered")]),
        ("U T:1", [(1, "orphan")]),
        ("A:1 T:1 T:1", [(2, "orphan")]),  # answered twice
        ("T:1 A:1", [(0, "orphan")]),  # the answer before the call; the call is the tail
        ("A:1 T:1 A:2 A", [(2, "unanswered")]),
    ],
)
def test_pairing_problems_are_what_a_provider_refuses(
    script: str, expected: list[tuple[int, str]]
) -> None:
    problems = pairing_problems(read(script))
    assert [(problem.index, problem.kind) for problem in problems] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("U A:1 T:1", (1, 2)),
        ("U A:1 T:1 A", None),
        ("U A:1 T:1 U", None),
        ("U A:1", (1,)),
        ("U A:1 T:1 N S", (1, 2)),  # notes do not end a round
        ("U A", None),
    ],
)
def test_the_round_in_flight_is_the_newest_until_somebody_speaks(
    script: str, expected: tuple[int, ...] | None
) -> None:
    views = read(script)
    tail = in_flight(views, units(views))
    assert (tail.indices if tail else None) == expected


def test_injected_messages_are_no_turns() -> None:
    """A recap written as a user message must not be taken for the question."""
    views = read("S N U A N")
    assert newest_user(views) == 2
    assert turn_starts(views) == (2,)
    assert leading_system(views) == 1


def test_cuts_are_never_inside_a_unit() -> None:
    views = read("S U A:1 U T:1 A")
    assert cut_points(units(views), len(views)) == (0, 1, 2, 5, 6)


@given(conversations())
def test_every_message_is_in_exactly_one_unit(messages: list[object]) -> None:
    found = units([view(message) for message in messages])
    assert sorted(i for unit in found for i in unit.indices) == list(range(len(messages)))
    assert [unit.first for unit in found] == sorted(unit.first for unit in found)


def test_ten_thousand_parallel_calls_take_linear_time() -> None:
    """The work per message must not grow with the batch: twice the calls, about twice the time."""

    def seconds(size: int) -> float:
        script = [
            MessageView(role="assistant", calls=tuple(ToolCall(str(i), "f") for i in range(size)))
        ]
        script += [MessageView(role="tool", results=(ToolResult(call_id=str(i), text=""),))
                   for i in range(size)]  # fmt: skip
        start = time.process_time()
        assert len(units(script)) == 1
        return time.process_time() - start

    # The least of several on both sides: one collection of garbage is no growth.
    small, large = (min(seconds(size) for _ in range(3)) for size in (2_000, 20_000))
    assert large < 60 * small
