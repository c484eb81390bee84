"""Read LlamaIndex messages through the neutral view, and write changes back as copies.

Calls live in `ToolCallBlock`s, in `additional_kwargs["tool_calls"]` as whatever objects or dicts a
provider's integration put there, or in both; the view counts each once. Blocks are distinguished by
their `block_type`, because older versions of the core know fewer of them. `SHAPE` is found through
the entry point group `muntin.shapes`, so the core reads these messages without knowing LlamaIndex.

No mark of ours is ever put into `additional_kwargs`: integrations send what they find there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from pydantic import BaseModel

from muntin.messages import (
    OPENAI_CHAT,
    UNNAMED,
    BlockReader,
    MessageView,
    ToolResult,
    as_block,
    role_of,
    without_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages import Role, ToolCall

__all__ = ("SHAPE", "LlamaIndexShape", "answered_call", "calls_of", "signed_neighbours_joined")

_SIGNATURES = "thought_signatures"
"""Key of Gemini's signatures, a list by the position of the blocks they belong to."""
_SILENT = frozenset({"cache"})
"""Blocks without content for the model."""
_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "data"}
"""Field of each media block that holds its bytes, in base64."""
_TYPES = ("image_mimetype", "video_mimetype", "document_mimetype", "format")
_SEALED = ("signature", "thought_signature", "encrypted_content", "redacted")
_ROLES: dict[str, Role] = {"chatbot": "assistant"}
_SCALARS = (str, int, float, bytes)


class LlamaIndexShape:
    """Read and change `ChatMessage` objects."""

    name = "llama-index"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape."""
        return isinstance(message, ChatMessage)

    def parts(self, message: ChatMessage) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        blocks = [
            block.text if type(block) is TextBlock else _plain(block) for block in message.blocks
        ]
        kwargs = message.additional_kwargs
        return (message.role, blocks, _plain(kwargs) if kwargs else None)

    def view(self, message: ChatMessage) -> MessageView:
        """Read the message."""
        role = _ROLES.get(message.role.value) or role_of(message.role.value)
        beside = _calls_beside(message.additional_kwargs)
        answered = answered_call(message)
        name = message.additional_kwargs.get("name")
        blocks = message.blocks
        if len(blocks) == 1 and type(blocks[0]) is TextBlock:
            # Most messages of most conversations: nothing to take apart.
            text, results = blocks[0].text, ()
            if answered is not None:
                text, results = "", (ToolResult(answered, text),)
            name = name if isinstance(name, str) else None
            return MessageView(role, text, beside, results, name=name)
        read = BlockReader()
        for block in blocks:
            _read(read, block)
        text, results = read.text, read.results
        if answered is not None:
            results = (*results, ToolResult(answered, text, media=() if results else read.media))
            text = ""
        return MessageView(
            role=role,
            text=text,
            calls=(*beside, *read.calls_besides(beside)),
            results=results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            media=read.media,
            unknown=read.unknown,
            name=name if isinstance(name, str) else None,
        )

    def with_text(self, message: ChatMessage, text: str) -> ChatMessage:
        """Copy the message with another readable text; blocks that are not text stay."""
        blocks: list[Any] = []
        placed = False
        for block in message.blocks:
            if not isinstance(block, TextBlock):
                blocks.append(block)
            elif not placed:
                blocks.append(TextBlock(text=text))
                placed = True
        if not placed:
            blocks.insert(0, TextBlock(text=text))
        return _with_blocks(message, blocks)

    def with_results(
        self, message: ChatMessage, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> ChatMessage:
        """Copy the message with another result text."""
        answered = answered_call(message)
        text = texts.get(answered or "")
        if text is None or answered is None:
            return message
        kept = without_text(message.blocks, bare=answered in bare, read=_read)
        said = [TextBlock(text=text)] if text or not kept else []
        return _with_blocks(message, [*said, *kept])

    def note(self, text: str, role: Role) -> ChatMessage:
        """Make a message that holds a text."""
        return ChatMessage(role=MessageRole(role), content=text)

    def answer(self, call: ToolCall, text: str) -> ChatMessage:
        """Make a message that answers a call."""
        if call.id.startswith(UNNAMED):
            return ChatMessage(
                role=MessageRole.FUNCTION, content=text, additional_kwargs={"name": call.name}
            )
        return ChatMessage(
            role=MessageRole.TOOL, content=text, additional_kwargs={"tool_call_id": call.id}
        )


def answered_call(message: ChatMessage) -> str | None:
    """Name the call a message answers; `None` when it answers none, `""` when it names none."""
    if message.role not in (MessageRole.TOOL, MessageRole.FUNCTION):
        return None
    kwargs = message.additional_kwargs
    if kwargs.get("tool_call_id"):
        return str(kwargs["tool_call_id"])
    name = kwargs.get("name")
    return f"{UNNAMED}{name}" if message.role is MessageRole.FUNCTION and name else ""


def calls_of(message: ChatMessage) -> tuple[ToolCall, ...]:
    """Return the calls a message makes, in whichever form it holds them."""
    return SHAPE.view(message).calls


def signed_neighbours_joined(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Join neighbouring messages of the assistant whose signatures are kept by position.

    The Google model of LlamaIndex joins them itself and puts the signatures of the second message
    on the blocks of the first.

    Args:
        messages: The messages. Not changed.
    """
    out: list[ChatMessage] = []
    for message in messages:
        before = out[-1] if out else None
        if before is None or not (_is_assistant(before) and _is_assistant(message)):
            out.append(message)
            continue
        if _SIGNATURES not in {**before.additional_kwargs, **message.additional_kwargs}:
            out.append(message)
            continue
        signatures = [*_signatures(before), *_signatures(message)]
        beside = {**before.additional_kwargs, **message.additional_kwargs}
        out[-1] = before.model_copy(
            update={
                "blocks": [*before.blocks, *message.blocks],
                "additional_kwargs": {**beside, _SIGNATURES: signatures},
            }
        )
    return out


