"""Count the tool schemas that a request carries.

The formula that OpenAI publishes is exact for functions with flat properties. Nested objects,
`anyOf`, formats and definitions, which the formula does not cover, are charged as canonical JSON on
top. Key order never changes a count. `tool_forms` reads tools that are not dicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.counting.charges.tool_forms import tool_dicts
from muntin.messages import as_block, canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.counting.tokens import TokenCounter
    from muntin.messages import Block

__all__ = ("count_tools",)

_FUNCTION_START = 7
_FUNCTION_START_CL100K = 10
_FUNCTION_END = 12
_PROPERTIES = 3
_PROPERTY = 3
_ENUM = -3
_ENUM_ITEM = 3
_FLAT = frozenset({"type", "description", "enum"})
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_NAMED = ("name", "description", "type", "strict", "cache_control", "parameters")
_KNOWN = frozenset({"type", "properties", "required", "additionalProperties", "title", "$schema"})


def count_tools(tools: Any, *, counter: TokenCounter) -> int:
    """Count tool schemas as providers write them into the prompt.

    Args:
        tools: A list of tools, one tool, or JSON text of either. A tool is a dict of any provider
            (OpenAI, Responses, Anthropic, Gemini, Bedrock, MCP), a pydantic class, a function, or a
            tool object of LangChain, LlamaIndex or MCP. A provider's own tool is charged as its
            JSON, and a tool whose loading is deferred (`defer_loading`) by its name alone.
        counter: Counts the texts. A counter named after `cl100k_base` gets that vocabulary's
            framing, every other the one of `o200k_base`.

    Raises:
        ConfigurationError: A tool is in no known form, or its schema is nested too deep to be
            written as JSON.

    ```python
    from muntin import count_tokens
    from muntin.counting import count_tools

    def look_up(order: str) -> str:
        "Return where an order is."

    print(count_tools([look_up], counter=count_tokens))
    #> 42
    ```
    """
    start = _FUNCTION_START
    if "cl100k" in str(getattr(counter, "name", "")):
        start = _FUNCTION_START_CL100K
    return sum(_tool(tool, counter, start) for tool in tool_dicts(tools))


def _tool(given: Block, counter: TokenCounter, start: int) -> int:
    function = as_block(given.get("function")) or as_block(given.get("toolSpec")) or given
    name = function.get("name")
    if not isinstance(name, str):
        return counter(canonical_json(given))
    if given.get("defer_loading") is True or function.get("defer_loading") is True:
        return counter(name)  # the schema is not in the prompt before a search finds the tool
    schema = next(
        (found for key in _SCHEMAS if (found := as_block(function.get(key))) is not None), None
    )
    if schema is None:
        schema = {key: value for key, value in function.items() if key not in _NAMED}
    schema = as_block(schema.get("json")) or schema  # Bedrock
    total = start + _FUNCTION_END
    total += counter(f"{name}:{_sentence(function.get('description'))}")
    properties = as_block(schema.get("properties")) or {}
    if properties:
        total += _PROPERTIES
        total += sum(_property(key, properties[key], counter) for key in properties)
    rest = {key: value for key, value in schema.items() if key not in _KNOWN}
    return total + (counter(canonical_json(rest)) if rest else 0)


def _property(name: str, given: Any, counter: TokenCounter) -> int:
    about = as_block(given) or {}
    kind = about.get("type", "")
    total = _PROPERTY + counter(f"{name}:{_plain(kind)}:{_sentence(about.get('description'))}")
    if isinstance(about.get("enum"), list):
        total += _ENUM + sum(_ENUM_ITEM + counter(_plain(item)) for item in about["enum"])
    rest = _beyond_flat(about)
    return total + (counter(canonical_json(rest)) if rest else 0)


def _beyond_flat(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in about.items() if key not in _FLAT}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _sentence(text: Any) -> str:
    """Drop the full stop, as the published formula does."""
    return str(text or "").removesuffix(".")
