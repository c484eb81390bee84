"""Cap what a tool returns before it enters the state, and offer a way to read the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from langchain_muntin._shapes import SHAPE
from muntin.prompts import DEFAULT_PROMPTS
from muntin.result_reader import read_tool
from muntin.shapes.blocks import replace_text
from muntin.tokens import count_tokens
from muntin.tool_results import truncate_tool_result

if TYPE_CHECKING:
    from muntin.prompts import PromptRegistry
    from muntin.result_store import ToolResultStore

__all__ = ("READ_BACK", "ResultCap", "read_back_tool")

READ_BACK = "read_tool_result"
"""Name of the tool that reads originals; its answers are bounded by themselves."""
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

    def apply(self, result: Any, budget: int | None) -> Any:
        """Return a result, or a copy of it that is short enough."""
        cap = self.max_tokens
        if cap is None:
            known = budget or self.budget
            cap = _UNKNOWN if known is None else max(int(_SHARE * known), 1)
        if isinstance(result, ToolMessage):
            return self._message(result, cap)
        if isinstance(result, Command):
            return self._command(cast("Command[Any]", result), cap)
        return result

    def _command(self, command: Command[Any], cap: int) -> Command[Any]:
        update: object = command.update
        if not isinstance(update, dict):
            return command
        changes = cast("dict[str, Any]", update)
        messages = changes.get("messages")
        if not isinstance(messages, list):
            return command
        given = cast("list[Any]", messages)
        short = [self._message(m, cap) if isinstance(m, ToolMessage) else m for m in given]
        if all(a is b for a, b in zip(short, given, strict=True)):
            return command
        return replace(command, update={**changes, "messages": short})

    def _message(self, message: ToolMessage, cap: int) -> ToolMessage:
        if message.name == READ_BACK:
            return message
        (result, *_) = SHAPE.view(message).results
        short = truncate_tool_result(
            result.text,
            cap,
            counter=count_tokens,
            store=self.store,
            name=message.name or "",
            prompts=self.prompts or DEFAULT_PROMPTS,
        )
        if short is result.text:
            return message
        return message.model_copy(update={"content": replace_text(message.content, short)})


def read_back_tool(
    store: ToolResultStore, max_result_tokens: int | None, prompts: PromptRegistry | None
) -> BaseTool:
    """Make the tool that reads originals of shortened results, as LangChain registers tools."""
    tokens = _READ_TOKENS if max_result_tokens is None else min(_READ_TOKENS, max_result_tokens)
    reading = read_tool(store, max_tokens=tokens, prompts=prompts or DEFAULT_PROMPTS)
    return StructuredTool(
        name=reading.name,
        description=reading.description,
        args_schema=dict(reading.parameters),
        func=reading.__call__,
    )
