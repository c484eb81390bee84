"""Apply one function to many records in local worker processes.

Results come in the order of the records and are the same as one process gives. Records are read as
they are needed and a bounded number of them is in memory, so a batch may be larger than memory.
A record that fails, or that ends its worker process, is reported in its outcome; the batch goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Sized
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from muntin.errors import ConfigurationError, ContextError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

__all__ = ("Outcome", "Progress", "map_records")

_RecordT = TypeVar("_RecordT")
_ResultT = TypeVar("_ResultT")

_CHUNK = 16
"""Records sent to a worker at once when the number of records is unknown, and at most."""
_CHUNKS_PER_WORKER = 3
"""Chunks per worker that are in memory: one at work, one waiting, one finished out of order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[_ResultT]):
    """Hold the result of one record, or why there is none."""

    index: int
    """Position of the record in the input, from 0."""
    value: _ResultT | None = None
    """What the function returned; `None` where it failed."""
    error: Exception | None = None
    """What the function raised; `None` where it succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Count how far a batch is."""

    done: int
    """Records that are finished, failed ones included."""
    failed: int
    """Records that failed."""
    total: int | None
    """Records of the batch; `None` where the input has no length."""


Chunk: TypeAlias = list[tuple[int, Any]]
"""Records with their positions."""
Sent: TypeAlias = list[bytes]
"""Outcomes of a chunk, each pickled where it was made, so that one that cannot be is known."""


