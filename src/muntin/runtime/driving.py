"""Run a policy, written once as a generator, from sync and from async code.

A policy yields what it needs: a summary, a call to a store, a request to a model. It is sent the
answer, and what the attempt raises is thrown into it, so the policy alone decides what a failure
means. `drive` and `adrive` are the only difference between a sync and an async entry point.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from muntin.errors import is_control_flow
from muntin.runtime.workers import off_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ("adrive", "drive")

NeedT = TypeVar("NeedT")
ResultT = TypeVar("ResultT")


def drive(flow: Generator[NeedT, Any, ResultT], answer: Callable[[NeedT], Any]) -> ResultT:
    """Run a policy to its end and block on each answer.

    Args:
        flow: The policy.
        answer: Returns what the policy needs. What it raises is thrown into the policy, unless it
            controls the program: then the policy is closed.

    ```python
    from muntin.runtime import drive

    def policy():
        size = yield "abc"
        return size * 2

    print(drive(policy(), len))
    #> 6
    ```
    """
    resume: Callable[[], NeedT] = partial(next, flow)
    with closing(flow):
        while True:
            ended, value = _until_need(resume)
            if ended:
                return cast("ResultT", value)
            try:
                resume = partial(flow.send, answer(value))
            except BaseException as error:
                if is_control_flow(error):
                    raise
                resume = partial(flow.throw, error)


async def adrive(
    flow: Generator[NeedT, Any, ResultT],
    answer: Callable[[NeedT], Awaitable[Any]],
    *,
    size: int = 0,
) -> ResultT:
    """Run a policy to its end without blocking the event loop.

    Args:
        flow: The policy.
        answer: As in `drive`.
        size: Characters the policy works on; from `LARGE` on, its own work is done in a thread.
    """
    resume: Callable[[], NeedT] = partial(next, flow)
    try:
        while True:
            ended, value = await off_loop(partial(_until_need, resume), size=size)
            if ended:
                return cast("ResultT", value)
            try:
                resume = partial(flow.send, await answer(value))
            except BaseException as error:
                if is_control_flow(error):
                    raise
                resume = partial(flow.throw, error)
    finally:
        # A cancelled call leaves a thread that is at work to end by itself.
        if not getattr(flow, "gi_running", False):
            flow.close()


def _until_need(resume: Callable[[], Any]) -> tuple[bool, Any]:
    """Resume a policy; return whether it ended, with its result or what it needs next."""
    try:
        return False, resume()
    except StopIteration as end:
        return True, end.value
