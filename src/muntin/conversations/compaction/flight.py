"""Run one compaction pass per conversation at a time; re-entrant calls do not wait.

The caller that starts a pass runs it. Callers that come meanwhile wait until it ends and look
again, so that ten requests cost one summary. A call from inside the pass, or from the thread that
the pass needs, gets the unchanged history instead, because waiting would never end.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    from muntin.conversations.asking import Summary
    from muntin.conversations.compaction.recapping import Recapped

__all__ = ("Flight",)

_leading: ContextVar[tuple[Flight, ...]] = ContextVar("muntin_flights", default=())
"""Passes that the running code leads, in whatever thread or task it continues."""


class Flight:
    """A pass that is being made."""

    verdict: Recapped | None = None
    """What the summariser gave; `None` until then, and when the pass was cancelled."""

    def __init__(self, digest: bytes, *, thread: int) -> None:
        """Begin a pass.

        Args:
            digest: Names the messages that are folded.
            thread: Identifier of the thread that must not be blocked while the pass runs: the
                caller's, whose event loop goes on.
        """
        from concurrent.futures import Future

        self.digest = digest
        self._thread = thread
        self._landed: Future[None] = Future()
        # A caller that gives up waiting must not cancel the others.
        self._landed.set_running_or_notify_cancel()

    @contextmanager
    def led_from_here(self) -> Generator[None]:
        """Mark what runs inside the block, threads and tasks it starts included, as the pass."""
        token = _leading.set((*_leading.get(), self))
        try:
            yield
        finally:
            _leading.reset(token)

    def land(self) -> None:
        """Wake the callers that wait. Called once, when the next pass may begin."""
        self._landed.set_result(None)

    def failure_at(self, digest: bytes) -> Summary | None:
        """Return what went wrong, if the pass failed over the very prefix of this digest."""
        if self.verdict is None or self.verdict.summary.text or digest != self.digest:
            return None
        return replace(self.verdict.summary, calls=0)

    def is_mine(self) -> bool:
        """Whether the code that asks runs inside this very pass."""
        return any(flight is self for flight in _leading.get())

    def blocks_this_thread(self) -> bool:
        """Whether the pass needs this thread to go on, so that it must not be blocked."""
        return self._thread == threading.get_ident()

    def wait(self) -> None:
        """Block until the pass has landed."""
        self._landed.result()

    async def await_landing(self) -> None:
        """Wait until the pass has landed, without blocking the loop."""
        import asyncio

        await asyncio.wrap_future(self._landed)
