"""Which counter a model gets, and how a counter learns from what providers report.

`counter_for` is the one resolver: an OpenAI model gets its exact vocabulary where that can be had,
every other model the calibrated estimate. A number never travels without its counter, so every
counter that comes out says its `name` and whether it is `exact`. `AnchoredCounter` rescales a
counter to the token usage a provider reports. It does not count messages: `message_tokens` does.
"""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, Self, cast, runtime_checkable

from muntin.counting.estimate import estimate_tokens
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError, TokenizerUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.counting.estimate import EstimatedEncoding
    from muntin.counting.tokens import TokenCounter

__all__ = (
    "AnchoredCounter",
    "CounterWarning",
    "EstimateCounter",
    "NamedCounter",
    "counter_for",
    "counter_name",
    "is_exact",
)


class CounterWarning(UserWarning):
    """Tokens are estimated where an exact count might have been expected."""


@runtime_checkable
class NamedCounter(Protocol):
    """A counter that says what it is."""

    @property
    def name(self) -> str:
        """Say which count this is, for reports."""
        ...

    @property
    def exact(self) -> bool:
        """Say whether the count is what the model's own tokenizer gives."""
        ...

    def __call__(self, text: str, /) -> int:
        """Count the tokens of a text."""
        ...


@dataclass(frozen=True, slots=True)
class EstimateCounter:
    """The calibrated offline estimate as a counter with a name."""

    encoding: EstimatedEncoding = "o200k_base"
    """The encoding whose tokens are estimated."""

    exact: bool = field(default=False, init=False)
    """Always False."""

    @property
    def name(self) -> str:
        """Say which count this is, for reports."""
        return f"estimate:{self.encoding}"

    def __call__(self, text: str | None) -> int:
        """Estimate the tokens of a text."""
        return estimate_tokens(text, encoding=self.encoding)


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A foreign callable with a name."""

    counter: TokenCounter
    name: str
    exact: bool

    def __call__(self, text: str) -> int:
        return self.counter(text)


_warned: set[str] = set()
_lock: Final = threading.Lock()


def counter_for(model: object = None) -> NamedCounter:
    """Find the best counter for a model: exact where a vocabulary can be had, else the estimate.

    Args:
        model: A model's name (with or without "provider:" or "provider/" before it), a LangChain
            or LlamaIndex model, the name of a tiktoken encoding, or a counter. None is the
            estimate.

    Returns:
        A counter with `.name` and `.exact`. A model nobody knows gets the estimate, and a
        `CounterWarning` once per name.

    Raises:
        ConfigurationError: What was given is no name, no model and cannot be called.

    ```python
    from muntin import counter_for

    counter = counter_for("gpt-4o")
    print(counter.name, counter.exact, counter("hello world"))
    #> tiktoken:o200k_base True 2
    ```
    """
    if model is None:
        return EstimateCounter()
    if isinstance(model, str):
        return _counter_of_name(model)
    if isinstance(model, type):
        raise ConfigurationError(f"counter_for takes an instance, got the class {model.__name__}")
    if isinstance(model, NamedCounter):
        return model
    name = _model_name(model)
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
    """Say whether a counter claims to count as the model's own tokenizer does.

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
        _warn_once(name, f"no tokenizer is known for {name!r}: its tokens are estimated")
        return EstimateCounter()
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


def _model_name(model: object) -> str | None:
    """Read the name a LangChain or LlamaIndex model goes by; None when it has none."""
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
    return None if bound is None else _model_name(bound)


def _warn_once(name: str, message: str) -> None:
    with _lock:
        if name in _warned:
            return
        _warned.add(name)
    warnings.warn(message, CounterWarning, stacklevel=4)


