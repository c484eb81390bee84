"""Cap what a tool returns before it enters the state, and offer a way to read the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import Field

from langchain_muntin._shapes import SHAPE
from muntin.counting import count_tokens
from muntin.errors import ConfigurationError
from muntin.prompts import DEFAULT_PROMPTS
from muntin.tool_results import read_tool, truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from muntin.counting import TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("ReadBackTool", "ResultCap", "offered", "read_back_tool")

_SHARE = 0.25
"""Share of the budget one result may take."""
_UNKNOWN = 4000
"""Tokens one result may take before any model call told the budget."""
_READ_TOKENS = 2000
"""Tokens one answer of the reading tool may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCap:
    """Say how large a tool result may be, and shorten what is larger."""

    max_tokens: int | None
    """Tokens one result may take; `None` goes by the budget."""
    store: ToolResultStore
    """Keeps the originals."""
    prompts: PromptRegistry | None
    """Texts of markers."""
    budget: int | None
    """The budget until a model call tells one."""

    def apply(self, result: Any, budget: int | None, counter: TokenCounter = count_tokens) -> Any:
        """Return what a tool returned, or a copy of it whose results are short enough.

        Args:
            result: A message, a command that brings messages along, or a list of both.
            budget: Tokens of a request; `None` before any was sent.
            counter: Counts them.
        """
        cap = self.max_tokens
        if cap is None:
            known = budget or self.budget
            cap = _UNKNOWN if known is None else max(int(_SHARE * known), 1)
        return self._short(result, cap, counter)

    def _short(self, given: Any, cap: int, counter: TokenCounter) -> Any:
        """Shorten the messages in what a tool returned; the same object where none is too long."""
        if isinstance(given, ToolMessage):
            return self._message(given, cap, counter)
        if isinstance(given, Command):
            command = cast("Command[Any]", given)
            update: object = self._short(command.update, cap, counter)
            return command if update is command.update else replace(command, update=update)
        if isinstance(given, dict):
            changes = cast("dict[str, Any]", given)
            messages: object = self._short(changes.get("messages"), cap, counter)
            same = messages is changes.get("messages")
            return changes if same else {**changes, "messages": messages}
        if isinstance(given, (list, tuple)):
            many = cast("Sequence[Any]", given)
            short = [self._short(one, cap, counter) for one in many]
            if all(a is b for a, b in zip(short, many, strict=True)):
                return many
            return tuple(short) if isinstance(given, tuple) else short
        return given

    def _message(self, message: ToolMessage, cap: int, counter: TokenCounter) -> ToolMessage:
        (*_, result) = SHAPE.view(message).results
        short = truncate_tool_result(
            result.text,
            cap,
            counter=counter,
            store=self.store,
            name=message.name or "",
            prompts=self.prompts or DEFAULT_PROMPTS,
        )
        if short is result.text:
            return message
        return cast("ToolMessage", SHAPE.with_results(message, {result.call_id: short}))


class ReadBackTool(StructuredTool):
    """The tool that reads originals of shortened results; its answers are bounded by themselves."""

    store: Any = Field(exclude=True, repr=False)
    """Where it reads."""


def read_back_tool(
    store: ToolResultStore,
    max_result_tokens: int | None,
    prompts: PromptRegistry | None,
    counter: TokenCounter = count_tokens,
) -> ReadBackTool:
    """Make the tool that reads originals of shortened results, as LangChain registers tools."""
    tokens = _READ_TOKENS if max_result_tokens is None else min(_READ_TOKENS, max_result_tokens)
    reading = read_tool(
        store, max_tokens=tokens, counter=counter, prompts=prompts or DEFAULT_PROMPTS
    )
    return ReadBackTool(
        name=reading.name,
        description=reading.description,
        args_schema=dict(reading.parameters),
        func=reading.__call__,
        store=store,
    )


def offered(
    tools: Sequence[Any], own: ReadBackTool, messages: Sequence[BaseMessage], model: BaseChatModel
) -> Sequence[Any]:
    """Return the tools to send, without the reading one where nothing is to be read.

    Raises:
        ConfigurationError: Another tool stands in its place.
    """
    ours = [tool for tool in tools if getattr(tool, "name", None) == own.name]
    for tool in ours:
        if not (isinstance(tool, ReadBackTool) and tool.store is own.store):
            raise ConfigurationError(
                f"another tool of the agent is named {own.name!r}: rename it, give all middleware "
                f"that bring one the same store=, or read_back=False"
            )
    binds: object = getattr(type(model), "bind_tools", None)
    takes_tools = binds is not BaseChatModel.bind_tools
    reads = takes_tools and any(isinstance(message, ToolMessage) for message in messages)
    # An agent without tools of its own may have a model that takes none.
    return [] if len(ours) == len(tools) and not reads else tools
