"""Reduce an agent's own working steps when they outgrow their budget.

A tool loop keeps its newest rounds, a plan its newest results, a reflection its latest answer and
the open critique. The rest is summarised in one entry, headed by a marker. The entry takes at most
half of the free space, so that the next step does not overflow again.

Each reducer has one policy, which an async and a sync function run. The space is checked before a
summariser is called. When the summariser fails, a mark and the facts of the removed steps are kept.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from muntin.conversations.trajectory.agent import reduce_agent, reduce_agent_sync
from muntin.conversations.trajectory.plan import reduce_plan, reduce_plan_sync
from muntin.conversations.trajectory.reflection import reduce_reflection, reduce_reflection_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

__all__ = (
    "REDUCERS",
    "reduce_agent",
    "reduce_agent_sync",
    "reduce_plan",
    "reduce_plan_sync",
    "reduce_reflection",
    "reduce_reflection_sync",
)

REDUCERS: Mapping[str, Callable[..., Coroutine[Any, Any, Any]]] = MappingProxyType(
    {"agent": reduce_agent, "plan": reduce_plan, "reflection": reduce_reflection}
)
"""The async reducers by the kind of trajectory they reduce."""
