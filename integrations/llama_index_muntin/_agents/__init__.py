"""Steps of an agent: how each kind keeps them, and how a request is fitted and accounted.

It decides what an agent sees of its own steps. It does not import memories.
"""

from __future__ import annotations

from llama_index_muntin._agents.fitter import StepFitter
from llama_index_muntin._agents.model import AgentModel
from llama_index_muntin._agents.steps import Steps, steps_of

__all__ = ("AgentModel", "StepFitter", "Steps", "steps_of")
