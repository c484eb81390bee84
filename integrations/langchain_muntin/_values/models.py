"""Read the facts of a chat model: its window, its output limit, the tools bound to it.

A model comes alone or wrapped (`bind_tools`, `with_config`, `with_retry`, `with_fallbacks`,
`with_structured_output`); what is bound to it is sent with every request, so it is charged. If
several models may answer, a request has to fit each. Tool schemas are converted once per tool:
conversion costs far more than counting.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableParallel, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.utils.function_calling import convert_to_openai_tool

from muntin.counting import EstimateCounter, checked_counter, counter_for
from muntin.errors import ConfigurationError
from muntin.window import Window, resolve_window

if TYPE_CHECKING:
    from muntin.config import WindowBudgetConfig
    from muntin.counting import TokenCounter

__all__ = ("ESTIMATE", "ModelFacts", "answer_schemas", "counter_of", "schema_of", "schemas_of")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of a model."""

    model: Any
    """The model itself, unwrapped; `None` where none is given."""
    bound: Mapping[str, Any]
    """What is bound to every request: tools, settings."""
    fallbacks: tuple[ModelFacts, ...] = ()
    """Facts of the models that are called when it fails."""

    @classmethod
    def of(cls, model: Any, bound: Mapping[str, Any] | None = None) -> ModelFacts:
        """Read the facts of a model, wrapped or not.

        Args:
            model: The model.
            bound: What outer wrappers bind to it; `None` is nothing.
        """
        bound = bound or {}
        given: Any = model
        if isinstance(model, RunnableBindingBase):
            return cls.of(given.bound, {**given.kwargs, **bound})
        if isinstance(model, RunnableWithFallbacks):
            first, *others = (cls.of(one, bound) for one in given.runnables)
            spare = (one for facts in others for one in (facts, *facts.fallbacks))
            return replace(first, fallbacks=(*first.fallbacks, *spare))
        asked = _asked_in(given)
        if asked is not None:
            inside = cls.of(asked, bound)
            if isinstance(inside.model, BaseLanguageModel):
                return inside
        return cls(model=model, bound=bound)

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
        answers = (self.bound.get(key) for key in _ANSWER_KEYS)
        return (*found, *schemas_of([one for one in answers if isinstance(one, (Mapping, type))]))

    def window(self, given: int | None) -> Window | None:
        """Return the window: the given number, else the smallest window of the models.

        Returns:
            The window; `None` if no number is given and the window of no model is known.

        Raises:
            ConfigurationError: The number is not positive.
        """
        said = (one._own_window(given) for one in self._all)
        known = [window for window in said if window is not None]
        return min(known, key=lambda window: window.tokens, default=None)

    def division(
        self,
        given: int | None,
        config: WindowBudgetConfig,
        settings: Mapping[str, Any] | None = None,
    ) -> tuple[Window, int] | None:
        """Divide the window of the model that leaves a request the fewest tokens.

        Args:
            given: Tokens of the window; `None` takes the windows of the models.
            config: Decides if no number of tokens is set outright.
            settings: Settings of this one request; `None` where there are none.

        Returns:
            The window and the tokens of it to keep free for the answer; `None` where it is unknown.

        Raises:
            ConfigurationError: The number is not positive, or the answer takes all of it.
        """
        windows = ((one, one._own_window(given)) for one in self._all)
        divided = [
            (window, one._reserve(window, config, settings))
            for one, window in windows
            if window is not None
        ]
        return min(divided, key=lambda parts: parts[0].tokens - parts[1], default=None)

    @property
    def _all(self) -> tuple[ModelFacts, ...]:
        return (self, *self.fallbacks)

    def _own_window(self, given: int | None) -> Window | None:
        if given is not None:
            said = None if self.model is None else _quiet(self.model)
            return Window(
                tokens=resolve_window(given).tokens,
                max_output=None if said is None else said.max_output,
            )
        return None if self.model is None else _quiet(self.model)

    def _reserve(
        self, window: Window, config: WindowBudgetConfig, settings: Mapping[str, Any] | None
    ) -> int:
        """Return the tokens to keep free for the answer.

        An explicit `max_tokens` (bound to the request or set on the model) is what a provider adds
        to the prompt when it checks the window, so it is used unchanged. Otherwise the
        configuration decides.
        """
        for source in (settings or {}, self.bound):
            asked = _first_number(source.get(key) for key in _OUTPUT_KEYS)
            if asked and asked >= window.tokens:
                raise ConfigurationError(
                    f"{asked} tokens are asked for the answer, which leaves none of the window of "
                    f"{window.tokens} for a request: lower the model's max_tokens"
                )
            if asked:
                return asked
        asked = _first_number(getattr(self.model, key, None) for key in _OUTPUT_KEYS)
        if asked and asked < window.tokens:
            return asked
        return config.output_reserve(window=window.tokens, model_max_output=window.max_output)

    def counter(self) -> TokenCounter:
        """Return the counter for the model; without a model, the calibrated estimate.

        The same model gets the same counter, so that counts of messages stay cached.
        """
        if self.model is None:
            return ESTIMATE
        if isinstance(self.model, str):
            return _counter_of(self.model)
        if callable(self.model) and not hasattr(self.model, "invoke"):
            return cast("TokenCounter", self.model)
        return _counter_of(self.name)


