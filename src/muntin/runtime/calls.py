"""Run a policy that needs calls to a store, once for plain callers and once for async ones.

A policy is a generator: it yields a `Call`, is sent what the call returned, and returns its result.
`perform` makes each call and blocks; `aperform` awaits the async method where the store has one and
runs the plain one in a thread otherwise. What a call raises is thrown into the policy.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from muntin.errors import ConfigurationError
from muntin.runtime.driving import adrive, drive

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("Call", "CallFlow", "aperform", "method_call", "perform", "sleep_call")

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Ask for one operation, in a plain and perhaps an async way."""

    plain: Callable[[], Any]
    """Performs it and blocks."""
    twin: Callable[[], Awaitable[Any]] | None = None
    """Perform it without blocking; `None` if there is no such method."""


CallFlow: TypeAlias = Generator[Call, Any, ResultT]
"""A policy: yields calls, is sent what they returned, returns a result."""


def method_call(owner: Any, verb: str, *args: Any, **kwargs: Any) -> Call:
    """Return the call of a method; its async twin is the method named `a<verb>`, if there is one.

    ```python
    from muntin.runtime import method_call

    print(method_call("abc", "upper").plain())
    #> ABC
    ```
    """
    plain = getattr(owner, verb)
    twin = getattr(owner, f"a{verb}", None)
    return Call(
        plain=lambda: plain(*args, **kwargs),
        twin=(lambda: twin(*args, **kwargs)) if twin else None,
    )


def sleep_call(seconds: float) -> Call:
    """Return a call that waits."""
    import asyncio
    import time

    return Call(plain=lambda: time.sleep(seconds), twin=lambda: asyncio.sleep(seconds))


def perform(flow: CallFlow[ResultT]) -> ResultT:
    """Run a policy to its end and block on each call.

    Raises:
        ConfigurationError: An operation is async only; otherwise what the policy raises.
    """
    return drive(flow, _answer)


async def aperform(flow: CallFlow[ResultT]) -> ResultT:
    """Run a policy to its end without blocking the event loop.

    Raises:
        Exception: What the policy raises.
    """
    return await adrive(flow, _aanswer)


def _answer(call: Call) -> Any:
    answer = call.plain()
    if inspect.isawaitable(answer):
        _refuse(answer)
    return answer


async def _aanswer(call: Call) -> Any:
    import asyncio

    answer = await (call.twin() if call.twin else asyncio.to_thread(call.plain))
    return await answer if inspect.isawaitable(answer) else answer


def _refuse(answer: Any) -> None:
    close = getattr(answer, "close", None)
    if close is not None:
        close()  # or Python warns that it was never awaited
    raise ConfigurationError(
        "the store is async: await the method of the same name with an 'a' in front"
    )
