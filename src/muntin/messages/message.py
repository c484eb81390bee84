"""One message of a conversation as a plain value, for callers without a framework.

The value holds what providers agree on: the role, the text or blocks, the tool calls made and the
call answered. What only one provider knows goes through `content` blocks and `metadata` untouched.
It does not count, cut or pair anything: `shapes` reads it like any other message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    import datetime

__all__ = ("UNNAMED", "Block", "Message", "Role", "ToolCall")

Role = Literal["system", "user", "assistant", "tool"]
"""Role of the sender. A provider's `developer` is read as `system`, its `function` as `tool`."""

Block = Mapping[str, Any]
"""One part of a message's content, as the provider writes it."""

UNNAMED = "function:"
"""Prefix of a function's name that serves as the id of a call in a protocol without ids."""

_ROLES: frozenset[str] = frozenset(get_args(Role))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    id: str
    """Id that the result refers to; `""` if a legacy provider gives none."""
    name: str
    """Name of the tool."""
    arguments: str = "{}"
    """The arguments as JSON text, exactly as they are sent."""

    @property
    def parsed(self) -> Any:
        """The arguments as a value; the text itself if it is not JSON."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return self.arguments


def _no_metadata() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Raises:
        ConfigurationError: The role is unknown, or the content is neither text nor blocks.

    ```python
    from muntin import Message

    message = Message("Where is my order?", "user")
    print(message.to_dict())
    #> {'role': 'user', 'content': 'Where is my order?'}
    ```
    """

    content: str | Sequence[Block]
    """The text, or content blocks as the provider writes them (kept as a tuple)."""
    role: Role = "user"
    """Role of the sender."""
    name: str | None = field(default=None, kw_only=True)
    """Name of the sender or the tool; `None` if only the role matters."""
    tool_calls: Sequence[ToolCall] = field(default=(), kw_only=True)
    """Calls the assistant makes in this message (kept as a tuple)."""
    tool_call_id: str | None = field(default=None, kw_only=True)
    """Id of the call a `tool` message answers; `None` in every other message."""
    id: str | None = field(default=None, kw_only=True)
    """Identifier in the caller's store; `None` if there is none. Never sent."""
    pinned: bool = field(default=False, kw_only=True)
    """Whether it must survive every cut unchanged."""
    timestamp: datetime.datetime | None = field(default=None, kw_only=True)
    """Time of the message; `None` means unknown. Never sent, and no clock is read for it."""
    metadata: Mapping[str, Any] = field(
        default_factory=_no_metadata, kw_only=True, repr=False, hash=False
    )
    """Other data of the caller. Passed through, never sent."""

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            known = ", ".join(get_args(Role))
            raise ConfigurationError(f"role must be one of {known}, got {self.role!r}")
        content = cast("object", self.content)
        if not isinstance(content, str):
            if not isinstance(content, Sequence) or isinstance(content, bytes):
                kind = type(content).__name__
                raise ConfigurationError(f"content must be text or a list of blocks, got {kind}")
            object.__setattr__(self, "content", tuple(cast("Sequence[Block]", content)))
        if not isinstance(self.tool_calls, tuple):
            object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    def __hash__(self) -> int:
        """Hash what is usually unequal; blocks are left out because they are mappings."""
        text = self.content if isinstance(self.content, str) else None
        return hash((text, self.role, self.tool_call_id, self.id))

    def to_dict(self) -> dict[str, Any]:
        """Write the message as a chat-completions dict; only fields that are set appear."""
        wire: dict[str, Any] = {
            "role": self.role,
            "content": self.content if isinstance(self.content, str) else list(self.content),
        }
        if self.name is not None:
            wire["name"] = self.name
        if self.tool_calls:
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        return wire
