"""Cap what a tool returns before it enters the state, and offer a tool that reads the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import Field

from langchain_muntin._shapes import SHAPE
from muntin.adapting import reading_tool
from muntin.counting import count_tokens
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from muntin.adapting import ResultCap
    from muntin.counting import TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("ReadBackTool", "capped", "offered", "read_back_tool", "refused_reading")


def capped(
    result: Any, cap: ResultCap, budget: int | None, counter: TokenCounter = count_tokens
) -> Any:
    """Return what a tool returned, or a copy of it whose results are short enough.

    Args:
        result: A message, a command that brings messages along, or a list of both.
        cap: How large results may be.
        budget: Tokens of a request; `None` before any was sent.
        counter: Counts tokens.
    """
    if isinstance(result, ToolMessage):
        return _message(result, cap, budget, counter)
    if isinstance(result, Command):
        command = cast("Command[Any]", result)
        update: object = capped(command.update, cap, budget, counter)
        return command if update is command.update else replace(command, update=update)
    if isinstance(result, dict):
        changes = cast("dict[str, Any]", result)
        messages: object = capped(changes.get("messages"), cap, budget, counter)
        same = messages is changes.get("messages")
        return changes if same else {**changes, "messages": messages}
    if isinstance(result, (list, tuple)):
        many = cast("Sequence[Any]", result)
        short = [capped(one, cap, budget, counter) for one in many]
        if all(a is b for a, b in zip(short, many, strict=True)):
            return many
        return tuple(short) if isinstance(result, tuple) else short
    return result


def _message(
    message: ToolMessage, cap: ResultCap, budget: int | None, counter: TokenCounter
) -> ToolMessage:
    (*_, result) = SHAPE.view(message).results
    short = cap.shortened(result.text, name=message.name or "", budget=budget, counter=counter)
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
    reading = reading_tool(store, max_result_tokens, counter=counter, prompts=prompts)
    return ReadBackTool(
        name=reading.name,
        description=reading.description,
        args_schema=dict(reading.parameters),
        func=reading.__call__,
        store=store,
    )


def offered(
    tools: Sequence[Any], own: ReadBackTool, model: BaseChatModel, *, reads: bool, named: bool
) -> Sequence[Any]:
    """Return the tools to send.

    Args:
        tools: The tools of the request.
        own: The reading tool.
        model: The model.
        reads: Whether the conversation has results at all.
        named: Whether a marker in it names an id; then the tool is offered even if another
            middleware removed it.

    Raises:
        ConfigurationError: Another tool has its name.
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
    if not ours:
        return [*tools, own] if takes_tools and named else tools
    # An agent without tools of its own may have a model that takes none.
    return [] if len(ours) == len(tools) and not (takes_tools and reads) else tools


def refused_reading(call: Any, ids: Collection[str]) -> ToolMessage | None:
    """Refuse to read an original whose id is not in the conversation; `None` if it may be read.

    Ids are hashes of contents: an id from elsewhere would open another user's result.
    """
    arguments: dict[str, Any] = call["args"] or {}
    wanted = str(arguments.get("id", ""))
    if wanted in ids:
        return None
    return ToolMessage(
        f"[no tool result with the id {wanted!r:.60} was shortened in this conversation]",
        tool_call_id=call["id"],
        name=call["name"],
        status="error",
    )
