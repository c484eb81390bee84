"""Read LangChain messages through the neutral view, and write changes back as copies of their kind.

Tool calls live twice in LangChain: in `.tool_calls` and, with many providers, as blocks in the
content. The view counts each once; a changed copy changes the content and leaves ids, usage,
artifacts and provider metadata as they are. `SHAPE` is found through the entry point group
`muntin.messages.shapes`, so the core reads LangChain messages without knowing LangChain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from muntin.errors import ConfigurationError
from muntin.messages import (
    UNNAMED,
    BlockReader,
    MessageView,
    ToolCall,
    ToolResult,
    as_block,
    canonical_json,
    replace_result,
    replace_text,
    role_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from muntin.messages import Block, Role

__all__ = ("MARK", "SHAPE", "LangChainShape", "marked", "pinned_copy")

MARK = "muntin"
"""Key in `additional_kwargs` for the kind of a message in this library: `pinned`, `context`
(assembled passages), `note` (what is left of older messages) or `answer` (for a call that was
interrupted). It is not sent to providers."""

_SOURCE = "lc_source"
"""LangChain's own key for messages that no person wrote."""
_BESIDE = frozenset({"function_call", "reasoning", "reasoning_content", MARK, _SOURCE})
"""Keys in `additional_kwargs` that are read, in addition to a refusal."""
_SKIPPED = frozenset({"tool_call_chunk", "server_tool_call_chunk"})
"""Stream chunks that the message also holds in complete form."""


def marked(message: BaseMessage) -> str:
    """Return the kind of a message in this library; `""` for an ordinary one."""
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, str) else ""


def pinned_copy(message: BaseMessage) -> BaseMessage:
    """Return a copy of a message that stays word for word."""
    kept = {**message.additional_kwargs, MARK: "pinned"}
    return message.model_copy(update={"additional_kwargs": kept})


class LangChainShape:
    """Read and change `BaseMessage` objects."""

    name = "langchain"

    def reads(self, message: Any) -> bool:
        """Recognise the messages of this shape; a `RemoveMessage` is an order, not a message."""
        return isinstance(message, BaseMessage) and not isinstance(message, RemoveMessage)

    def parts(self, message: BaseMessage) -> Any:
        """Return what the view is read from; see `MessageShape.parts`."""
        # Fields a kind does not have are looked up where pydantic keeps fields: asking the message
        # for them goes through its `__getattr__`, which costs more than all the rest.
        held = message.__dict__.get
        return (
            message.type,
            message.content,
            message.name,
            message.id,
            message.additional_kwargs,
            held("tool_calls"),
            held("invalid_tool_calls"),
            held("tool_call_id"),
            held("status"),
            held("role"),
        )

    def view(self, message: BaseMessage) -> MessageView:
        """Read the message."""
        role = _role(message)
        calls = _calls(message)
        content = message.content
        if type(content) is str and _says_nothing_more(message.additional_kwargs):
            # Most messages of most conversations: nothing to take apart.
            text, results, answered = content, (), _answered(message)
            if answered is not None:
                text, results = "", (ToolResult(answered, content, _has_failed(message)),)
            return MessageView(role, text, calls, results, name=message.name, id=message.id)
        read = BlockReader()
        known = {call.id for call in calls}
        for block in _blocks(message, known):
            read.content(block)
        text, results = read.text, read.results
        answered = _answered(message)
        if answered is not None:
            media = () if results else read.media
            results = (*results, ToolResult(answered, text, _has_failed(message), media))
            text = ""
        elif role == "user" and results and not text.strip():
            role = "tool"
        mark = marked(message)
        injected = mark in ("note", "answer") or _SOURCE in message.additional_kwargs
        return MessageView(
            role=role,
            text=text,
            calls=(*calls, *read.calls_besides(calls)),
            results=results,
            server=read.server,
            reasoning=read.reasoning,
            signed=read.signed,
            media=read.media,
            unknown=read.unknown,
            name=message.name,
            id=message.id,
            pinned=mark in ("pinned", "context") or read.compacts or read.changes_tools,
            compacts=read.compacts,
            injected=injected or (mark == "context" and role == "user"),
        )

    def with_text(self, message: BaseMessage, text: str) -> BaseMessage:
        """Copy the message with another readable text."""
        return message.model_copy(update={"content": replace_text(message.content, text)})

    def with_results(
        self, message: BaseMessage, texts: Mapping[str, str | None], *, bare: Collection[str] = ()
    ) -> BaseMessage:
        """Copy the message with other result texts."""
        answered = _answered(message)
        if answered is not None:
            text = texts.get(answered)
            if text is None:
                return message
            content = _rewritten(message.content, text, bare=answered in bare)
            return message.model_copy(update={"content": content})
        if not isinstance(message.content, list):
            return message
        blocks = [_result_block(block, texts, bare) for block in message.content]
        kept = [block for block in blocks if block is not None]
        return message.model_copy(update={"content": kept})

    def note(self, text: str, role: Role) -> BaseMessage:
        """Make a message that holds a text; a frontend knows it by `lc_source`."""
        kinds: dict[str, type[BaseMessage]] = {
            "system": SystemMessage, "user": HumanMessage, "assistant": AIMessage,
        }  # fmt: skip
        if role not in kinds:
            raise ConfigurationError(f"a note is said by {', '.join(kinds)}, not by {role!r}")
        return kinds[role](content=text, additional_kwargs={MARK: "note", _SOURCE: "muntin"})

    def answer(self, call: ToolCall, text: str) -> BaseMessage:
        """Make a message that answers a call."""
        extra = {MARK: "answer"}
        if call.id.startswith(UNNAMED):
            return FunctionMessage(name=call.name, content=text, additional_kwargs=extra)
        return ToolMessage(
            content=text, tool_call_id=call.id, name=call.name, status="error",
            additional_kwargs=extra,
        )  # fmt: skip


