"""Count the tool schemas a request carries.

The formula OpenAI publishes in its cookbook is exact for functions whose properties are flat. What
it does not speak of (nested objects, `required`, `anyOf`, formats) is charged as canonical JSON on
top, so that a large schema is never cheap. Key order never changes a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.messages import as_block, canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.counting.tokens import TokenCounter

__all__ = ("count_tools",)

_FUNCTION_START = 7
_FUNCTION_START_CL100K = 10
_FUNCTION_END = 12
_PROPERTIES = 3
_PROPERTY = 3
_ENUM = -3
_ENUM_ITEM = 3
_FLAT = frozenset({"type", "description", "enum"})
_KNOWN = frozenset({"type", "properties", "required", "additionalProperties", "title", "$schema"})


def count_tools(tools: Sequence[Any], *, counter: TokenCounter) -> int:
    """Count tool schemas as providers write them into the prompt.

    Args:
        tools: OpenAI tools (`{"type": "function", "function": ...}`), Responses and Anthropic
            tools, or bare function dicts. A provider's own tool is charged as its JSON.
        counter: Counts the texts. A counter named after `cl100k_base` gets that vocabulary's
            framing, every other the one of `o200k_base`.
    """
    start = _FUNCTION_START
    if "cl100k" in str(getattr(counter, "name", "")):
        start = _FUNCTION_START_CL100K
    return sum(_tool(tool, counter, start) for tool in tools)


def _tool(tool: Any, counter: TokenCounter, start: int) -> int:
    given = as_block(tool)
    if given is None:
        dump = getattr(tool, "model_dump", None)
        given = as_block(dump()) if callable(dump) else None
    if given is None:
        return counter(str(tool))
    function = as_block(given.get("function")) or given
    name = function.get("name")
    if not isinstance(name, str):
        return counter(canonical_json(given))
    schema = as_block(function.get("parameters")) or as_block(function.get("input_schema")) or {}
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
