"""Steps of an agent: how each kind keeps them, and the context in which a fitted step is taken.

It decides what an agent sees of its own steps. It does not know memories.
"""

from __future__ import annotations

from llama_index_muntin._agents.guard import GuardedContext, Overrun
from llama_index_muntin._agents.steps import Steps, steps_of

__all__ = ("GuardedContext", "Overrun", "Steps", "steps_of")
