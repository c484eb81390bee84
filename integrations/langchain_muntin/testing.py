"""A chat model for tests that is as strict as a provider, and never reaches one.

It answers from a script, remembers exactly what it was sent, and refuses what a provider would
refuse: broken pairs, empty messages, more than its window holds. What it checks are the dicts a
provider package would send, written here and not by the adapter under test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field, PrivateAttr

from langchain_muntin._values.models import schemas_of
from muntin.counting import counter_for
from muntin.testing import Provider, RequestOverflow, RequestRefused, check_request

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.exceptions import ContextOverflowError as _Overflow
    from langchain_core.runnables import Runnable
else:
    try:
        from langchain_core.exceptions import ContextOverflowError as _Overflow
    except ImportError:  # an older langchain-core, which has no word for it
        from langchain_core.exceptions import LangChainException as _Overflow

__all__ = ("BadRequestError", "Reply", "Sent", "StrictChatModel", "WindowOverflowError")


class BadRequestError(ValueError):
    """What a provider answers a malformed request with; the refusal is chained."""

    status_code = 400


class WindowOverflowError(_Overflow, BadRequestError):
    """What a provider answers a request with that is larger than the window."""


Reply = str | AIMessage | Exception | Callable[[list[BaseMessage]], "str | AIMessage"]
"""An answer: a text, a message (tool calls in it), an error to raise, or a function of what was
sent."""


class Sent:
    """One request as the model got it."""

    def __init__(self, messages: list[BaseMessage], tools: Sequence[Any], tokens: int) -> None:
        self.messages = messages
        self.tools = tools
        self.tokens = tokens
        """What it cost by the model's own count."""

    def __repr__(self) -> str:
        return f"Sent({len(self.messages)} messages, {self.tokens} tokens)"