def map_records(
    function: Callable[[_RecordT], _ResultT],
    records: Iterable[_RecordT],
    *,
    workers: int | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Iterator[Outcome[_ResultT]]:
    """Apply a function to every record, in worker processes, and yield outcomes in order.

    Args:
        function: Takes one record. With more than one worker it must pickle: a function of a
            module, a `functools.partial` of one, or a picklable object with `__call__`. It may be
            called again for records that shared a worker with one that ended it.
        records: The records; any iterable, read lazily.
        workers: Processes. 1 works in this process and starts none; `None` takes one per usable
            processor. A program that starts processes has to be importable: its own code goes
            under `if __name__ == "__main__":`.
        on_progress: Called in this process after each record, with the counts so far.

    Yields:
        One outcome per record. A record whose function raises has the error in it; so has a record
        that ends its worker process (out of memory, a crash, a kill), as a `ContextError`.

    Raises:
        ConfigurationError: `workers` is below 1, the function does not pickle, or worker processes
            cannot start.

    ```python
    from muntin import count_tokens
    from muntin.scaling import map_records

    for outcome in map_records(count_tokens, ["hello world", None], workers=1):
        print(outcome.value, type(outcome.error).__name__)
    #> 3 NoneType
    #> 0 NoneType
    ```
    """
    count = _usable_processors() if workers is None else workers
    if isinstance(cast("object", count), bool) or not isinstance(cast("object", count), int):
        raise ConfigurationError(f"workers must be an int of at least 1, got {workers!r}")
    if count < 1:
        raise ConfigurationError(f"workers must be at least 1, got {workers}")
    total = len(records) if isinstance(records, Sized) else None
    if count == 1:
        outcomes = (_outcome(function, index, record) for index, record in enumerate(records))
    else:
        processes = count if total is None else max(1, min(count, total))
        outcomes = _in_processes(_pickled(function), records, processes, total)
    return counted(outcomes, total, on_progress)


def _usable_processors() -> int:
    """Return the processors this process may use, which a container can limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pickled(function: Callable[..., Any]) -> bytes:
    try:
        return pickle.dumps(function)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"the function cannot be sent to worker processes ({error}): define it in a module, or "
            f"give workers=1"
        ) from error


def counted(
    outcomes: Iterator[Outcome[_ResultT]],
    total: int | None,
    on_progress: Callable[[Progress], object] | None,
) -> Iterator[Outcome[_ResultT]]:
    """Yield outcomes, and report after each how far the batch is."""
    failed = 0
    for done, outcome in enumerate(outcomes, start=1):
        failed += outcome.error is not None
        if on_progress is not None:
            on_progress(Progress(done=done, failed=failed, total=total))
        yield outcome


def _outcome(function: Callable[..., _ResultT], index: int, record: object) -> Outcome[_ResultT]:
    try:
        return Outcome(index=index, value=function(record))
    except Exception as error:  # noqa: BLE001 - reported in the outcome of this record
        return Outcome(index=index, error=error)


# --- in the parent process -----------------------------------------------------------------------


def _in_processes(
    function: bytes, records: Iterable[Any], workers: int, total: int | None
) -> Iterator[Outcome[Any]]:
    numbered = enumerate(records)
    size = _CHUNK if total is None else max(1, min(_CHUNK, total // (workers * 4)))
    pool = _pool(function, workers)
    # Chunks in the order of the records, each with the future that works on it.
    waiting: deque[tuple[Chunk, Future[Sent] | None]] = deque()
    try:
        while True:
            while len(waiting) < workers * _CHUNKS_PER_WORKER:
                chunk = list(islice(numbered, size))
                if not chunk:
                    break
                waiting.append((chunk, _submit(pool, chunk)))
            if not waiting:
                return
            chunk, future = waiting.popleft()
            outcomes = _results(chunk, future)
            if outcomes is None:
                pool.shutdown(cancel_futures=True)
                # One process per record now, so that only the record that ends it is lost.
                outcomes = _one_by_one(function, chunk)
                pool = _pool(function, workers)
                finished = [(waited, done) for waited, done in waiting if _is_finished(done)]
                kept = {id(waited) for waited, _ in finished}
                waiting = deque(
                    (waited, done if id(waited) in kept else _submit(pool, waited))
                    for waited, done in waiting
                )
            yield from outcomes
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(function: bytes, workers: int) -> ProcessPoolExecutor:
    # "spawn" on every system: a fork copies the locks of threads that it does not copy.
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(function,),
    )


def _submit(pool: ProcessPoolExecutor, chunk: Chunk) -> Future[Sent] | None:
    """Send a chunk to a worker; None where the workers are gone."""
    try:
        return pool.submit(_work, chunk)
    except BrokenProcessPool:
        return None


def _is_finished(future: Future[Sent] | None) -> bool:
    return (
        future is not None
        and future.done()
        and not future.cancelled()
        and future.exception() is None
    )


def _results(chunk: Chunk, future: Future[Sent] | None) -> list[Outcome[Any]] | None:
    """Wait for the outcomes of a chunk; None where its worker process ended."""
    if future is None:
        return None
    try:
        sent = future.result()
    except BrokenProcessPool:
        return None
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if len(chunk) > 1:
            return None  # one record of it cannot be sent; find out which
        return [Outcome(index=chunk[0][0], error=error)]
    return received(chunk, sent)


def received(chunk: Chunk, sent: Sent) -> list[Outcome[Any]]:
    """Return the outcomes that a worker sent for a chunk."""
    return [_loaded(index, outcome) for (index, _), outcome in zip(chunk, sent, strict=True)]


def _loaded(index: int, sent: bytes) -> Outcome[Any]:
    try:
        return pickle.loads(sent)
    except Exception as problem:  # noqa: BLE001 - an object can pickle and not load, in any way
        error = ContextError(f"the result cannot be read in this process: {problem}")
        return Outcome(index=index, error=error)


def _one_by_one(function: bytes, chunk: Chunk) -> list[Outcome[Any]]:
    outcomes: list[Outcome[Any]] = []
    pool = _pool(function, 1)
    try:
        _require_start(pool)
        for entry in chunk:
            found = _results([entry], _submit(pool, [entry]))
            if found is None:
                ended = ContextError(
                    "the worker process ended while it worked on this record: it was killed, "
                    "crashed, or ran out of memory"
                )
                lost: Outcome[Any] = Outcome(index=entry[0], error=ended)
                found = [lost]
                pool.shutdown(cancel_futures=True)
                pool = _pool(function, 1)
            outcomes += found
    finally:
        pool.shutdown(cancel_futures=True)
    return outcomes


def _require_start(pool: ProcessPoolExecutor) -> None:
    try:
        pool.submit(_work, []).result()
    except BrokenProcessPool as error:
        raise ConfigurationError(
            "worker processes end before they work: put the program's own code under "
            "`if __name__ == '__main__':`, and check that the function can be imported in a new "
            "process, or give workers=1"
        ) from error


# --- in a worker process -------------------------------------------------------------------------

_function: Callable[..., Any] | None = None
"""The function of the batch; one pool has one batch."""


def _start(function: bytes) -> None:
    global _function
    _function = pickle.loads(function)


def _work(chunk: Chunk) -> Sent:
    function = _function
    if function is None:
        raise AssertionError("a worker was not started with a function")
    return worked(function, chunk)


def worked(function: Callable[[Any], Any], chunk: Chunk) -> Sent:
    """Apply a function to the records of a chunk and pickle each outcome."""
    return [_sendable(_outcome(function, index, record)) for index, record in chunk]


def _sendable(outcome: Outcome[Any]) -> bytes:
    """Pickle an outcome; in place of one that does not pickle, an error."""
    try:
        sent = pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL)
        if outcome.error is not None:
            pickle.loads(sent)
    except Exception as problem:  # noqa: BLE001 - any class can fail here in any way
        what = "returned a result" if outcome.error is None else f"raised {outcome.error!r}"
        error = ContextError(f"the function {what} that cannot be sent back: {problem}")
        failed: Outcome[Any] = Outcome(index=outcome.index, error=error)
        return pickle.dumps(failed)
    return sent
