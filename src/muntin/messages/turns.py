"""Find what belongs together in a conversation, and where it may be cut.

A *unit* is an assistant message with the results of all its calls, wherever they are: parallel,
interleaved with other calls, late, or with notes in between. Every message belongs to exactly one
unit, so keeping or dropping whole units never separates a result from its call, a reasoning item
from its answer, or one parallel call from the others. A *turn* is a user message and everything up
to the next one. All of it takes one pass over the views.

It reads views only. What to keep is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.shapes.views import MessageView

__all__ = (
    "Division",
    "PairingProblem",
    "Unit",
    "UnitKind",
    "cut_points",
    "divide",
    "in_flight",
    "leading_system",
    "newest_user",
    "pairing_problems",
    "turn_starts",
    "units",
)

UnitKind = Literal["system", "user", "assistant", "tools", "orphan"]
"""What a unit is: one message of a role, a round of tool calls, or results without a call."""


class Unit(NamedTuple):
    """Messages that are kept or dropped together."""

    indices: tuple[int, ...]
    """Positions of its messages, ascending; not always neighbours."""
    kind: UnitKind
    """What it is."""
    unanswered: tuple[str, ...] = ()
    """Ids of its calls that have no result."""
    orphans: tuple[tuple[int, str], ...] = ()
    """Results in it that answer no earlier call: position and id."""
    is_bare: bool = False
    """Whether it has calls and not one result."""

    def moved(self, by: int) -> Unit:
        """Return the same unit of a conversation that has `by` messages more in front."""
        return Unit(
            tuple([index + by for index in self.indices]),
            self.kind,
            self.unanswered,
            tuple([(index + by, call_id) for index, call_id in self.orphans]),
            self.is_bare,
        )

    @property
    def first(self) -> int:
        """Position of its first message."""
        return self.indices[0]

    @property
    def last(self) -> int:
        """Position of its last message."""
        return self.indices[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A conversation divided into units, and the part that later messages cannot change."""

    units: tuple[Unit, ...]
    """All units, in the order of their first message."""
    closed: int
    """Position before which no unit can grow: every call is answered there."""
    closed_units: int
    """How many units lie before that position."""


@dataclass(frozen=True, slots=True)
class PairingProblem:
    """Name one call or result that a provider would refuse."""

    index: int
    """Position of the message."""
    kind: Literal["orphan", "unanswered"]
    """A result without an earlier call, or a call without a result that is not the tail."""
    call_id: str
    """Id of the call."""