def _is_assistant(message: ChatMessage) -> bool:
    return message.role in (MessageRole.ASSISTANT, MessageRole.MODEL)


def _signatures(message: ChatMessage) -> list[Any]:
    """Return one signature or `None` for each block."""
    given: list[Any] = list(message.additional_kwargs.get(_SIGNATURES) or ())
    return [*given, *[None] * len(message.blocks)][: len(message.blocks)]


def _calls_beside(kwargs: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Read the calls outside the blocks, in the form of any provider."""
    given = kwargs.get("tool_calls")
    entries: list[Any] = (
        list(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else []
    )
    legacy = kwargs.get("function_call")
    if not entries and legacy is None:
        return ()
    wire: dict[str, Any] = {"role": "assistant", "tool_calls": [_call_entry(e) for e in entries]}
    if as_block(_plain(legacy)) is not None and not entries:
        wire["function_call"] = _plain(legacy)
    return OPENAI_CHAT.view(wire).calls


def _call_entry(entry: Any) -> dict[str, Any]:
    """Return one call as the dict of a chat completion, from any form."""
    plain = as_block(_plain(entry)) or {"name": str(entry)}
    if "tool_name" in plain:  # LlamaIndex's own selection
        return {
            "id": plain.get("tool_id") or plain.get("tool_call_id") or "",
            "function": {"name": plain["tool_name"], "arguments": plain.get("tool_kwargs", {})},
        }
    return dict(plain)


def _read(read: BlockReader, block: Any) -> None:
    """Read one block, as far as its kind is known."""
    kind = str(getattr(block, "block_type", ""))
    if kind == "text":
        read.content(block.text)
    elif kind in _SILENT:
        return
    elif kind in _MEDIA:
        read.block(_media(kind, block))
    elif kind == "tool_call":
        read.block(
            {
                "type": "tool_use",
                "id": block.tool_call_id or "",
                "name": block.tool_name,
                "input": block.tool_kwargs,
            }
        )
    elif kind == "thinking":
        sealed = any(block.additional_information.get(key) for key in _SEALED)
        read.block({"type": "thinking", "thinking": block.content or "", "signature": sealed})
    elif kind in ("citable", "citation"):
        read.content(block.title)
        inner = block.content if kind == "citable" else [block.cited_content]
        for part in inner:
            _read(read, part)
    else:
        dump = _plain(block)
        read.block({**dump, "type": kind or "untyped"} if isinstance(dump, dict) else {"of": dump})


def _media(kind: str, block: Any) -> dict[str, Any]:
    """Write a media block as the neutral reader knows it."""
    held = getattr(block, _MEDIA[kind], None)
    data = held.decode("ascii", "ignore") if isinstance(held, bytes) else ""
    label = next((value for key in _TYPES if (value := getattr(block, key, None))), "")
    path, url = getattr(block, "path", None), getattr(block, "url", None)
    title = getattr(block, "title", None) or (Path(str(path)).name if path else "")
    return {
        "type": kind,
        "data": data,
        "media_type": label,
        "detail": getattr(block, "detail", None),
        "filename": title,
        "url": str(url) if url and not data else None,
    }


def _plain(value: Any) -> Any:
    """Return a value as plain comparable data, without copying texts."""
    if value is None or isinstance(value, _SCALARS):
        return value
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        return {str(key): _plain(part) for key, part in pairs.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in cast("Sequence[Any]", value)]
    if isinstance(value, BaseModel):
        fields: dict[str, Any] = dict(value.__dict__)
        if value.model_extra:
            fields.update(value.model_extra)
        return {key: _plain(part) for key, part in fields.items()}
    return str(value)


def _with_blocks(message: ChatMessage, blocks: list[Any]) -> ChatMessage:
    """Copy a message with other blocks; signatures that are kept by position move with theirs."""
    changed: dict[str, Any] = {"blocks": blocks}
    signatures = message.additional_kwargs.get(_SIGNATURES)
    if isinstance(signatures, list):
        listed = cast("list[Any]", signatures)
        signed = {id(one): sign for one, sign in zip(message.blocks, listed, strict=False)}
        kept = [signed.get(id(block)) for block in blocks]
        changed["additional_kwargs"] = {**message.additional_kwargs, _SIGNATURES: kept}
    return message.model_copy(update=changed)


SHAPE = LlamaIndexShape()
