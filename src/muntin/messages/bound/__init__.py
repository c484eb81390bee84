"""Reasoning that a provider accepts only behind the messages it was written behind.

`models` decides which models check this, `blocks` finds such reasoning in a message of any form and
takes it out, `prefix` decides for a conversation what is still valid. It counts nothing.
"""

from __future__ import annotations

from muntin.messages.bound.blocks import holds_bound
from muntin.messages.bound.models import binds, checks_prefix, reads
from muntin.messages.bound.prefix import (
    Unsigned,
    bound_places,
    first_change,
    unreadable_places,
    without_signed_thinking,
)

__all__ = (
    "Unsigned",
    "binds",
    "bound_places",
    "checks_prefix",
    "first_change",
    "holds_bound",
    "reads",
    "unreadable_places",
    "without_signed_thinking",
)
