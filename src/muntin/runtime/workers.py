"""Keep processor-heavy work off the event loop, in a few shared threads.

A thread costs more than small work, so work below `LARGE` characters runs at once. Larger work runs
in at most `MOST_THREADS` threads for the whole process: with one thread per call, hundreds of calls
would compete with the loop for the interpreter, and the loop would wait for all of them in turn.

The work runs with the context variables of its caller. A caller that is cancelled does not wait for
work that has begun; work that has not begun is not started.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sized
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, TypeVar, cast

from muntin.runtime.threads import in_thread, settle

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

__all__ = ("LARGE", "off_loop", "size_of")

ResultT = TypeVar("ResultT")

LARGE = 20_000
"""Characters from which work is done in a thread: about a millisecond of counting."""
MOST_THREADS = 4
"""Threads that work at the same time. More of them do not finish sooner under one interpreter lock,
and each can delay the event loop by a switch interval."""
IDLE_SECONDS = 5.0
"""Seconds a thread waits for more work: starting one makes the loop wait for the interpreter."""
_MESSAGE = 250
"""Characters that one message costs in addition to its text: its calls, its framing."""
_NAME = "muntin-work"

_working: ContextVar[bool] = ContextVar("muntin_working", default=False)
"""Whether the running code is work of the shared threads, or was started by it."""


async def off_loop(
    work: Callable[[], ResultT],
    *,
    size: int,
    abandoned: Callable[[ResultT], object] | None = None,
) -> ResultT:
    """Do work without blocking the event loop.

    Args:
        work: What to do. It runs with the context variables of the caller.
        size: Characters it reads; below `LARGE` it runs at once, on the loop.
        abandoned: Called with the result if the caller was cancelled after the work had begun;
            `None` drops the result.

    ```python
    import asyncio

    from muntin.runtime import off_loop

    print(asyncio.run(off_loop(lambda: 6 * 7, size=1_000_000)))
    #> 42
    ```
    """
    if size < LARGE:
        return work()
    import asyncio

    # Work that waits for other work must not wait for a thread which that work occupies.
    begun = in_thread(work, name=_NAME) if _working.get() else _threads.submit(work)
    try:
        return await asyncio.wrap_future(begun)
    except asyncio.CancelledError:
        if abandoned is not None:
            begun.add_done_callback(lambda done: _hand_over(done, abandoned))
        raise


def _hand_over(done: Future[ResultT], abandoned: Callable[[ResultT], object]) -> None:
    if not done.cancelled() and done.exception() is None:
        abandoned(done.result())


def size_of(messages: object) -> int:
    """Estimate the characters of messages in any shape; counting stops above `LARGE`."""
    is_one = isinstance(messages, (str, Mapping)) or hasattr(messages, "content")
    if is_one or not isinstance(messages, Iterable):
        return _size_of_one(cast("object", messages))
    size = 0
    for message in cast("Iterable[object]", messages):
        size += _MESSAGE + _size_of_one(message)
        if size >= LARGE:
            break
    return size


def _size_of_one(message: object) -> int:
    """Estimate the characters of one message, of a content block, or of any other value."""
    if isinstance(message, (str, bytes)):
        return len(message)
    size = 0
    for value in _values_of(message):
        size += len(value) if type(value) is str else _size_of_one(value)
        if size >= LARGE:
            break
    return size


def _values_of(message: object) -> Iterable[object]:
    """Return the values that hold text: entries of a container, or the content of an object."""
    if isinstance(message, Mapping):
        return cast("Mapping[object, object]", message).values()
    if isinstance(message, (list, tuple)):
        return cast("Iterable[object]", message)
    for name in ("content", "text", "parts"):
        value: object = getattr(message, name, None)
        if isinstance(value, Sized):
            return [cast("object", value)]
    return []


class _Threads:
    """Do work in a few daemon threads, which end after a time without work."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, work: Callable[[], ResultT]) -> Future[ResultT]:
        """Queue work; a thread is started if none is idle and fewer than `MOST_THREADS` run."""
        from concurrent.futures import Future

        future: Future[ResultT] = Future()
        context = copy_context()
        context.run(_working.set, True)  # noqa: FBT003 - a value, not an option
        with self._changed:
            self._waiting.append(lambda: context.run(settle, future, work))
            starts = self._threads < MOST_THREADS and self._idle < len(self._waiting)
            self._threads += starts
            self._changed.notify()
        if starts:
            threading.Thread(target=self._serve, name=_NAME, daemon=True).start()
        return future

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        """Wait for work; `None` if there was none for `IDLE_SECONDS`."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting, IDLE_SECONDS)
            self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


_threads = _Threads()


def _forget() -> None:
    """Begin anew in a forked process, in which no thread of its parent runs."""
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
