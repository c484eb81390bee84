"""Strict validators of request bodies, one module for each provider.

Each takes the JSON body as the provider receives it and raises `RequestRefused` for what the
provider refuses, with the provider's text, and for nothing else. They do not count tokens.
"""

from __future__ import annotations

from muntin.testing.wire.alternating import SystemRole, check_alternating, check_mistral
from muntin.testing.wire.anthropic import check_anthropic
from muntin.testing.wire.bound_items import BoundItems
from muntin.testing.wire.bound_thinking import BoundThinking
from muntin.testing.wire.gemini import check_gemini
from muntin.testing.wire.openai_chat import check_openai_chat
from muntin.testing.wire.openai_responses import check_openai_responses
from muntin.testing.wire.refused import Refusal, RequestOverflow, RequestRefused

__all__ = (
    "BoundItems",
    "BoundThinking",
    "Refusal",
    "RequestOverflow",
    "RequestRefused",
    "SystemRole",
    "check_alternating",
    "check_anthropic",
    "check_gemini",
    "check_mistral",
    "check_openai_chat",
    "check_openai_responses",
)
