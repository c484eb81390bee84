"""Run one policy from sync and from async code.

A policy is a generator. It yields steps (fit these messages, call that model), is sent the result
of each, and an exception of a step is thrown into it. `drive` and `adrive` are the only difference
between a sync and an async entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from muntin.adapting.workers import off_loop
from muntin.conversations import FittedMessages, afit_messages, fit_messages

__all__ = ("Fit", "Policy", "Step", "adrive", "drive")

ResultT = TypeVar("ResultT")


class Step(Protocol):
    """Something to do, from sync or async code."""

    def do(self) -> Any:
        """Do it."""
        ...

    async def ado(self) -> Any:
        """Do it without blocking the event loop."""
        ...


Policy: TypeAlias = Generator[Step, Any, ResultT]
"""Yields steps, is sent the result of each, returns a result."""


def drive(policy: Policy[ResultT]) -> ResultT:
    """Run a policy to its end."""
    with closing(policy):
        try:
            step = next(policy)
            while True:
                try:
                    result = step.do()
                except Exception as error:  # noqa: BLE001 - the policy decides what it means
                    step = policy.throw(error)
                else:
                    step = policy.send(result)
        except StopIteration as end:
            return cast("ResultT", end.value)


async def adrive(policy: Policy[ResultT], *, size: int = 0) -> ResultT:
    """Run a policy to its end without blocking the event loop.

    Args:
        policy: The policy.
        size: Characters it works on; above `workers.LARGE` its own work is done in a thread.
    """
    resume: Callable[[], Any] = lambda: next(policy)  # noqa: E731 - replaced below
    try:
        while True:
            ended, value = await off_loop(_until_step(resume), size=size)
            if ended:
                return cast("ResultT", value)
            try:
                result = await cast("Step", value).ado()
            except Exception as error:  # noqa: BLE001 - the policy decides what it means
                resume = _throwing(policy, error)
            else:
                resume = _sending(policy, result)
    finally:
        if not getattr(
            policy, "gi_running", False
        ):  # a cancelled call leaves the thread to end by itself
            policy.close()


def _until_step(resume: Callable[[], Any]) -> Callable[[], tuple[bool, Any]]:
    """Return work that ends with the next step or the result; a future carries no StopIteration."""

    def work() -> tuple[bool, Any]:
        try:
            return False, resume()
        except StopIteration as end:
            return True, end.value

    return work


def _throwing(policy: Policy[Any], error: Exception) -> Callable[[], Any]:
    return lambda: policy.throw(error)


def _sending(policy: Policy[Any], result: Any) -> Callable[[], Any]:
    return lambda: policy.send(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Fit messages into a budget; a summariser among the arguments may be asked."""

    messages: Sequence[Any]
    """The messages."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The other arguments of `fit_messages`."""
    size: int = 0
    """Characters of the messages."""

    def do(self) -> FittedMessages[Sequence[Any]]:
        """Fit them."""
        return fit_messages(self.messages, **self.arguments)

    async def ado(self) -> FittedMessages[Sequence[Any]]:
        """Fit them without blocking the event loop."""
        if self.arguments.get("summarizer") is None:
            return await off_loop(self.do, size=self.size)
        return await afit_messages(self.messages, **self.arguments)
