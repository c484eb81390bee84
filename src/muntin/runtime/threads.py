"""Run blocking calls in daemon threads so that a hung call cannot block past its timeout.

Thread pools are not used: the interpreter waits for their threads at exit, and a hung call would
occupy a worker that others need. A caller that times out drops the future; the thread ends with its
work or with the process.

The caller decides how long to wait and what a failure means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

__all__ = ("in_thread", "settle")

ResultT = TypeVar("ResultT")


def in_thread(work: Callable[[], ResultT], *, name: str) -> Future[ResultT]:
    """Start work in a thread of its own, with the caller's context variables.

    Args:
        work: What is to be done. Whatever it raises is raised where the result is taken.
        name: What the thread is called.

    ```python
    from muntin.runtime.threads import in_thread

    print(in_thread(lambda: 6 * 7, name="sum").result())
    #> 42
    ```
    """
    import contextvars
    import threading
    from concurrent.futures import Future

    future: Future[ResultT] = Future()
    context = contextvars.copy_context()
    threading.Thread(
        target=context.run, args=(settle, future, work), name=name, daemon=True
    ).start()
    return future


def settle(future: Future[ResultT], work: Callable[[], ResultT]) -> None:
    """Do work in this thread and give its result, or what it raises, to a future."""
    # From here on a caller that times out can no longer cancel the future.
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except StopIteration as stop:  # a future cannot carry it to a coroutine, see PEP 479
        error = RuntimeError("the work raised StopIteration")
        error.__cause__ = stop
        future.set_exception(error)
    except BaseException as error:  # noqa: BLE001 - raised again where the result is taken
        future.set_exception(error)
    else:
        future.set_result(result)
