"""Tell callbacks what was decided, when any listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables.config import ensure_config

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from muntin.conversations import FittedMessages

__all__ = ("DECISION_EVENT", "Tell")

DECISION_EVENT = "muntin.decision"
"""Name of the custom event that carries the report of a new decision, in its written form."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Send the report of a decision to the callbacks of the run, if it has any."""

    fitted: FittedMessages[Any]

    def do(self) -> None:
        """Send it."""
        config = _listening()
        if config is not None:
            dispatch_custom_event(DECISION_EVENT, self.fitted.report.to_dict(), config=config)

    async def ado(self) -> None:
        """Send it without blocking the loop."""
        config = _listening()
        if config is not None:
            report = self.fitted.report.to_dict()
            await adispatch_custom_event(DECISION_EVENT, report, config=config)


def _listening() -> RunnableConfig | None:
    """Return the configuration of the run that is on, when somebody listens to it."""
    config = ensure_config()
    manager: Any = config.get("callbacks")
    if getattr(manager, "parent_run_id", None) is None or not getattr(manager, "handlers", None):
        return None
    return config
