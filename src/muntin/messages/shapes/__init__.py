"""Read messages of every shape through one neutral view, and write changes back in their own shape.

A conversation may come as chat-completions dicts, Responses items, Anthropic or Gemini dicts,
`Message` values or a framework's objects. Higher layers read `MessageView` only, and get changed
copies of a message from its `MessageShape`, so what a shape does not understand passes through
untouched. Frameworks register theirs with `register_shape` or through the entry point group
`muntin.shapes`, which is read when an unknown object is met.

It decides nothing about pairs or budgets: `turns` and `message_tokens` do.
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