class StrictChatModel(BaseChatModel):
    """Answer from a script, and refuse what a provider would refuse.

    ```python
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_muntin.testing import BadRequestError, StrictChatModel

    model = StrictChatModel(window=1000, replies=["Hello."])
    print(model.invoke("Hi").text, model.sent[0].tokens)
    #> Hello. 8
    try:
        model.invoke([HumanMessage("Hi"), ToolMessage("4", tool_call_id="c1")])
    except BadRequestError as refused:
        print(refused)
    #> message 1 is refused (orphan_result): no call right before it has the id 'c1'
    ```
    """

    window: int = 8000
    """Tokens of its context window."""
    max_tokens: int | None = None
    """Tokens it may write, which a provider adds to the prompt; `None` adds nothing."""
    replies: Any = Field(default=("OK.",))
    """Its answers in order; the last one is given again and again. A function answers always."""
    provider: Provider = "openai"
    """Whose rules it applies where they differ."""
    thinking: bool = False
    """Whether unfinished tool rounds have to begin with their thinking."""
    model_name: str = "o200k_base"
    """Model or encoding whose vocabulary it counts with; for an unknown name it estimates."""
    scale: float = 1.0
    """Tokens it counts and charges for one of that vocabulary: some providers' are smaller."""
    says_window: bool = True
    """Whether its profile contains the window."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    _sent: list[Sent] = PrivateAttr(default_factory=list)
    _refused: list[Exception] = PrivateAttr(default_factory=list)
    _signed: dict[str, str] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """Write the window into the profile."""
        super().model_post_init(context)
        if self.says_window and getattr(self, "profile", None) is None:
            told: Any = {"max_input_tokens": self.window}
            if self.max_tokens is not None:
                told["max_output_tokens"] = self.max_tokens
            self.profile = told

    @property
    def sent(self) -> list[Sent]:
        """Every request it accepted, in order."""
        return self._sent

    @property
    def refused(self) -> list[Exception]:
        """Every refusal, in order."""
        return self._refused

    @property
    def _llm_type(self) -> str:
        return "strict"

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        """Bind tools; their schemas count like everything else that is sent."""
        more = {"tool_choice": tool_choice} if tool_choice is not None else {}
        bound: Any = self.bind(tools=list(schemas_of(tools)), **more, **kwargs)
        return bound

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the signature is LangChain's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the same
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._answer(messages, kwargs)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the signature is LangChain's
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._answer(messages, kwargs)
        if reply.tool_calls or not isinstance(reply.content, str):
            pieces = [AIMessageChunk(**_as_chunk(reply))]
        else:
            words = reply.content.split(" ")
            texts = [word if at == 0 else f" {word}" for at, word in enumerate(words)]
            pieces = [AIMessageChunk(content=text) for text in texts]
            pieces[-1].usage_metadata = reply.usage_metadata
        for piece in pieces:
            chunk = ChatGenerationChunk(message=piece)
            if run_manager is not None:
                run_manager.on_llm_new_token(piece.text, chunk=chunk)
            yield chunk

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        tools = cast("Sequence[Any]", kwargs.get("tools") or ())
        answer_format: Any = kwargs.get("response_format")
        schemas = [*tools, answer_format] if answer_format is not None else tools
        tokens = self._check(messages, schemas, kwargs)
        self._sent.append(Sent(list(messages), tools, tokens))
        reply = self._next(list(messages))
        self._remember(reply)
        written = max(1, len(reply.text) // 4)
        usage: Any = {
            "input_tokens": tokens, "output_tokens": written, "total_tokens": tokens + written,
        }  # fmt: skip
        return reply.model_copy(update={"usage_metadata": usage})

    def _check(
        self, messages: list[BaseMessage], tools: Sequence[Any], kwargs: dict[str, Any]
    ) -> int:
        base = counter_for(self.model_name)
        output = kwargs.get("max_tokens") or self.max_tokens or 0
        wire = [_wire(message, self.provider) for message in messages]
        try:
            self._check_thinking(messages)
            tokens = check_request(
                wire, tools=tools, counter=base, provider=self.provider, thinking=self.thinking
            )
            tokens = int(tokens * self.scale)
            if tokens + output > self.window:
                raise RequestOverflow(tokens, self.window, output)
        except RequestRefused as refused:
            kind = WindowOverflowError if isinstance(refused, RequestOverflow) else BadRequestError
            error = kind(str(refused))
            self._refused.append(error)
            raise error from refused
        return tokens

    def _check_thinking(self, messages: list[BaseMessage]) -> None:
        """Signed thinking comes back as it was written, or not at all."""
        for index, message in enumerate(messages):
            for signature, text in _thoughts(message):
                if self._signed.get(signature, text) != text:
                    raise RequestRefused("missing_thinking", index, "signed thinking was edited")

    def _remember(self, reply: AIMessage) -> None:
        self._signed.update(_thoughts(reply))

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        given = self.replies
        if callable(given):
            reply: Any = given(messages)
        else:
            script = cast("Sequence[Reply]", given)
            reply = script[min(len(self._sent), len(script)) - 1]
            if not isinstance(reply, (str, AIMessage, Exception)):
                reply = reply(messages)
        if isinstance(reply, Exception):
            raise reply
        return AIMessage(reply) if isinstance(reply, str) else cast("AIMessage", reply)


def _as_chunk(reply: AIMessage) -> dict[str, Any]:
    chunks = [
        {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": at}
        for at, call in enumerate(reply.tool_calls)
    ]
    return {
        "content": reply.content, "tool_call_chunks": chunks, "id": reply.id,
        "usage_metadata": reply.usage_metadata, "additional_kwargs": reply.additional_kwargs,
    }  # fmt: skip


def _thoughts(message: BaseMessage) -> list[tuple[str, str]]:
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return []
    return [
        (str(block["signature"]), str(block.get("thinking")))
        for block in message.content
        if isinstance(block, dict) and block.get("signature")
    ]


# --- what a provider package would send ----------------------------------------------------------


def _wire(message: BaseMessage, provider: Provider) -> dict[str, Any]:
    """Write one message as the provider's package would."""
    if isinstance(message, ToolMessage):
        if provider == "anthropic":
            result = {
                "type": "tool_result", "tool_use_id": message.tool_call_id,
                "content": message.content,
            }  # fmt: skip
            return {"role": "user", "content": [result]}
        return {
            "role": "tool", "tool_call_id": message.tool_call_id, "content": message.content,
        }  # fmt: skip
    if isinstance(message, AIMessage):
        return _wire_of_assistant(message, provider)
    if isinstance(message, SystemMessage):
        return {"role": "system", "content": message.content}
    if isinstance(message, HumanMessage):
        return {"role": "user", "content": message.content}
    if isinstance(message, ChatMessage):
        return {"role": message.role, "content": message.content}
    raise BadRequestError(f"a message of type {message.type!r} cannot be sent")


def _wire_of_assistant(message: AIMessage, provider: Provider) -> dict[str, Any]:
    content = message.content
    if provider == "anthropic":
        blocks: list[Any] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        )
        stands = {_key(block, "id") for block in blocks}
        blocks = [block for block in blocks if block != {"type": "text", "text": ""}]
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
            for call in message.tool_calls
            if call["id"] not in stands
        ]
        return {"role": "assistant", "content": blocks}
    calls: list[tuple[Any, Any, str]] = [
        (call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
    ]
    calls += [
        (call.get("id"), call.get("name"), call.get("args") or "")
        for call in message.invalid_tool_calls
    ]
    if isinstance(content, list):
        content = [block for block in content if _key(block, "type") not in _CALL_BLOCKS]
    # As the package does: an empty text next to calls is sent as null.
    wire: dict[str, Any] = {"role": "assistant", "content": (content or None) if calls else content}
    if calls:
        wire["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return wire


def _key(block: object, name: str) -> object:
    return cast("dict[str, object]", block).get(name) if isinstance(block, dict) else None


_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "thinking", "reasoning"})