class AnchoredCounter:
    """A counter rescaled to the token usage a provider reports, per model.

    Local counts and reported usage are two scales. This counter keeps to one: what it says is the
    base counter's number times a ratio learned from pairs of both, rounded up. The ratio is the
    quotient of two sums in which older pairs fade, so large prompts weigh more than small ones,
    and one outlier cannot throw it far.

    ```python
    from muntin import AnchoredCounter, count_tokens

    counter = AnchoredCounter(count_tokens)
    counter.observe(1_000, 1_300)
    print(counter.ratio, counter("a" * 400))
    #> 1.3 130
    ```
    """

    LOWEST: Final = 0.5
    """The ratio never falls below this, whatever is reported."""

    HIGHEST: Final = 4.0
    """The ratio never rises above this, whatever is reported."""

    FADE: Final = 0.75
    """What a pair still weighs when the next one comes."""

    def __init__(self, counter: TokenCounter = count_tokens, *, model: str = "") -> None:
        """Start at a ratio of 1.

        Args:
            counter: The base counter; its numbers are what `observe` takes as estimated.
            model: Name of the model whose usage is learned from; "" when there is only one.
        """
        self.counter = counter
        self.model = model
        self._sums: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Say which count this is, for reports."""
        return f"anchored:{counter_name(self.counter)}"

    @property
    def exact(self) -> bool:
        """Always False: the ratio is learned."""
        return False

    @property
    def ratio(self) -> float:
        """Tokens reported per token the base counter estimates; 1 before the first pair."""
        estimated, reported = self._sums.get(self.model, (1.0, 1.0))
        return min(self.HIGHEST, max(self.LOWEST, reported / estimated))

    def __call__(self, text: str) -> int:
        """Count the tokens of a text on the provider's scale, rounded up."""
        return self.scaled(self.counter(text))

    def scaled(self, estimated: int) -> int:
        """Carry a number of the base counter over to the provider's scale, rounded up."""
        return math.ceil(estimated * self.ratio - 1e-9)

    def observe(self, estimated: int, reported: int) -> float:
        """Learn from one call: what the base counter said, and what the provider charged.

        Args:
            estimated: Tokens by the base counter (`counter.counter`), not by this one.
            reported: Input tokens the provider reported for the same text.

        Returns:
            The new ratio. A pair with a zero teaches nothing: usage was not reported.

        Raises:
            ConfigurationError: A number is negative or not finite.
        """
        if not (0 <= estimated < math.inf and 0 <= reported < math.inf):
            raise ConfigurationError(
                f"observe needs two token counts, got estimated={estimated}, reported={reported}"
            )
        if not estimated or not reported:
            return self.ratio
        bounded = min(self.HIGHEST * estimated, max(self.LOWEST * estimated, float(reported)))
        with self._lock:
            before = self._sums.get(self.model, (0.0, 0.0))
            self._sums[self.model] = (
                before[0] * self.FADE + estimated,
                before[1] * self.FADE + bounded,
            )
        return self.ratio

    def for_model(self, model: str) -> AnchoredCounter:
        """Look at another model: same base counter and memory, its own ratio."""
        other = AnchoredCounter(self.counter, model=model)
        other._sums, other._lock = self._sums, self._lock
        return other

    def to_dict(self) -> dict[str, object]:
        """Give what was learned, as JSON can hold it."""
        with self._lock:
            sums = {model: list(pair) for model, pair in sorted(self._sums.items())}
        return {"counter": counter_name(self.counter), "model": self.model, "sums": sums}

    @classmethod
    def from_dict(cls, saved: Mapping[str, object], counter: TokenCounter = count_tokens) -> Self:
        """Rebuild from `to_dict` and the same base counter.

        Raises:
            ConfigurationError: It was saved with another base counter, or is not what was saved.
        """
        if saved.get("counter") != counter_name(counter):
            raise ConfigurationError(
                f"what was learned belongs to counter {saved.get('counter')!r}, "
                f"not to {counter_name(counter)!r}: the scales differ"
            )
        restored = cls(counter, model=str(saved.get("model", "")))
        try:
            sums = cast("Mapping[str, tuple[float, float]]", saved["sums"])
            restored._sums = {model: (float(a), float(b)) for model, (a, b) in sums.items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"not what to_dict gives: {error}") from error
        return restored

    def __repr__(self) -> str:
        return f"AnchoredCounter({counter_name(self.counter)}, ratio={self.ratio:.3f})"

    def __getstate__(self) -> dict[str, object]:
        return {"counter": self.counter, "model": self.model, "_sums": dict(self._sums)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
