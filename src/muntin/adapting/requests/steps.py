"""One policy, two ways to wait: steps that can be done plainly or awaited.

A policy is a generator. It yields steps (fit these messages, call that model), is sent what came of
each, and gets thrown what one raised. `drive` and `adrive` are all that the sync and the async
doors differ in.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from langchain_core.runnables import RunnableLambda

from muntin.conversations import FittedMessages, afit_messages, clean_messages, fit_messages
from muntin.messages import pairing_problems, repair, straight_order

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from muntin.counting import Measured, MessageCounts
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry

__all__ = ("Fit", "Policy", "Sound", "Step", "adrive", "drive", "runnable_of", "sound")

GivenT = TypeVar("GivenT")
ResultT = TypeVar("ResultT")


class Step(Protocol):
    """Something to be done, plainly or awaited."""

    def do(self) -> Any:
        """Do it."""
        ...

    async def ado(self) -> Any:
        """Do it without blocking the loop."""
        ...


if TYPE_CHECKING:
    Policy = Generator[Step, Any, ResultT]
    """Yields steps, is sent what came of them, returns a result."""


def drive(policy: Policy[ResultT]) -> ResultT:
    """Run a policy to its end."""
    with closing(policy):
        try:
            step = next(policy)
            while True:
                try:
                    came = step.do()
                except Exception as error:  # noqa: BLE001 - the policy decides what it means
                    step = policy.throw(error)
                else:
                    step = policy.send(came)
        except StopIteration as end:
            return cast("ResultT", end.value)


async def adrive(policy: Policy[ResultT]) -> ResultT:
    """Run a policy to its end without blocking the loop."""
    with closing(policy):
        try:
            step = next(policy)
            while True:
                try:
                    came = await step.ado()
                except Exception as error:  # noqa: BLE001 - the policy decides what it means
                    step = policy.throw(error)
                else:
                    step = policy.send(came)
        except StopIteration as end:
            return cast("ResultT", end.value)


def runnable_of(
    policy: Callable[[GivenT], Policy[ResultT]], *, name: str
) -> Runnable[GivenT, ResultT]:
    """Make a runnable of a policy: `invoke` drives it plainly, `ainvoke` awaits its steps."""

    def plain(given: GivenT) -> ResultT:
        return drive(policy(given))

    async def awaited(given: GivenT) -> ResultT:
        return await adrive(policy(given))

    return RunnableLambda(plain, afunc=awaited, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Fit messages into a budget; a summariser among the arguments may be asked."""

    messages: Sequence[BaseMessage]
    """What is to be fitted."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The other arguments of `fit_messages`."""

    def do(self) -> FittedMessages[Sequence[BaseMessage]]:
        """Fit them."""
        return fit_messages(self.messages, **self.arguments)

    async def ado(self) -> FittedMessages[Sequence[BaseMessage]]:
        """Fit them without blocking the loop."""
        return await afit_messages(self.messages, **self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Messages a provider accepts, and what had to be done for that."""

    messages: Sequence[BaseMessage]
    """The messages; the very object that was given where nothing was wrong with it."""
    measured: Sequence[Measured]
    """How each reads and what it costs."""
    views: Sequence[MessageView]
    """How each reads."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""


def sound(
    messages: Sequence[BaseMessage], counts: MessageCounts, prompts: PromptRegistry | None = None
) -> Sound:
    """Make messages encodable, put results behind their calls, mend broken pairs: where needed.

    Whether it is needed is found out from what is remembered of each message.
    """
    messages, read = clean_messages(messages, counts)
    given, notes = messages, list[str]()
    measured = read.measured
    views = [one.view for one in measured]
    order = straight_order(views)
    if order is not None:
        messages = [messages[index] for index in order]
        views = [views[index] for index in order]
        notes.append("tool results were moved up to the calls they answer")
    if pairing_problems(views):
        mended = repair(messages, prompts=prompts)
        messages = list(mended)
        notes.append(
            f"broken pairs were mended: {len(mended.dropped)} messages left out, "
            f"{len(mended.answered)} calls answered by a note"
        )
    if messages is not given:
        measured = counts.measure_all(messages)
        views = [one.view for one in measured]
    return Sound(messages=messages, measured=measured, views=views, notes=tuple(notes))
