"""Facts of the model of an agent, as the shared policy of requests asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.config import WindowBudgetConfig
    from muntin.counting import NamedCounter

__all__ = ("AgentModel",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModel:
    """What is known of the model of an agent."""

    name: str
    """Its name: decides on rules of its provider. `""` if it reports none."""
    window: int
    """Tokens of its window."""
    reserve: int
    """Tokens kept free for the answer."""
    counts: NamedCounter
    """Counts tokens."""

    def schemas(self, tools: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the schemas of tools; an agent gives them as schemas already."""
        return tuple(tools)

    def division(
        self,
        given: int | None,  # noqa: ARG002 - resolved before
        config: WindowBudgetConfig,  # noqa: ARG002 - the same
        settings: Mapping[str, Any] | None = None,  # noqa: ARG002 - the same
    ) -> tuple[Window, int]:
        """Return the window and the tokens kept for the answer."""
        return Window(tokens=self.window), self.reserve

    def counter(self) -> NamedCounter:
        """Return the counter."""
        return self.counts
