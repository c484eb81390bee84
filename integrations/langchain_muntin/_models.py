"""What a chat model says of itself: its window, what it may write, the tools bound to it.

A model comes alone or wrapped (`bind_tools`, `with_config`, `with_retry`, `with_fallbacks`); what
is bound to it travels with every request, so it is charged. Tool schemas are converted once per
tool: conversion costs far more than counting.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.utils.function_calling import convert_to_openai_tool

from muntin.counters import EstimateCounter, counter_for
from muntin.errors import ConfigurationError
from muntin.window import Window, resolve_window

if TYPE_CHECKING:
    from muntin.config import WindowBudgetConfig
    from muntin.tokens import TokenCounter

__all__ = ("ModelFacts", "schema_of", "schemas_of")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Hold what is known of a model."""

    model: Any
    """The model itself, unwrapped; `None` where none is given."""
    bound: Mapping[str, Any]
    """What is bound to every request: tools, settings."""

    @classmethod
    def of(cls, model: Any) -> ModelFacts:
        """Look at a model, through whatever it is wrapped in."""
        bound: dict[str, Any] = {}
        inner: Any = model
        while True:
            if _is_binding(inner):
                bound = {**inner.kwargs, **bound}
                inner = inner.bound
            elif hasattr(inner, "fallbacks") and hasattr(inner, "runnable"):
                inner = inner.runnable
            else:
                return cls(model=inner, bound=bound)

    @property
    def name(self) -> str:
        """Name the model, to keep apart what is learned of several."""
        for attribute in ("model_name", "model", "model_id"):
            name = getattr(self.model, attribute, None)
            if isinstance(name, str) and name:
                return name
        return type(self.model).__name__

    def schemas(self, tools: Sequence[Any] = ()) -> tuple[Any, ...]:
        """List the schemas that travel with a request: bound ones, given ones, the answer's."""
        bound: object = self.bound.get("tools") or ()
        found = schemas_of([*cast("Sequence[Any]", bound), *tools])
        answer = self.bound.get("response_format")
        if not isinstance(answer, Mapping):
            return found
        return (*found, cast("Mapping[str, Any]", answer))

    def window(self, given: int | None) -> Window | None:
        """Find out the window: the number, else what the model says; `None` when neither does.

        Raises:
            ConfigurationError: The number is not positive.
        """
        if given is not None:
            said = None if self.model is None else _quiet(self.model)
            return Window(
                tokens=resolve_window(given).tokens,
                max_output=None if said is None else said.max_output,
            )
        return None if self.model is None else _quiet(self.model)

    def reserve(
        self, window: Window, config: WindowBudgetConfig, settings: Mapping[str, Any] | None = None
    ) -> int:
        """Return the tokens to keep free for the answer.

        What was asked for outright (`max_tokens` bound to the request or set on the model) is
        what a provider adds to the prompt when it compares with the window, so it is taken as it
        is. Otherwise the configuration decides.
        """
        for source in (settings or {}, self.bound):
            asked = _first_number(source.get(key) for key in _OUTPUT_KEYS)
            if asked:
                return min(asked, window.tokens - 1)
        asked = _first_number(getattr(self.model, key, None) for key in _OUTPUT_KEYS)
        if asked and asked < window.tokens:
            return asked
        return config.output_reserve(window=window.tokens, model_max_output=window.max_output)

    def counter(self) -> TokenCounter:
        """Find the counter for the model; without one, the calibrated estimate.

        The same model gets the same counter, so that what messages cost is remembered for it.
        """
        if self.model is None:
            return _ESTIMATE
        if isinstance(self.model, str):
            return _counter_of(self.model)
        if callable(self.model) and not hasattr(self.model, "invoke"):
            return cast("TokenCounter", self.model)
        return _counter_of(self.name)


_ESTIMATE = EstimateCounter()


@lru_cache(maxsize=64)
def _counter_of(name: str) -> TokenCounter:
    return counter_for(name)


_OUTPUT_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")


def _is_binding(model: object) -> bool:
    return isinstance(model, RunnableBindingBase)


def _first_number(values: Any) -> int | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _quiet(model: Any) -> Window | None:
    """Read a model's own window; unknown is no error here."""
    try:
        return resolve_window(model)
    except ConfigurationError:
        return None


# --- tools ---------------------------------------------------------------------------------------

_schemas: dict[int, tuple[Callable[[], object], Any]] = {}
"""Schema of each tool object, beside a reference that says whether the object still lives."""


def schema_of(tool: Any) -> Any:
    """Return the schema of one tool as it is sent; a dict is one already."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    known = _schemas.get(id(tool))
    if known is not None and known[0]() is tool:
        return known[1]
    schema = convert_to_openai_tool(tool)
    try:
        alive: Callable[[], object] = weakref.ref(tool, _forget(id(tool)))
    except TypeError:  # no reference can be held without keeping the tool alive
        return schema
    _schemas[id(tool)] = (alive, schema)
    return schema


def schemas_of(tools: Sequence[Any]) -> tuple[Any, ...]:
    """Return the schemas of tools: LangChain tools, functions, pydantic classes or dicts."""
    return tuple(schema_of(tool) for tool in tools)


def _forget(key: int) -> Callable[[object], None]:
    def forget(_: object) -> None:
        _schemas.pop(key, None)

    return forget
