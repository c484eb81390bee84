"""Messages as LangChain and LlamaIndex write them to disk, read without the frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.message import NativeKind, Raw
from muntin.messages import (
    ANTHROPIC,
    OPENAI_CHAT,
    replace_result,
    replace_text,
    role_of,
    without_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages import MessageShape, MessageView, Role, ToolCall

__all__ = ("FRAMEWORK_KINDS",)

_LANGCHAIN_TYPES: dict[str, str] = {"system": "system", "user": "human", "assistant": "ai",
                                    "tool": "tool"}  # fmt: skip


class _LangChainShape:
    """Read `messages_to_dict`: `{"type": "human", "data": {...}}`."""

    name = "langchain-dict"

    def reads(self, message: Any) -> bool:
        return isinstance(message, dict) and isinstance(cast("Raw", message).get("data"), dict)

    def parts(self, message: Raw) -> Any:
        return message

    def view(self, message: Raw) -> MessageView:
        data = self._fields(message)
        kind = self._kind(message)
        calls = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
        plain: Raw = {
            "role": data.get("role") if kind == "chat" else kind,
            "content": data.get("content"),
            "name": data.get("name"),
            "id": data.get("id"),
            "tool_calls": calls,
            "tool_call_id": data.get("tool_call_id"),
        }
        read = OPENAI_CHAT.view(plain)
        if read.role == "user" and read.results and not read.text.strip():
            return read._replace(role="tool")
        return read

    def with_text(self, message: Raw, text: str) -> Raw:
        return self._with(message, replace_text(self._fields(message).get("content"), text))

    def with_results(
        self, message: Raw, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> Raw:
        data = self._fields(message)
        if "tool_call_id" not in data:
            changed = ANTHROPIC.with_results(data, texts, bare=bare)
            return self._with(message, changed.get("content"))
        answered = str(data["tool_call_id"])
        text = texts.get(answered)
        if text is None:
            return message
        content = replace_result(data.get("content"), text, bare=answered in bare)
        return self._with(message, content)

    def note(self, text: str, role: Role) -> Raw:
        return self._made(_LANGCHAIN_TYPES[role], {"content": text})

    def answer(self, call: ToolCall, text: str) -> Raw:
        fields = {"content": text, "tool_call_id": call.id, "name": call.name, "status": "error"}
        return self._made("tool", fields)

    def _fields(self, message: Raw) -> Raw:
        return cast("Raw", message["data"])

    def _kind(self, message: Raw) -> str:
        named = str(message.get("type") or self._fields(message).get("type"))
        return named.removesuffix("Chunk").removesuffix("Message").lower()

    def _with(self, message: Raw, content: Any) -> Raw:
        return {**message, "data": {**self._fields(message), "content": content}}

    def _made(self, kind: str, fields: Raw) -> Raw:
        return {"type": kind, "data": {**fields, "type": kind}}


_CONSTRUCTORS = {"human": "HumanMessage", "system": "SystemMessage", "ai": "AIMessage",
                 "tool": "ToolMessage"}  # fmt: skip


class _ConstructorShape(_LangChainShape):
    """Read `dumpd`: `{"lc": 1, "type": "constructor", "id": [...], "kwargs": {...}}`."""

    name = "langchain-constructor"

    def reads(self, message: Any) -> bool:
        return isinstance(message, dict) and "lc" in message and "kwargs" in message

    def _fields(self, message: Raw) -> Raw:
        return cast("Raw", message["kwargs"])

    def _kind(self, message: Raw) -> str:
        named = self._fields(message).get("type")
        if named:
            return str(named)
        made = str((message.get("id") or [""])[-1])
        return made.removesuffix("Chunk").removesuffix("Message").lower()

    def _with(self, message: Raw, content: Any) -> Raw:
        return {**message, "kwargs": {**self._fields(message), "content": content}}

    def _made(self, kind: str, fields: Raw) -> Raw:
        path = ["langchain", "schema", "messages", _CONSTRUCTORS[kind]]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": {**fields, "type": kind}}


_FLAT_TYPES = frozenset({"human", "ai", "system", "tool", "function", "humanmessage", "aimessage",
                         "aimessagechunk", "systemmessage", "toolmessage"})  # fmt: skip


class _FlatShape(_LangChainShape):
    """Read `message.model_dump()`: the fields of a message with its `type` among them."""

    name = "langchain-flat"

    def reads(self, message: Any) -> bool:
        if not isinstance(message, dict):
            return False
        held = cast("Raw", message)
        named = str(held.get("type")).lower()
        return "content" in held and "role" not in held and named in _FLAT_TYPES

    def _fields(self, message: Raw) -> Raw:
        return message

    def _with(self, message: Raw, content: Any) -> Raw:
        return {**message, "content": content}

    def _made(self, kind: str, fields: Raw) -> Raw:
        return {"type": kind, **fields}


class _LlamaIndexShape:
    """Read `ChatMessage.model_dump`: role, blocks, and calls."""

    name = "llama-index-dump"

    def reads(self, message: Any) -> bool:
        return isinstance(message, dict) and ("blocks" in message or "additional_kwargs" in message)

    def parts(self, message: Raw) -> Any:
        return message

    def view(self, message: Raw) -> MessageView:
        beside = cast("Raw", message.get("additional_kwargs") or {})
        blocks = cast("Sequence[Raw] | None", message.get("blocks"))
        content = message.get("content") if blocks is None else [_opened(one) for one in blocks]
        role = "assistant" if message.get("role") == "chatbot" else message.get("role")
        plain: Raw = {"role": role, "content": content}
        for key in ("tool_calls", "tool_call_id", "name"):
            plain[key] = beside.get(key)
        return OPENAI_CHAT.view(plain)

    def with_text(self, message: Raw, text: str) -> Raw:
        blocks = cast("Sequence[Raw] | None", message.get("blocks"))
        if blocks is None:
            return {**message, "content": replace_text(message.get("content"), text)}
        kept: list[Raw] = []
        placed = False
        for block in blocks:
            if block.get("block_type") != "text":
                kept.append(block)
            elif not placed:
                kept.append({**block, "text": text})
                placed = True
        if not placed:
            kept.insert(0, {"block_type": "text", "text": text})
        return {**message, "blocks": kept}

    def with_results(
        self, message: Raw, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> Raw:
        beside = cast("Raw", message.get("additional_kwargs") or {})
        answered = str(beside.get("tool_call_id") or "")
        text = texts.get(answered)
        if text is None or role_of(message.get("role")) != "tool":
            return message
        blocks = cast("Sequence[Raw] | None", message.get("blocks"))
        is_bare = answered in bare
        if blocks is None:
            return {
                **message,
                "content": replace_result(message.get("content"), text, bare=is_bare),
            }
        kept = without_text(
            blocks, bare=is_bare, read=lambda reader, block: reader.block(_opened(block))
        )
        said = [{"block_type": "text", "text": text}] if text or not kept else []
        return {**message, "blocks": [*said, *kept]}

    def note(self, text: str, role: Role) -> Raw:
        block = {"block_type": "text", "text": text}
        return {"role": role, "additional_kwargs": {}, "blocks": [block]}

    def answer(self, call: ToolCall, text: str) -> Raw:
        return {**self.note(text, "tool"), "additional_kwargs": {"tool_call_id": call.id}}


def _opened(block: Raw) -> Raw:
    """Write a LlamaIndex block as the equivalent block of a provider."""
    kind = block.get("block_type")
    if kind == "thinking":
        return {"type": "thinking", "thinking": block.get("content") or ""}
    if kind == "tool_call":
        return {
            "type": "tool_call",
            "id": block.get("tool_call_id"),
            "name": block.get("tool_name"),
            "args": block.get("tool_kwargs"),
        }
    data = block.get(str(kind)) or block.get("data")
    media_type = next((v for k, v in block.items() if k.endswith("mimetype") and v), None)
    if kind in ("image", "audio", "video", "document"):
        return {"type": kind, "data": data, "url": block.get("url"), "mime_type": media_type}
    return {**block, "type": kind}


FRAMEWORK_KINDS = (
    NativeKind("langchain-constructor", cast("MessageShape", _ConstructorShape())),
    NativeKind("langchain", cast("MessageShape", _LangChainShape())),
    NativeKind("langchain-flat", cast("MessageShape", _FlatShape())),
    NativeKind("llama-index", cast("MessageShape", _LlamaIndexShape())),
)
"""The kinds of both frameworks, the most particular first."""