def _role(message: BaseMessage) -> Role:
    if isinstance(message, ChatMessage):
        return role_of(message.role)
    for kind, role in _ROLES:
        if isinstance(message, kind):
            return role
    return role_of(message.type)


_ROLES: tuple[tuple[type[BaseMessage], Role], ...] = (
    (AIMessage, "assistant"),
    (HumanMessage, "user"),
    (ToolMessage, "tool"),
    (SystemMessage, "system"),
    (FunctionMessage, "tool"),
)


def _answered(message: BaseMessage) -> str | None:
    """Name the call a whole message answers; `None` when it answers none."""
    if isinstance(message, ToolMessage):
        return message.tool_call_id
    if isinstance(message, FunctionMessage):
        return f"{UNNAMED}{message.name}"  # the protocol has no ids
    return None


def _says_nothing_more(beside: Mapping[str, Any]) -> bool:
    return not beside or (beside.get("refusal") is None and _BESIDE.isdisjoint(beside))


def _has_failed(message: BaseMessage) -> bool:
    return message.__dict__.get("status") == "error"


def _calls(message: BaseMessage) -> tuple[ToolCall, ...]:
    """Read the calls a message makes, malformed ones too: they are sent and want an answer."""
    if not isinstance(message, AIMessage):
        return ()
    calls = [
        ToolCall(call["id"] or "", call["name"], canonical_json(call["args"]))
        for call in message.tool_calls
    ]
    calls += [
        ToolCall(call.get("id") or "", call.get("name") or "", call.get("args") or "")
        for call in message.invalid_tool_calls
    ]
    legacy = as_block(message.additional_kwargs.get("function_call"))
    if legacy is not None and not calls:
        name = str(legacy.get("name") or "")
        calls.append(ToolCall(f"{UNNAMED}{name}", name, str(legacy.get("arguments") or "{}")))
    return tuple(calls)


def _blocks(message: BaseMessage, known: set[str]) -> list[Any]:
    """Return the blocks of the content, unwrapped, and the reasoning outside the content."""
    content = message.content
    blocks = [_opened(b) for b in content] if isinstance(content, list) else [content or None]
    found = [block for block in blocks if not _stands_twice(block, known)]
    beside = message.additional_kwargs.get("reasoning_content")
    if isinstance(beside, str) and beside:
        found.append({"type": "reasoning", "reasoning": beside})
    reasoning = as_block(message.additional_kwargs.get("reasoning"))
    if reasoning is not None:
        found.append({**reasoning, "type": "reasoning"})
    refusal = message.additional_kwargs.get("refusal")
    if isinstance(refusal, str):
        found.append(refusal)
    return found


def _opened(block: str | dict[Any, Any]) -> Any:
    """Open a `non_standard` wrapper: inside is the provider's own block."""
    if isinstance(block, dict) and block.get("type") == "non_standard":
        return block.get("value")
    return block


def _stands_twice(block: Any, known: set[str]) -> bool:
    given = as_block(block)
    if given is None:
        return False
    kind = given.get("type")
    return kind in _SKIPPED or (kind == "invalid_tool_call" and given.get("id") in known)


def _rewritten(content: Any, text: str, *, bare: bool) -> Any:
    return replace_result(
        content, text, bare=bare, read=lambda reader, block: reader.content(_opened(block))
    )


def _result_block(block: Any, texts: Mapping[str, str | None], bare: Collection[str]) -> Any:
    """Rewrite one `tool_result` block; `None` where it goes."""
    given: Block | None = as_block(block)
    if given is None or given.get("type") != "tool_result":
        return block
    called = str(given.get("tool_use_id") or "")
    if called not in texts:
        return block
    text = texts[called]
    if text is None:
        return None
    return {**given, "content": _rewritten(given.get("content"), text, bare=called in bare)}


SHAPE = LangChainShape()
