"""A model with scripted replies that records its requests and refuses what providers refuse.

`StrictLLM` is a `FunctionCallingLLM` for tests: each request is checked as a provider would check
it (window, pairs of calls and results, empty messages) before the next scripted reply is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    TextBlock,
)
from llama_index.core.llms import callbacks
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import Field, PrivateAttr

from llama_index_muntin._conversion import copy_of_message
from llama_index_muntin._models import counter_of, schemas_of
from llama_index_muntin._shapes import SHAPE
from muntin.testing import check_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

__all__ = ("Call", "Reply", "StrictLLM", "call")

_F = TypeVar("_F", bound=Callable[..., Any])


def _traced_chat(function: _F) -> _F:
    """Let a chat show up in traces; their decorator is untyped."""
    return callbacks.llm_chat_callback()(function)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - theirs is untyped


def _traced_completion(function: _F) -> _F:
    """Let a completion show up in traces; their decorator is untyped."""
    return callbacks.llm_completion_callback()(function)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - theirs is untyped


_CALL_BLOCK = getattr(types, "ToolCallBlock", None)


class Call:
    """A tool call that a scripted model makes."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.name = name
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"call({self.name!r}, **{self.arguments!r})"


def call(name: str, **arguments: Any) -> Call:
    """Script a tool call.

    ```python
    from llama_index_muntin.testing import call

    print(call("search", query="tea"))
    #> call('search', **{'query': 'tea'})
    ```
    """
    return Call(name, arguments)


Reply = str | Call | Sequence[Call] | ChatMessage | Exception
"""What a scripted model answers: a text, one call, calls in parallel, a message, or an error."""

Script = Iterable[Reply] | Callable[[list[ChatMessage]], Reply]
"""Replies in order, or a function from what was sent to the reply."""


