"""Decide which messages of a conversation are protected.

Protected are the leading system messages, pinned messages, the calls of the tool round in flight,
and the open request: every user message since the last finished request. A request is finished
when an assistant message without calls answered it and a later user message began something else.
An assistant question or plan followed by a go-ahead does not finish it.

The newest user message and pinned messages never change. The other messages of the open request
are the last to be cut, and at most half of the space is kept for the open request in this way.

It reads views and units only, and it changes nothing. Fitting and compaction use it alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from muntin.conversations.approvals import asks_something, is_go_ahead, is_short_reply
from muntin.messages import in_flight, newest_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.messages import MessageView, Unit

__all__ = ("OPEN_SHARE", "Protected", "open_request", "protected_set", "share_of_open_request")

OPEN_SHARE = 0.5
"""Share of the space that the open request may keep."""
_REPLY_SHARE = 0.2
"""Share of the space that replies to questions of the assistant may keep: facts hold most of their
content in less."""
_MOST = 64
"""User messages of an open request. A longer chain is a log, and only its newest is protected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Positions of protected messages."""

    opening: int
    """How many system messages open the conversation, notes of earlier fits included."""
    system: tuple[int, ...]
    """Those of them that the caller wrote."""
    pinned: tuple[int, ...]
    """Messages that the caller pinned."""
    newest: int | None
    """The newest user message; `None` when there is none."""
    earlier: tuple[int, ...]
    """The other messages of the open request, oldest first."""
    replies: tuple[int, ...]
    """Those of them that only reply to a question of the assistant, the first message excepted."""
    tail: Unit | None
    """The tool round in flight; its calls stay, its results may be shortened. `None`: none is."""

    @property
    def verbatim(self) -> frozenset[int]:
        """Messages that never change: leading system messages, pins and the newest request."""
        newest = () if self.newest is None else (self.newest,)
        return frozenset((*self.system, *self.pinned, *newest))


def protected_set(views: Sequence[MessageView], found: Sequence[Unit]) -> Protected:
    """Return what is protected in a conversation.

    Args:
        views: The messages.
        found: Their units, as `muntin.messages.units` divides them.

    ```python
    from muntin.conversations import protected_set
    from muntin.messages import units, view

    said = [("user", "List the invoices."), ("assistant", "There are three."),
            ("user", "Write the report."), ("assistant", "I will read first. Shall I?"),
            ("user", "yes")]
    views = [view({"role": role, "content": text}) for role, text in said]
    protected = protected_set(views, units(views))
    print(protected.newest, protected.earlier)
    #> 4 (2,)
    ```
    """
    newest = newest_user(views)
    opened = open_request(views, found)
    opening = next((at for at, view in enumerate(views) if view.role != "system"), len(views))
    return Protected(
        opening=opening,
        system=tuple(at for at in range(opening) if not views[at].injected),
        pinned=tuple(at for at, view in enumerate(views) if view.pinned),
        newest=newest,
        earlier=tuple(at for at in opened if at != newest),
        replies=_replies(views, opened, newest),
        tail=in_flight(views, found),
    )


def open_request(views: Sequence[MessageView], found: Sequence[Unit]) -> tuple[int, ...]:
    """Return the positions of the user messages that make up the open request, oldest first."""
    asked = [at for at in _newest_first(views) if views[at].text.strip() or views[at].media]
    if not asked:
        return ()
    with_calls = _in_tool_rounds(found, asked[-1])
    opened = [asked[0]]
    end = len(views)
    for newer, older in pairwise(asked):
        if not _goes_on(views, with_calls, older, newer, end):
            break
        opened.append(older)
        end = newer
    return tuple(reversed(opened)) if len(opened) <= _MOST else (asked[0],)


def _replies(
    views: Sequence[MessageView], opened: Sequence[int], newest: int | None
) -> tuple[int, ...]:
    """Return the messages of the open request that the assistant spoke before."""
    return tuple(
        at
        for before, at in pairwise(opened)
        if at != newest
        and any(view.role == "assistant" and view.text for view in views[before + 1 : at])
    )


def _newest_first(views: Sequence[MessageView]) -> list[int]:
    """List the newest user messages, newest first."""
    asked: list[int] = []
    for at in range(len(views) - 1, -1, -1):
        if views[at].is_user_turn:
            asked.append(at)
            if len(asked) > _MOST:
                break
    return asked


def _in_tool_rounds(found: Sequence[Unit], start: int) -> set[int]:
    """Return the messages from `start` on that belong to a round of tool calls."""
    rounds: set[int] = set()
    for unit in reversed(found):
        if unit.last < start:
            break
        if unit.kind in ("tools", "orphan"):
            rounds.update(unit.indices)
    return rounds


def _goes_on(
    views: Sequence[MessageView], with_calls: set[int], older: int, newer: int, end: int
) -> bool:
    """Return whether a user message continues the request of the one before it."""
    answer = next(
        (
            at
            for at in range(newer - 1, older, -1)
            if views[at].role == "assistant" and at not in with_calls and views[at].text.strip()
        ),
        None,
    )
    if answer is None or is_go_ahead(views[newer].text) or asks_something(views[answer].text):
        return True
    # In a language without a word list: the assistant only planned, and worked after a short reply.
    return (
        is_short_reply(views[newer].text)
        and not any(at in with_calls for at in range(older, newer))
        and any(at in with_calls for at in range(newer, end))
    )


def share_of_open_request(
    protected: Protected, sizes: Mapping[int, int], space: int, *, least: int
) -> dict[int, int]:
    """Divide the space kept for the open request among its messages.

    The newest message is always whole. The first one takes what it needs of the rest of half the
    space. The messages between them stay if all of them fit.

    Args:
        protected: What is protected.
        sizes: Tokens of each message of the open request.
        space: Tokens of the budget without the leading system messages, tools and framing.
        least: Tokens below which a shortened message is of no use.

    Returns:
        For each message in `protected.earlier` the tokens it may take; 0 keeps nothing of it.
    """
    left = int(OPEN_SHARE * space)
    if protected.newest is not None:
        left -= sizes[protected.newest]
    first, others = protected.earlier[:1], protected.earlier[1:]
    shares: dict[int, int] = {}
    for at in first:
        share = min(sizes[at], max(left, 0))
        shares[at] = share if share == sizes[at] or share >= least else 0
        left -= shares[at]
    # All of the others or none: a choice among them would change with every message that follows.
    replies = [at for at in others if at in protected.replies]
    added = [at for at in others if at not in protected.replies]
    for group, room in ((added, left), (replies, min(left, int(_REPLY_SHARE * space)))):
        needed = sum(sizes[at] for at in group)
        shares.update({at: sizes[at] if needed <= room else 0 for at in group})
        left -= needed if needed <= room else 0
    return shares
