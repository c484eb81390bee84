"""Read a tool in any form as the dict that is sent: name, description and JSON schema.

Accepted are dicts of every provider, JSON text, MCP tools, pydantic classes, typed dicts and data
classes, functions, and the tool objects of LangChain, LlamaIndex and client libraries. Nothing of a
framework is imported: an object is recognised by what it has.
"""

from __future__ import annotations

import inspect
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast, get_type_hints, is_typeddict

from muntin.errors import ConfigurationError
from muntin.messages import Block, as_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ("tool_dicts",)

_LISTS = ("functions", "function_declarations", "functionDeclarations", "tools")
"""Keys under which a dict holds several tools."""
_SCHEMAS = ("inputSchema", "input_schema", "args_schema", "parameters")
"""Attributes and keys that hold the schema of the arguments."""


def tool_dicts(tools: Any) -> Iterator[Block]:
    """Yield the tools of a request as dicts, in their order.

    Args:
        tools: One tool, a list of tools, or JSON text of either.

    Raises:
        ConfigurationError: An object is in no known form.
    """
    if isinstance(tools, str):
        yield from tool_dicts(_parsed(tools))
        return
    block = as_block(tools)
    if block is not None:
        several = next((key for key in _LISTS if _is_list(block.get(key))), None)
        if several is None:
            yield block
        else:
            yield from tool_dicts(block[several])
        return
    if _is_list(tools):
        for tool in cast("Sequence[Any]", tools):
            yield from tool_dicts(tool)
        return
    yield _of_object(tools)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


def _parsed(text: str) -> Any:
    """Parse JSON text; other text is charged as a description."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {"description": text}
    if isinstance(value, (dict, list)):
        return cast("Any", value)
    return {"description": text}


def _of_object(tool: Any) -> Block:
    if isinstance(tool, type):
        return _of_class(tool)
    convert = getattr(getattr(tool, "metadata", None), "to_openai_tool", None)
    if callable(convert):  # LlamaIndex
        return cast("Block", convert())
    name = getattr(tool, "name", None)
    if isinstance(name, str):
        for attribute in _SCHEMAS:
            schema = getattr(tool, attribute, None)
            if schema is not None:  # MCP, LangChain
                found = as_block(schema) or _of_class(schema)
                made: Block = {
                    "name": name,
                    "description": getattr(tool, "description", "") or "",
                    "parameters": found.get("parameters", found),
                }
                extras = as_block(getattr(tool, "extras", None)) or {}
                return {**made, "defer_loading": True} if extras.get("defer_loading") else made
    dump = getattr(tool, "model_dump", None)
    dumped = as_block(dump(exclude_none=True)) if callable(dump) else None
    if dumped is not None:  # client libraries
        return dumped
    if callable(tool):
        is_hashable = getattr(tool, "__hash__", None) is not None
        return _of_function(tool) if is_hashable else _of_function.__wrapped__(tool)
    raise ConfigurationError(
        f"a tool must be a dict, JSON text, a pydantic class, a function, or a tool of MCP, "
        f"LangChain or LlamaIndex, got {type(tool).__name__}"
    )


@lru_cache(maxsize=256)
def _of_class(kind: Any) -> Block:
    """Read a pydantic class, a typed dict or a data class; its docstring is the description."""
    from pydantic import TypeAdapter, create_model
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    write = getattr(kind, "model_json_schema", None)
    try:
        if callable(write):
            schema: Any = write()
        elif is_typeddict(kind):  # pydantic reads those of `typing` from Python 3.12 on only
            hints: dict[str, Any] = {key: (one, ...) for key, one in get_type_hints(kind).items()}
            schema = create_model(kind.__name__, __doc__=kind.__doc__, **hints).model_json_schema()
        else:
            schema = TypeAdapter(kind).json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise ConfigurationError(
            f"the class {getattr(kind, '__name__', kind)!s:.80} has no JSON schema, so it cannot "
            f"be a tool: {type(error).__name__}"
        ) from error
    schema = dict(cast("Mapping[str, Any]", schema))
    about = schema.pop("description", "")
    name = schema.pop("title", None) or getattr(kind, "__name__", "tool")
    return {"name": name, "description": about, "parameters": schema}


@lru_cache(maxsize=256)
def _of_function(function: Callable[..., Any]) -> Block:
    """Read a function: its name, docstring and annotated parameters."""
    from pydantic import create_model
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    name = getattr(function, "__name__", None) or type(function).__name__
    fields: dict[str, Any] = {}
    try:
        given = inspect.signature(function, eval_str=True).parameters.values()
    except (NameError, TypeError, ValueError):
        try:
            given = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            given = ()
    for one in given:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.name.startswith("_"):
            continue
        annotated = one.annotation is not one.empty and not isinstance(one.annotation, str)
        kind = one.annotation if annotated else Any
        fields[one.name] = (kind, ... if one.default is one.empty else one.default)
    try:
        schema = create_model(name, **fields).model_json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
        plain = dict.fromkeys(fields, (Any, ...))
        schema = create_model(name, **cast("Any", plain)).model_json_schema()
    schema.pop("title", None)
    return {"name": name, "description": inspect.getdoc(function) or "", "parameters": schema}
