"""The schema of a structured answer, which is sent along and costs like a tool."""

from __future__ import annotations

from typing import Any

from langchain_muntin._models import schema_of

__all__ = ("answer_schemas",)


def answer_schemas(response_format: Any) -> tuple[Any, ...]:
    """Return the schemas that a response format adds to a request.

    Args:
        response_format: A strategy of `langchain.agents.structured_output`, a bare schema, or
            `None`.
    """
    if response_format is None:
        return ()
    many: Any = getattr(response_format, "schema_specs", None)
    one: Any = getattr(response_format, "schema_spec", None)
    specs = list(many) if many is not None else [] if one is None else [one]
    if specs:
        return tuple(_spelt(spec) for spec in specs)
    return (schema_of(getattr(response_format, "schema", response_format)),)


def _spelt(spec: Any) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description or "",
        "parameters": spec.json_schema,
    }
