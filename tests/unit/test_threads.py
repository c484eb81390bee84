"""Work that may hang is done where it can be left behind."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from muntin.runtime.threads import in_thread

_REQUEST = contextvars.ContextVar("request", default="nobody's")


def test_the_work_sees_the_context_of_whoever_started_it() -> None:
    """A trace or a tenant's name that is lost on the way leaves spans without parents."""
    _REQUEST.set("Ada's")

    assert in_thread(_REQUEST.get, name="look").result() == "Ada's"


def test_what_is_raised_is_raised_where_the_result_is_taken() -> None:
    """An error that only its thread sees is a request that never ends."""

    def fails() -> None:
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        in_thread(fails, name="fail").result(10)


def test_a_stray_stop_iteration_reaches_who_awaits_as_an_error() -> None:
    """A future hands it to no coroutine: the waiting task would never wake."""

    def stops() -> None:
        raise StopIteration("not a result")

    async def wait() -> None:
        async with asyncio.timeout(10):
            await asyncio.wrap_future(in_thread(stops, name="stop"))

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(wait())
    assert isinstance(caught.value.__cause__, StopIteration)


def test_one_that_hangs_neither_holds_up_the_others_nor_the_end_of_the_process() -> None:
    """Pools are waited for at exit: a script would hang on its last line."""
    code = (
        "import threading; from muntin.runtime.threads import in_thread\n"
        "for _ in range(50): in_thread(threading.Event().wait, name='hangs')\n"
        "print(in_thread(lambda: 'done', name='works').result())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "done\n"


def test_an_answer_after_the_waiting_was_given_up_is_nobodys_error() -> None:
    """A traceback from a thread, long after the request, explains nothing to anybody."""
    release = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.wrap_future(in_thread(release.wait, name="late"))

    asyncio.run(give_up())
    release.set()
    for thread in threading.enumerate():
        if thread.name == "late":
            thread.join(10)  # what it raises, pytest turns into a failure of this test
