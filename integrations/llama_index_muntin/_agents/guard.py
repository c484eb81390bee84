"""The context in which an agent takes a fitted step: what it sees, and what it may send.

It wraps the context of the workflow and uses its public methods alone: a store that shows the
fitted steps and adds new ones to the real ones, and an event stream on which every request appears
before it is sent. It fits nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import AgentInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("FittedStore", "GuardedContext", "Overrun")


class Overrun(Exception):  # noqa: N818 - never leaves this package
    """The agent was about to send more than fits."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        super().__init__(tokens)


class GuardedContext:
    """A context that shows the fitted steps and stops requests that are too large."""

    def __init__(
        self, ctx: Any, key: str, shown: list[Any], check: Callable[[Sequence[Any]], int]
    ) -> None:
        self._ctx = ctx
        self._check = check
        self.store = FittedStore(ctx.store, key, shown)
        self.sent: int | None = None

    @property
    def is_running(self) -> bool:
        """Always true: an agent writes its request to the stream only while it runs."""
        return True

    def write_event_to_stream(self, event: Any) -> None:
        """Pass an event on; what is about to be sent is counted first."""
        if isinstance(event, AgentInput):
            self.sent = self._check(event.input)
        self._ctx.write_event_to_stream(event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


class FittedStore:
    """A state store that shows fitted steps, and adds new ones to the real ones."""

    def __init__(self, store: Any, key: str, shown: list[Any]) -> None:
        self._store = store
        self._key = key
        self._shown = shown

    async def get(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """Return a value; for the steps, the fitted ones."""
        if path == self._key:
            return list(self._shown)
        return await self._store.get(path, *args, **kwargs)

    async def set(self, path: str, value: Any) -> None:
        """Set a value; for the steps, add the new ones to the real ones."""
        if path != self._key:
            await self._store.set(path, value)
            return
        before = len(self._shown)
        if len(value) >= before and all(a is b for a, b in zip(self._shown, value, strict=False)):
            real: list[Any] = await self._store.get(path, default=[])
            await self._store.set(path, [*real, *value[before:]])
            self._shown = list(value)
        else:  # not an addition: the agent replaces all steps
            await self._store.set(path, value)
            self._shown = list(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
