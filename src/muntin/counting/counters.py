"""Which counter a model gets.

`counter_for` is the one resolver: an OpenAI model gets its exact vocabulary if it can be loaded,
every other model the calibrated estimate. Every counter it returns has a `name` and a flag
`exact`. It does not count messages: `message_tokens` does.
"""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, cast, runtime_checkable

from muntin.counting.estimate import estimate_tokens
from muntin.counting.framing import FRAMING_TOKENS, framing_of_name, with_framing
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.errors import ConfigurationError, TokenizerUnavailable

if TYPE_CHECKING:
    from muntin.counting.estimate import EstimatedEncoding
    from muntin.counting.tokens import TokenCounter

__all__ = (
    "CounterWarning",
    "EstimateCounter",
    "NamedCounter",
    "counter_for",
    "counter_name",
    "is_exact",
    "model_name",
)


class CounterWarning(UserWarning):
    """Tokens are estimated where an exact count might have been expected."""


@runtime_checkable
class NamedCounter(Protocol):
    """A counter with a name."""

    @property
    def name(self) -> str:
        """Name of the counter, for reports."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the count is what the model's own tokenizer gives."""
        ...

    def __call__(self, text: str, /) -> int:
        """Count the tokens of a text."""
        ...


@dataclass(frozen=True, slots=True)
class EstimateCounter:
    """The calibrated offline estimate as a counter with a name."""

    encoding: EstimatedEncoding = "o200k_base"
    """Encoding of the tokens that are estimated."""

    margin: float = 0.0
    """Share added to every estimate, because the model's vocabulary is unknown: 0.2 is 20 %. A
    counter that learns from usage replaces it by what it learned."""
    framing: int = FRAMING_TOKENS
    """Tokens around one message."""
    exact: bool = field(default=False, init=False)
    """Always False."""

    @property
    def name(self) -> str:
        """Name of the counter, for reports; a margin is part of it."""
        margin = f"+{self.margin:.0%}" if self.margin else ""
        return f"estimate:{self.encoding}{margin}"

    def __call__(self, text: str | None) -> int:
        """Estimate the tokens of a text."""
        estimate = estimate_tokens(text, encoding=self.encoding)
        return math.ceil(estimate * (1 + self.margin) - 1e-9) if self.margin else estimate


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A foreign callable with a name."""

    counter: TokenCounter
    name: str
    exact: bool

    def __call__(self, text: str) -> int:
        return self.counter(text)


UNKNOWN_MARGIN: Final = 0.2
"""Margin of the estimate for a model with an unknown vocabulary. Against a real vocabulary of
49,000 tokens the estimate alone is up to 13 % low on prose, JSON and code."""

_warned: set[str] = set()
_lock: Final = threading.Lock()


def counter_for(model: object = None, *, framing: int | None = None) -> NamedCounter:
    """Return the best counter for a model: exact if its vocabulary can be loaded, else an estimate.

    A model with an unknown vocabulary gets the estimate with a margin of 20 %, the framing of its
    family, and a `CounterWarning` once per name.

    Args:
        model: A model's name (with or without "provider:" or "provider/" before it), a LangChain
            or LlamaIndex model, the name of a tiktoken encoding, or a counter. None is the
            estimate without a margin.
        framing: Tokens around one message; `None` takes the counter's own.

    Returns:
        A counter with `.name` and `.exact`.

    Raises:
        ConfigurationError: The value is neither a name nor a model, and cannot be called.

    ```python
    from muntin import counter_for

    counter = counter_for("gpt-4o")
    print(counter.name, counter.exact, counter("hello world"))
    #> tiktoken:o200k_base True 2
    ```
    """
    return cast("NamedCounter", with_framing(_counter_for(model), framing))


def _counter_for(model: object) -> NamedCounter:
    if model is None:
        return EstimateCounter()
    if isinstance(model, str):
        return _counter_of_name(model)
    if isinstance(model, type):
        raise ConfigurationError(f"counter_for takes an instance, got the class {model.__name__}")
    if isinstance(model, NamedCounter):
        return model
    name = model_name(model)
    if name is not None:
        return _counter_of_name(name)
    if callable(model):
        counter = cast("TokenCounter", model)
        return _Wrapped(counter, counter_name(counter), is_exact(counter))
    if any(callable(getattr(model, verb, None)) for verb in ("invoke", "complete", "chat")):
        return _counter_of_name(type(model).__name__)
    raise ConfigurationError(
        f"counter_for takes a model's name, a model, an encoding or a counter, got {model!r:.80}"
    )


def counter_name(counter: object) -> str:
    """Name a counter for reports: its own name, else what it is called in the code.

    ```python
    from muntin import count_tokens
    from muntin.counting.counters import counter_name

    print(counter_name(count_tokens), counter_name(len))
    #> count_tokens len
    ```
    """
    for attribute in ("name", "__name__"):
        name = getattr(counter, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(counter).__name__


def is_exact(counter: object) -> bool:
    """Return whether a counter claims to count as the model's own tokenizer does.

    ```python
    from muntin import TiktokenCounter, count_tokens
    from muntin.counting.counters import is_exact

    print(is_exact(TiktokenCounter()), is_exact(count_tokens))
    #> True False
    ```
    """
    return getattr(counter, "exact", False) is True


def _counter_of_name(name: str) -> NamedCounter:
    encoding = _encoding_of(name)
    if encoding is None:
        _warn_once(
            name,
            f"no tokenizer is known for {name!r}: its tokens are estimated with a margin of "
            f"{UNKNOWN_MARGIN:.0%}; for exact counts pass counter= (a function from text to a "
            f"number of tokens)",
        )
        return EstimateCounter(margin=UNKNOWN_MARGIN, framing=framing_of_name(name))
    counter = TiktokenCounter(encoding)
    try:
        counter.load()
    except TokenizerUnavailable as unavailable:
        _warn_once(name, f"tokens of {name!r} are estimated: {unavailable}")
        return EstimateCounter("o200k_base" if encoding.startswith("o200k") else "cl100k_base")
    return counter


def _encoding_of(name: str) -> str | None:
    """Name the encoding of an OpenAI model; None when tiktoken knows neither."""
    import tiktoken
    from tiktoken.model import encoding_name_for_model

    if name in tiktoken.list_encoding_names():
        return name
    provider, _, rest = name.replace("/", ":", 1).rpartition(":")
    bare = rest if provider.lower() in _OPENAI_PROVIDERS else name
    try:
        return encoding_name_for_model(bare)
    except KeyError:
        return None


_OPENAI_PROVIDERS: Final = frozenset({"openai", "azure", "azure_openai", "azure-openai"})

_NAME_ATTRIBUTES: Final = ("model_name", "model", "model_id", "deployment_name")


def model_name(model: object) -> str | None:
    """Return the name of a LangChain or LlamaIndex model, or a name itself; `None` if unknown."""
    if isinstance(model, str):
        return model or None
    for attribute in _NAME_ATTRIBUTES:
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    try:
        name = getattr(getattr(model, "metadata", None), "model_name", None)
    except Exception:  # noqa: BLE001 - a foreign property that fails for a model it does not know
        return type(model).__name__
    if isinstance(name, str) and name:
        return name
    bound = getattr(model, "bound", None)  # a LangChain model with tools or settings bound to it
    return None if bound is None else model_name(bound)


def _warn_once(name: str, message: str) -> None:
    with _lock:
        if name in _warned:
            return
        _warned.add(name)
    warnings.warn(message, CounterWarning, stacklevel=4)
