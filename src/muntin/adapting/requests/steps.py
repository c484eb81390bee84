"""Run one policy from sync and from async code.

A policy yields steps: fit these messages, call that model. Each step knows how it is done from sync
and from async code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from muntin.conversations import FittedMessages, afit_messages, fit_messages
from muntin.runtime import adrive as adrive_flow
from muntin.runtime import drive as drive_flow
from muntin.runtime import in_thread

__all__ = ("Fit", "Hook", "Policy", "Step", "adrive", "drive")

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
    return drive_flow(policy, lambda step: step.do())


async def adrive(policy: Policy[ResultT], *, size: int = 0) -> ResultT:
    """Run a policy to its end without blocking the event loop.

    Args:
        policy: The policy.
        size: Characters it works on; its own work leaves the loop where they are many.
    """
    return await adrive_flow(policy, lambda step: step.ado(), size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Call a function of the user, which may block."""

    call: Callable[[], Any]
    """What to call."""

    def do(self) -> Any:
        """Call it."""
        return self.call()

    async def ado(self) -> Any:
        """Call it in a thread of its own: one that waits must not occupy a shared one."""
        import asyncio

        return await asyncio.wrap_future(in_thread(self.call, name="muntin-hook"))


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
        return await afit_messages(self.messages, **self.arguments)
