"""Read messages of every shape through one neutral view, and write changes back in their own shape.

A conversation may come as chat-completions dicts, Responses items, Anthropic dicts, `Message`
values or a framework's objects. Everything above this floor sees `MessageView` only; whoever
changes a message asks its `MessageShape` for a changed copy, so what a shape does not understand
passes through untouched. Frameworks register theirs with `register_shape` or through the entry
point group `muntin.messages.shapes`, which is looked at when an unknown object turns up.

It decides nothing about pairs or budgets: that is `turns` and `message_tokens`.
"""

from __future__ import annotations

from muntin.messages.shapes.protocol import MessageShape
from muntin.messages.shapes.registry import register_shape, shape_of, view
from muntin.messages.shapes.views import Media, MessageView, ToolResult

__all__ = (
    "Media",
    "MessageShape",
    "MessageView",
    "ToolResult",
    "register_shape",
    "shape_of",
    "view",
)
