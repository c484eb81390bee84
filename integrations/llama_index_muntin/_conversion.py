"""Translate between LlamaIndex's messages and the core's.

Arguments are not changed, and results are copies: a caller that rewrites one (agents rewrite the
text of the last message) does not change what is stored.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from llama_index_muntin._shapes import SHAPE, answered_call
from muntin.messages import Message, ToolCall, as_block, canonical_json, view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.messages import Block

__all__ = (
    "LiteralText",
    "as_chat_message",
    "copy_of_message",
    "from_muntin",
    "text_of_messages",
    "to_muntin",
)

_MESSAGE = "llama_index.message"


class LiteralText(TextBlock):
    """A text that is not a template.

    The chat engines put the history into a prompt *template*, so a user's `{context_str}` would
    come out as the retrieved documents. A block of this class is never filled in.
    """

    @property
    def templatable_attributes(self) -> list[str]:
        """Nothing here is filled in."""
        return []

    def get_template_vars(self) -> list[str]:
        """Nothing here is a variable."""
        return []

    def format_vars(self, **_: Any) -> LiteralText:
        """Return the block unchanged."""
        return self

    def __eq__(self, other: object) -> bool:
        """Equal any text block that reads the same."""
        return isinstance(other, TextBlock) and other.text == self.text

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as mutable as every block


def copy_of_message(message: ChatMessage, *, literal: bool = False) -> ChatMessage:
    """Copy a message so that changing the copy changes nothing else.

    Args:
        message: The message.
        literal: Whether texts with braces are kept from being filled in as templates.
    """
    blocks: list[Any] = []
    for block in message.blocks:
        if type(block) is TextBlock:
            braced = literal and "{" in block.text
            blocks.append((LiteralText if braced else TextBlock)(text=block.text))
        else:
            blocks.append(block.model_copy(deep=True))
    kwargs = message.additional_kwargs
    return message.model_copy(
        update={"blocks": blocks, "additional_kwargs": copy.deepcopy(kwargs) if kwargs else {}}
    )


def to_muntin(message: ChatMessage) -> Message:
    """Make a neutral `Message` of a chat message, from which `from_muntin` remakes it.

    ```python
    from llama_index.core.llms import ChatMessage
    from llama_index_muntin import from_muntin, to_muntin

    result = ChatMessage(role="tool", content="4 rooms", additional_kwargs={"tool_call_id": "c1"})
    neutral = to_muntin(result)
    print(neutral.role, neutral.tool_call_id, from_muntin(neutral) == result)
    #> tool c1 True
    ```
    """
    seen = SHAPE.view(message)
    kept = copy_of_message(message)
    content = _content_of(message)
    return Message(
        content,
        seen.role,
        name=seen.name,
        tool_calls=seen.calls,
        tool_call_id=answered_call(message),
        metadata={_MESSAGE: kept},
    )


def from_muntin(message: Message) -> ChatMessage:
    """Make a chat message of a neutral one; what was changed in between stays changed."""
    original = message.metadata.get(_MESSAGE)
    if not isinstance(original, ChatMessage):
        return _made(message)
    before = to_muntin(original)
    same_calls = tuple(message.tool_calls) == tuple(before.tool_calls)
    if message.tool_call_id == before.tool_call_id and same_calls and message.role == before.role:
        if message.content == before.content:
            return copy_of_message(original)
        if isinstance(message.content, str):
            return copy_of_message(SHAPE.with_text(original, message.content))
    return _made(message)


def as_chat_message(message: Any) -> ChatMessage:
    """Return a message of any shape as a chat message: one made of it, or a note."""
    if isinstance(message, ChatMessage):
        return message
    if isinstance(message, Message):
        return from_muntin(message)
    said = view(message)
    return ChatMessage(role=MessageRole(said.role), content=said.text)


def _content_of(message: ChatMessage) -> str | list[Block]:
    """Write the blocks as neutral ones; a message of plain text as its text."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    others = [block for block in message.blocks if getattr(block, "block_type", "") != "tool_call"]
    if len(texts) == len(others) <= 1:
        return texts[0] if texts else ""
    return [_neutral_block(block) for block in others]


def _neutral_block(block: Any) -> Block:
    """Write one block as the neutral reader knows it."""
    kind = block.block_type
    if kind == "text":
        return {"type": "text", "text": block.text}
    if kind == "thinking":
        return {"type": "thinking", "thinking": block.content or "", **block.additional_information}
    if kind == "image":
        data = block.image.decode("ascii", "ignore") if isinstance(block.image, bytes) else None
        return {
            "type": "image",
            "base64": data,
            "mime_type": block.image_mimetype,
            "url": str(block.url) if block.url else None,
            "detail": block.detail,
        }
    return {**json.loads(block.model_dump_json()), "type": kind}


def _made(message: Message) -> ChatMessage:
    """Make a chat message of one that was not one before, or was changed."""
    content = message.content
    blocks: list[Any] = (
        ([TextBlock(text=content)] if content or not message.tool_calls else [])
        if isinstance(content, str)
        else [_block_of(block) for block in content]
    )
    kwargs: dict[str, Any] = {}
    if message.name is not None:
        kwargs["name"] = message.name
    if message.tool_call_id is not None:
        kwargs["tool_call_id"] = message.tool_call_id
    calls = [_call_block(call) for call in message.tool_calls]
    if calls and calls[0] is None:
        kwargs["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    blocks += [block for block in calls if block is not None]
    return ChatMessage(role=MessageRole(message.role), blocks=blocks, additional_kwargs=kwargs)


def _block_of(block: Block) -> Any:
    """Make a block of a neutral one; what LlamaIndex has no block for is kept as JSON text."""
    kind = str(block.get("type"))
    if kind == "text":
        return TextBlock(text=str(block.get("text") or ""))
    if kind == "image" or kind == "image_url":
        inner = as_block(block.get("image_url")) or block
        data = block.get("base64") or block.get("data")
        return types.ImageBlock(
            image=data.encode() if isinstance(data, str) else None,
            url=cast("str | None", inner.get("url")),
            image_mimetype=cast("str | None", block.get("mime_type")),
            detail=cast("str | None", inner.get("detail")),
        )
    thinking = getattr(types, "ThinkingBlock", None)
    if kind == "thinking" and thinking is not None:
        known = ("type", "thinking")
        rest = {key: value for key, value in block.items() if key not in known}
        return thinking(content=block.get("thinking"), additional_information=rest)
    return TextBlock(text=canonical_json(block))


def _call_block(call: ToolCall) -> Any:
    """Make a call block, where this version of the core has one."""
    block = getattr(types, "ToolCallBlock", None)
    if block is None:
        return None
    parsed = call.parsed
    kwargs = cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else call.arguments
    return block(tool_call_id=call.id, tool_name=call.name, tool_kwargs=kwargs)


def _wire_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def text_of_messages(messages: Sequence[ChatMessage]) -> str:
    """Write messages as a transcript, a line each: the role and the text."""
    lines: list[str] = []
    for message in messages:
        seen = SHAPE.view(message)
        said = [seen.text, *(f"{call.name}({call.arguments})" for call in seen.calls)]
        said += [result.text for result in seen.results]
        lines.append(f"{seen.role}: " + " ".join(part for part in said if part))
    return "\n".join(lines)
