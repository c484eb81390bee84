"""Agent state: goal, plan and findings as a value, rendered, saved and put back.

It decides what an agent keeps outside its messages, and that a saved state is never half written.
"""

from __future__ import annotations

from muntin.state.agent_state import AgentState
from muntin.state.reinjection import STATE_SHARE, is_state_block, reinject, state_block
from muntin.state.store import StateStore

__all__ = (
    "STATE_SHARE",
    "AgentState",
    "StateStore",
    "is_state_block",
    "reinject",
    "state_block",
)
