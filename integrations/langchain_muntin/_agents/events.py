"""Send accounts and decisions to callbacks and to LangGraph's custom stream, if any listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables.config import ensure_config

from muntin.runtime import off_loop, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig

    from muntin.adapting import RequestAccount

__all__ = ("DECISION_EVENT", "REQUEST_EVENT", "Publish")

DECISION_EVENT = "muntin.decision"
"""Name of the custom event that carries the report of a new decision, in its written form."""
REQUEST_EVENT = "muntin.request"
"""Name of the custom event that carries the account of a request, and its `type` in a stream."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Send the account of a request, and the report of a new decision."""

    account: RequestAccount
    write: Callable[[Any], None] | None = None
    """Writes to the custom stream; `None` writes nothing."""

    def do(self) -> None:
        """Send them."""
        self._stream()
        config = _listening()
        if config is not None:
            for name, data in self._events():
                dispatch_custom_event(name, data, config=config)

    async def ado(self) -> None:
        """Send them without blocking the event loop."""
        config = _listening()
        if config is None and not self._is_streamed:
            return
        size = size_of(self.account.outgoing.messages)
        await off_loop(self.account.to_dict, size=size)  # what it computes is kept
        self._stream()
        if config is not None:
            for name, data in await off_loop(lambda: list(self._events()), size=size):
                await adispatch_custom_event(name, data, config=config)

    @property
    def _is_streamed(self) -> bool:
        # LangGraph's writer for a run without a stream does nothing and has this name.
        return self.write is not None and "no_op" not in getattr(self.write, "__name__", "")

    def _stream(self) -> None:
        if self.write is not None and self._is_streamed:
            self.write({"type": REQUEST_EVENT, **self.account.to_dict()})

    def _events(self) -> Iterator[tuple[str, Any]]:
        yield REQUEST_EVENT, self.account.to_dict()
        report = self.account.outgoing.report
        if report is not None:
            yield DECISION_EVENT, report.to_dict()


def _listening() -> RunnableConfig | None:
    """Return the configuration of the current run if it has handlers."""
    config = ensure_config()
    manager: Any = config.get("callbacks")
    if getattr(manager, "parent_run_id", None) is None or not getattr(manager, "handlers", None):
        return None
    return config