def counter_of(counter: Any, model: Any = None) -> TokenCounter | None:
    """Return the counter that a caller gave; `None` if none was given.

    Args:
        counter: A counter of text, a counter of messages, a model, or the name of a model.
        model: A model or its name, used if `counter` is `None`.

    Raises:
        ConfigurationError: It does not count.
    """
    given: Any = model if counter is None else counter
    if given is None:
        return None
    owner: object = getattr(given, "__self__", None)
    if isinstance(owner, BaseLanguageModel) and "get_num_tokens" in given.__name__:
        # These methods ask a server, or load a tokenizer, at every call.
        given = cast("Any", owner)
    facts = ModelFacts.of(given)
    if isinstance(facts.model, BaseLanguageModel):
        return facts.counter()
    return checked_counter(given, message=HumanMessage)


ESTIMATE = EstimateCounter()
"""The counter of a model that is not known."""


@lru_cache(maxsize=64)
def _counter_of(name: str) -> TokenCounter:
    return counter_for(name)


_OUTPUT_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
_ANSWER_KEYS = (
    "response_format", "response_schema", "response_json_schema", "output_format", "format",
)  # fmt: skip
"""Keys under which integrations bind the schema of a structured answer that is not a tool."""


def _asked_in(model: Any) -> Any:
    """Return the first step of a chain, such as `with_structured_output` makes."""
    if isinstance(model, RunnableSequence):
        return cast("Any", model).first
    if isinstance(model, RunnableParallel):
        steps = list(cast("Any", model).steps__.values())
        return steps[0] if len(steps) == 1 else None
    return None


def _first_number(values: Any) -> int | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _quiet(model: Any) -> Window | None:
    """Return a model's own window; `None` if it is unknown."""
    try:
        return resolve_window(model)
    except ConfigurationError:
        return None


# --- tools ---------------------------------------------------------------------------------------

_schemas: dict[int, tuple[Callable[[], object], Any]] = {}
"""Schema of each tool object, with a weak reference to check that the object still exists."""


def schema_of(tool: Any) -> Any:
    """Return the schema of one tool as it is sent; a dict is one already."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    known = _schemas.get(id(tool))
    if known is not None and known[0]() is tool:
        return known[1]
    schema = convert_to_openai_tool(tool)
    extras = getattr(tool, "extras", None)
    if isinstance(extras, Mapping) and cast("Mapping[str, Any]", extras).get("defer_loading"):
        schema = {**schema, "defer_loading": True}
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
