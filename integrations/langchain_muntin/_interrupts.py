"""Say what LangGraph raises to pause a graph or to send it elsewhere."""

from __future__ import annotations

import sys

__all__ = ("steering",)


def steering() -> tuple[type[BaseException], ...]:
    """Return the base of all that steers a graph; nothing where LangGraph is not loaded.

    Whoever raises one has loaded it.
    """
    errors = sys.modules.get("langgraph.errors")
    return () if errors is None else (errors.GraphBubbleUp,)
