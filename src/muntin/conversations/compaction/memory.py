"""What a compactor remembers: recaps by the messages they cover, and trails by conversation.

A recap is the truth: it is found again for a longer history, a branch, or in another process.
Trails only make the next call cheap. Both are bounded: recaps that a newer one continues go first,
then what was used least recently. It asks no summariser and makes no decision.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from muntin.conversations.compaction.trail import Trail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from muntin.conversations.compaction.recap import Recap
    from muntin.conversations.compaction.trail import Kind
    from muntin.counting import MessageCounts
    from muntin.messages import MessageView

__all__ = ("Memory",)

_REMEMBERED_MESSAGES = 200_000
"""Messages all trails together may hold on to."""
_TAKEN_BACK = 8
"""A history this much shorter than its trail is the same conversation, taken back a little."""
_PROBE = 8
_START = 2
"""Messages by which trails are filed; conversations that begin alike are distinguished by the
rest."""


class Memory:
    """Remember recaps and trails. Not safe between threads by itself: the compactor locks."""

    def __init__(
        self,
        counts: MessageCounts,
        kind_of: Callable[[Any, MessageView], Kind],
        *,
        max_recaps: int,
    ) -> None:
        self._counts = counts
        self._kind_of = kind_of
        self._max_recaps = max_recaps
        self._recaps: OrderedDict[bytes, Recap] = OrderedDict()
        self._trails: OrderedDict[int, Trail] = OrderedDict()
        self._files: dict[bytes, list[Trail]] = {}
        self._messages = 0

    @property
    def recaps(self) -> tuple[Recap, ...]:
        """Every recap, the one to be forgotten first in front."""
        return tuple(self._recaps.values())

    def trail_of(self, history: Sequence[Any]) -> Trail:
        """Return the trail of a conversation, brought up to its history."""
        trail = next(reversed(self._trails.values()), None)
        shared = trail.shared(history) if trail and trail.opens(history) else 0
        if trail is None or shared < max(_START, len(trail.messages) - _TAKEN_BACK):
            fresh = Trail(self._counts, self._kind_of)
            fresh.follow(history[:_START], 0)
            if len(history) < _START:
                return fresh
            trail, shared = self._filed(fresh, history)
        self._messages -= len(trail.messages)
        trail.follow(history, shared)
        self._messages += len(trail.messages)
        self._trails.move_to_end(id(trail))
        self._forget_trails()
        return trail

    def forget_counts(self) -> None:
        """Forget what messages cost, and keep the recaps."""
        self._trails.clear()
        self._files.clear()
        self._messages = 0

    def _filed(self, fresh: Trail, history: Sequence[Any]) -> tuple[Trail, int]:
        """Return the trail that knows most of a history, or a new one, and how much it knows."""
        fresh.start = fresh.chain[-1]
        filed = self._files.get(fresh.start, [])
        if len(filed) > 1:
            # A greeting opens a thousand chats: look a little further before comparing whole ones.
            fresh.follow(history[:_PROBE], _START)
            furthest = max(fresh.agrees_with(known) for known in filed)
            filed = [known for known in filed if fresh.agrees_with(known) == furthest]
        shared, trail = len(fresh.messages), None
        for known in filed:
            reach = known.shared(history)
            if trail is None or reach > shared:
                shared, trail = reach, known
        if trail is None:
            return self._file(fresh), shared
        if shared < len(trail.messages) - _TAKEN_BACK:
            return self._file(trail.fork(shared)), shared
        return trail, shared

    def recaps_of(self, trail: Trail) -> Iterator[Recap]:
        """Yield the recaps of a conversation's beginning, the one that covers most of it first."""
        last = {trail.recap.key: trail.recap} if trail.recap else {}
        for covered in range(len(trail.chain) - 1, 0, -1):
            key = trail.chain[covered]
            known = self._recaps.get(key) or last.get(key)
            if known is not None and known.covered == covered:
                yield known

    def serve(self, trail: Trail, recap: Recap | None) -> None:
        """Note which recap serves a conversation: it is forgotten last."""
        if recap is not trail.recap:
            trail.recap, trail.recap_tokens = recap, 0
        if recap is not None and recap.key in self._recaps:
            self._recaps.move_to_end(recap.key)

    def keep(self, recaps: Iterable[Recap], *, instead_of: Recap | None = None) -> None:
        """Remember recaps; the one they continue is the first to be forgotten from now on."""
        if instead_of is not None and instead_of.key in self._recaps:
            self._recaps.move_to_end(instead_of.key, last=False)
        for recap in recaps:
            self._recaps[recap.key] = recap
            self._recaps.move_to_end(recap.key)
        while len(self._recaps) > self._max_recaps:
            self._recaps.popitem(last=False)

    def _file(self, trail: Trail) -> Trail:
        self._files.setdefault(trail.start, []).append(trail)
        self._trails[id(trail)] = trail
        self._messages += len(trail.messages)
        return trail

    def _forget_trails(self) -> None:
        while len(self._trails) > 1 and (
            len(self._trails) > self._max_recaps or self._messages > _REMEMBERED_MESSAGES
        ):
            _, trail = self._trails.popitem(last=False)
            self._messages -= len(trail.messages)
            left = [known for known in self._files[trail.start] if known is not trail]
            if left:
                self._files[trail.start] = left
            else:
                del self._files[trail.start]