class StrictLLM(FunctionCallingLLM):
    """Answer with prepared replies, and refuse what a provider would refuse.

    Args:
        replies: What to answer, in order, or a function of the messages that were sent.
        window: Tokens of its context window.
        num_output: Tokens it writes at most; each request must leave them in the window.
        model: Name of the model it imitates.
        counter: How this provider counts. `None` takes the counter of the model.
        provider: Provider to follow where their rules differ.
        form: Where calls are put: into blocks or, as older integrations do, `additional_kwargs`.

    ```python
    from llama_index.core.llms import ChatMessage
    from llama_index_muntin.testing import StrictLLM

    llm = StrictLLM(["Hello."], window=100, num_output=20)
    print(llm.chat([ChatMessage(role="user", content="Hi")]).message.content, llm.tokens)
    #> Hello. [8]
    try:
        llm.chat([ChatMessage(role="user", content="word " * 90)])
    except Exception as refused:
        print(type(refused).__name__)
    #> RequestOverflow
    ```
    """

    window: int = Field(default=8000, description="Tokens of the context window.")
    num_output: int = Field(default=256, description="Tokens it writes at most.")
    model: str = Field(default="gpt-4o", description="Name of the model.")
    provider: Literal["openai", "anthropic", "alternating"] = Field(
        default="openai", description="Provider to follow."
    )
    form: Literal["block", "kwargs"] = Field(default="block", description="Where calls are put.")
    counter: Any = Field(default=None, exclude=True, description="How tokens are counted.")

    requests: list[list[ChatMessage]] = Field(
        default_factory=list[list[ChatMessage]], exclude=True, description="What it was sent."
    )
    tools: list[list[dict[str, Any]]] = Field(
        default_factory=list[list[dict[str, Any]]], exclude=True, description="Schemas sent along."
    )
    tokens: list[int] = Field(
        default_factory=list[int], exclude=True, description="Tokens of each request."
    )

    _script: Any = PrivateAttr()
    _made: int = PrivateAttr(default=0)

    def __init__(self, replies: Script = (), **data: Any) -> None:
        super().__init__(**data)
        self._script = replies if callable(replies) else iter(list(replies))

    @classmethod
    def class_name(cls) -> str:
        """Name the class in saved forms."""
        return "StrictLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """Window, output limit and name of the model."""
        return LLMMetadata(
            context_window=self.window,
            num_output=self.num_output,
            is_chat_model=True,
            is_function_calling_model=True,
            model_name=self.model,
        )

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.requests)

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,  # noqa: FBT001, FBT002, ARG002 - the signature is theirs
        allow_parallel_tool_calls: bool = False,  # noqa: FBT001, FBT002, ARG002 - the same
        tool_required: bool = False,  # noqa: FBT001, FBT002, ARG002 - the same
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or [])
        if isinstance(user_msg, str):
            user_msg = ChatMessage(role=MessageRole.USER, content=user_msg)
        if user_msg is not None:
            messages.append(user_msg)
        return {"messages": messages, "tools": list(tools), **kwargs}

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,  # noqa: FBT001, FBT002 - the signature is theirs
        **kwargs: Any,  # noqa: ARG002 - the same
    ) -> list[ToolSelection]:
        """Return the calls a reply makes.

        Raises:
            ValueError: There are none, and there should be.
        """
        calls = SHAPE.view(response.message).calls
        if not calls and error_on_no_tool_call:
            raise ValueError("the reply makes no tool call")
        return [
            ToolSelection(tool_id=one.id, tool_name=one.name, tool_kwargs=one.parsed)
            for one in calls
        ]

    @_traced_chat
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Check a request and answer it."""
        return ChatResponse(message=self._answer(messages, kwargs))

    @_traced_chat
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Check a request and answer it."""
        return ChatResponse(message=self._answer(messages, kwargs))

    @_traced_chat
    def stream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> Generator[ChatResponse, None, None]:
        """Check a request and answer it piece by piece."""
        answer = self._answer(messages, kwargs)

        def stream() -> Generator[ChatResponse, None, None]:
            yield from _pieces(answer)

        return stream()

    @_traced_chat
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse, None]:
        """Check a request and answer it piece by piece."""
        answer = self._answer(messages, kwargs)

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            for piece in _pieces(answer):
                yield piece

        return stream()

    @_traced_completion
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002, ARG002 - the signature is theirs
        """Answer a prompt as one message of the user."""
        return CompletionResponse(text=self._completed(prompt, kwargs))

    @_traced_completion
    async def acomplete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: FBT001, FBT002, ARG002 - the signature is theirs
        **kwargs: Any,
    ) -> CompletionResponse:
        """Answer a prompt as one message of the user."""
        return CompletionResponse(text=self._completed(prompt, kwargs))

    @_traced_completion
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: FBT001, FBT002, ARG002 - the signature is theirs
        **kwargs: Any,
    ) -> Generator[CompletionResponse, None, None]:
        """Answer a prompt in one piece."""
        text = self._completed(prompt, kwargs)

        def stream() -> Generator[CompletionResponse, None, None]:
            yield CompletionResponse(text=text, delta=text)

        return stream()

    @_traced_completion
    async def astream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: FBT001, FBT002, ARG002 - the signature is theirs
        **kwargs: Any,
    ) -> AsyncGenerator[CompletionResponse, None]:
        """Answer a prompt in one piece."""
        text = self._completed(prompt, kwargs)

        async def stream() -> AsyncGenerator[CompletionResponse, None]:
            yield CompletionResponse(text=text, delta=text)

        return stream()

    def _completed(self, prompt: str, kwargs: dict[str, Any]) -> str:
        message = ChatMessage(role=MessageRole.USER, content=prompt)
        return self._answer([message], kwargs).content or ""

    def _answer(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> ChatMessage:
        """Record and check a request, and make the next reply."""
        schemas = schemas_of(kwargs.get("tools") or ())
        self.requests.append([copy_of_message(message) for message in messages])
        self.tools.append(schemas)
        self.tokens.append(
            check_request(
                messages,
                window=self.window,
                tools=schemas,
                max_output=self.num_output,
                counter=counter_of(self.counter, self),
                provider=self.provider,
            )
        )
        return self._message(self._next(messages))

    def _next(self, messages: Sequence[ChatMessage]) -> Reply:
        if callable(self._script):
            return cast("Reply", self._script(list(messages)))
        try:
            return next(self._script)
        except StopIteration:
            raise AssertionError(
                f"StrictLLM was asked {self.calls} times and has no reply left"
            ) from None

    def _message(self, reply: Reply) -> ChatMessage:
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ChatMessage):
            return copy_of_message(reply)
        if isinstance(reply, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=reply)
        calls = [reply] if isinstance(reply, Call) else list(reply)
        blocks: list[Any] = []
        beside: list[dict[str, Any]] = []
        for one in calls:
            self._made += 1
            call_id = f"call-{self._made}"
            if _CALL_BLOCK is not None and self.form == "block":
                blocks.append(
                    _CALL_BLOCK(tool_call_id=call_id, tool_name=one.name, tool_kwargs=one.arguments)
                )
                continue
            function = {"name": one.name, "arguments": json.dumps(one.arguments)}
            beside.append({"id": call_id, "type": "function", "function": function})
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            blocks=blocks,
            additional_kwargs={"tool_calls": beside} if beside else {},
        )


def _pieces(answer: ChatMessage) -> Iterable[ChatResponse]:
    """Stream a message word by word, calls at the end."""
    said = ""
    for word in (answer.content or "").split(" ") if answer.content else ():
        delta = f" {word}" if said else word
        said += delta
        part = ChatMessage(role=answer.role, blocks=[TextBlock(text=said)])
        yield ChatResponse(message=part, delta=delta)
    yield ChatResponse(message=answer, delta="")