class _Groups:
    """Assign messages to groups, and join two groups when one message belongs to both."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, index: int) -> int:
        parent = self._parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        # The earlier message leads, so that units come out in the order of their first message.
        self._parent[max(one, other)] = min(one, other)


@dataclass(slots=True)
class _Pairs:
    """Which message answers which."""

    groups: _Groups
    single: list[bool]
    """Whether a message has nothing to do with any other."""
    open: dict[str, list[int]]
    orphans: list[tuple[int, str]]
    closed: int
    """Position before which everything is paired for good."""


def _pair(views: Sequence[MessageView], limit: int | None = None) -> _Pairs:
    groups = _Groups(len(views))
    waiting: dict[str, list[int]] = {}
    orphans: list[tuple[int, str]] = []
    leads, closed = False, 0
    limit = len(views) if limit is None else limit
    single: list[bool] = []
    for index, view in enumerate(views):
        after_lead, leads = leads, view.leads
        is_single = not after_lead and view.stands_alone
        single.append(is_single)
        if is_single:
            if not waiting and index < limit:
                closed = index + 1
            continue
        if index and view.role == "assistant":
            before = views[index - 1]
            if before.leads or (before.item and view.item):
                groups.join(index - 1, index)
        for result in view.results:
            callers = waiting.get(result.call_id) if result.call_id else _newest(waiting)
            if not callers:
                orphans.append((index, result.call_id))
                continue
            # The newest call of that id: ids are reused, and a copy of a round may lie open.
            groups.join(callers.pop(), index)
            if result.call_id and not callers:
                del waiting[result.call_id]
        for call in view.calls:
            waiting.setdefault(call.id, []).append(index)
        if index < limit and not (waiting or view.leads or view.item):
            closed = index + 1
    return _Pairs(groups, single, waiting, orphans, closed)


def _newest(waiting: dict[str, list[int]]) -> list[int] | None:
    """Match a result without an id to the latest call (legacy protocol)."""
    while waiting:
        newest = next(reversed(waiting))
        if waiting[newest]:
            return waiting[newest]
        del waiting[newest]
    return None


def units(views: Sequence[MessageView]) -> tuple[Unit, ...]:
    """Divide a conversation into units, in the order of their first message.

    ```python
    from muntin.messages.shapes import view
    from muntin.messages.turns import units

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "A door."},
    ]
    print([unit.indices for unit in units([view(message) for message in history])])
    #> [(0,), (1, 2)]
    ```
    """
    return divide(views).units


def divide(
    views: Sequence[MessageView], known: Division | None = None, *, until: int | None = None
) -> Division:
    """Divide a conversation into units, going on from where an earlier division holds.

    Args:
        views: The conversation.
        known: Division of a conversation that this one continues; `None` begins anew.
        until: Position beyond which nothing is taken as closed; `None` means the end.
    """
    start = known.closed if known is not None else 0
    limit = len(views) if until is None else until
    found, closed = _divide(views[start:] if start else views, limit - start)
    if known is not None and start:
        found = [*known.units[: known.closed_units], *(unit.moved(start) for unit in found)]
    closed += start
    size = len(found)
    while size and found[size - 1].indices[0] >= closed:
        size -= 1
    return Division(units=tuple(found), closed=closed, closed_units=size)


def _divide(views: Sequence[MessageView], limit: int) -> tuple[list[Unit], int]:
    pairs = _pair(views, limit)
    # Each unit is put at the place of its first message: that is their order, without a sort.
    found: list[Unit | None] = [None] * len(views)
    members: dict[int, list[int]] = {}
    find, is_single = pairs.groups.find, pairs.single
    for index, view in enumerate(views):
        if is_single[index]:
            found[index] = Unit((index,), _plain(view))
        else:
            members.setdefault(find(index), []).append(index)
    missing: dict[int, list[str]] = {}
    for call_id, callers in pairs.open.items():
        for caller in callers:
            missing.setdefault(find(caller), []).append(call_id)
    stray: dict[int, list[tuple[int, str]]] = {}
    for index, call_id in pairs.orphans:
        stray.setdefault(find(index), []).append((index, call_id))
    for lead, indices in members.items():
        found[indices[0]] = Unit(
            tuple(indices),
            _kind(views, indices),
            tuple(missing.get(lead, ())),
            tuple(stray.get(lead, ())),
            lead in missing and not any(views[index].results for index in indices),
        )
    return [unit for unit in found if unit is not None], pairs.closed


def _plain(view: MessageView) -> UnitKind:
    return "orphan" if view.role == "tool" else view.role


def _kind(views: Sequence[MessageView], indices: list[int]) -> UnitKind:
    for index in indices:
        if views[index].calls:
            return "tools"
    return _plain(views[indices[0]])


def in_flight(views: Sequence[MessageView], found: Sequence[Unit]) -> Unit | None:
    """Return the tool round the model is in the middle of; `None` when none is open.

    It is the newest round with calls, if no message followed: only its results, system
    messages and injected notes may follow it.
    """
    for index in range(len(views) - 1, -1, -1):
        view = views[index]
        if view.calls:
            return next(unit for unit in reversed(found) if index in unit.indices)
        if view.role == "assistant" and not view.injected:
            return None
        if view.is_user_turn and not view.results:
            return None
    return None


def pairing_problems(views: Sequence[MessageView]) -> tuple[PairingProblem, ...]:
    """List results without an earlier call and calls without a result, the open tail excepted."""
    pairs = _pair(views)
    problems = [PairingProblem(index, "orphan", call_id) for index, call_id in pairs.orphans]
    if any(pairs.open.values()):
        tail = in_flight(views, units(views))
        allowed = set(tail.indices) if tail else set[int]()
        problems += [
            PairingProblem(caller, "unanswered", call_id)
            for call_id, callers in pairs.open.items()
            for caller in callers
            if caller not in allowed
        ]
    return tuple(sorted(problems, key=lambda problem: problem.index))


def leading_system(views: Sequence[MessageView]) -> int:
    """Count the system messages a conversation opens with, before any other message.

    Injected ones do not count: a recap that was put there is not the caller's own instruction.
    """
    for index, view in enumerate(views):
        if view.role != "system" or view.injected:
            return index
    return len(views)


def newest_user(views: Sequence[MessageView]) -> int | None:
    """Find the newest message of the user; `None` if there is none."""
    for index in range(len(views) - 1, -1, -1):
        if views[index].is_user_turn:
            return index
    return None


def turn_starts(views: Sequence[MessageView]) -> tuple[int, ...]:
    """List where turns begin: at every user message that was not injected."""
    return tuple(index for index, view in enumerate(views) if view.is_user_turn)


def cut_points(found: Sequence[Unit], size: int) -> tuple[int, ...]:
    """List the positions at which a conversation of `size` messages may be cut in two.

    A cut at `k` puts `messages[:k]` on one side; no unit lies on both.
    """
    reaches = [0] * (size + 1)
    for unit in found:
        reaches[unit.first] = max(reaches[unit.first], unit.last)
    points: list[int] = []
    reach = -1
    for position in range(size + 1):
        if reach < position:
            points.append(position)
        reach = max(reach, reaches[position])
    return tuple(points)
