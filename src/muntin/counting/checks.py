"""Check counters and numbers of tokens once, with one error, at every entry point.

`checked_tokens` accepts whole numbers in range. `checked_counter` accepts a callable from text to a
whole number, a model, or a name, and adapts a counter of messages. A counter is tried on a short
text once and remembered, so a wrong one fails where it is given and not in the middle of a run.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, Final, TypeAlias, cast
from weakref import WeakSet

from muntin.counting.anchored import AnchoredCounter
from muntin.counting.counters import (
    EstimateCounter,
    counter_for,
    counter_name,
    is_exact,
)
from muntin.counting.estimate import estimate_tokens
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import TokenCounter, count_tokens
from muntin.errors import ConfigurationError, ContextError, is_control_flow
from muntin.messages import Message

__all__ = ("AnyCounter", "MessageMaker", "checked_counter", "checked_tokens", "require_whole")

AnyCounter: TypeAlias = "TokenCounter | str | object | None"
"""A counter of text, a counter of messages, a model, or the name of a model or an encoding."""

MessageMaker: TypeAlias = Callable[[str], Any]
"""Make a user message of some text, in the type that a counter of messages expects."""

_SAMPLE: Final = "The parcel left the depot at nine."
_NO_ALIAS: Final[Mapping[str, AnyCounter]] = {}
_LARGEST: Final = 2**53
_OWN: Final = (AnchoredCounter, EstimateCounter, TiktokenCounter)


def checked_tokens(value: object, name: str, *, least: int = 1, unit: str = "tokens") -> int:
    """Return a number of tokens as an int.

    Args:
        value: What the caller gave. numpy integers are accepted; bool, str, float and NaN are not.
        name: Name of the parameter, for the error.
        least: Smallest number allowed.
        unit: What is counted, for the error.

    Raises:
        ConfigurationError: The value is not a whole number of at least `least`.

    ```python
    import numpy as np

    from muntin.counting import checked_tokens

    print(checked_tokens(np.int8(100), "budget"))
    #> 100
    ```
    """
    allowed = "a positive int" if least == 1 else f"an int of at least {least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ConfigurationError(f"{name} must be {allowed} ({unit}), got {value!r:.60}")
    tokens = int(value)
    if tokens < least:
        raise ConfigurationError(f"{name} must be {allowed} ({unit}), got {tokens}")
    return tokens


def checked_counter(
    counter: AnyCounter = None,
    *,
    model: object = None,
    default: TokenCounter = count_tokens,
    name: str = "counter",
    message: MessageMaker | None = None,
    alias: Mapping[str, AnyCounter] = _NO_ALIAS,
) -> TokenCounter:
    """Return a counter of text for a counter of text or messages, a model, or a name.

    Args:
        counter: A counter of text, which comes back as it is; a counter of messages, which is
            adapted; a model, or the name of a model or an encoding. `None` takes `model`.
        model: A model or its name, used where `counter` is `None`.
        default: Counter where both are `None`.
        name: Name of the parameter, for the error.
        message: Makes a message for a counter of messages; `None` tries `Message` and dicts.
        alias: Older names of the parameter and what was given under them.

    Raises:
        ConfigurationError: It cannot be called with a text or with messages, or it does not return
            a whole number of at least 0.

    ```python
    from muntin.counting import checked_counter

    by_message = checked_counter(lambda messages: sum(len(m.content) for m in messages))
    print(checked_counter(len) is len, by_message("abc"), checked_counter("gpt-4o").name)
    #> True 3 tiktoken:o200k_base
    ```
    """
    for older, given in alias.items():
        if given is not None and counter is not None:
            raise ConfigurationError(f"give {name} or {older}, not both: they are one parameter")
        counter = given if given is not None else counter
    if counter is None:
        return default if model is None else counter_for(model)
    if counter in (count_tokens, estimate_tokens) or isinstance(counter, _OWN):
        return cast("TokenCounter", counter)
    if isinstance(counter, str) or not callable(counter):
        try:
            return counter_for(counter)
        except ConfigurationError:
            raise ConfigurationError(
                f"{name} must be a function from text to a number of tokens, a model, or the name "
                f"of a model or an encoding, got {counter!r:.60}"
            ) from None
    if _is_known(counter):
        return cast("TokenCounter", counter)
    found = _tried(counter, name, message)
    if found is counter:
        _remember(counter)
    return found


_known: WeakSet[Any] = WeakSet()
"""Counters of text that were tried and need not be called again to be checked."""
_lock = threading.Lock()


def _is_known(counter: object) -> bool:
    try:
        with _lock:
            return counter in _known
    except TypeError:  # not hashable
        return False


def _remember(counter: object) -> None:
    with suppress(TypeError), _lock:  # not hashable, or no weak reference can be made
        _known.add(counter)


def _tried(counter: Callable[..., Any], name: str, message: MessageMaker | None) -> TokenCounter:
    """Call the counter with a short text, then with messages; return what works."""
    answer = _answer(counter, _SAMPLE)
    # Some counters of messages read a text as one message per character.
    if _is_count(answer) and int(answer) <= 2 * len(_SAMPLE):
        return cast("TokenCounter", counter)
    for make in (message,) if message is not None else (Message, _as_dict):
        for wrap in (list, _alone):
            adapted = _OfMessages(counter, make, wrap)
            if _counts_text(adapted):
                return adapted
    if isinstance(answer, Exception):
        raise ConfigurationError(
            f"{name} must count the tokens of a text: {counter_name(counter)} raised "
            f"{type(answer).__name__} for a str and for a list of messages ({answer!s:.120})"
        ) from answer
    require_whole(answer, counter, name=name)
    return cast("TokenCounter", counter)


def _counts_text(counter: _OfMessages) -> bool:
    """Return whether a counter of messages works and counts more for a longer text."""
    short, long = _answer(counter, _SAMPLE), _answer(counter, _SAMPLE * 4)
    if not (_is_count(short) and _is_count(long)):
        return False
    return 0 < int(short) <= 2 * len(_SAMPLE) and int(long) > int(short)


def _answer(counter: Callable[..., Any], given: Any) -> Any:
    """Return what the counter returns, or the exception that it raises."""
    try:
        answer = counter(given)
    except ConfigurationError as error:
        return error
    except ContextError:
        raise
    except Exception as error:
        if is_control_flow(error):
            raise
        return error
    if inspect.iscoroutine(answer):
        answer.close()
    return answer


def _is_count(answer: object) -> bool:
    if isinstance(answer, bool) or not isinstance(answer, Integral):
        return False
    return 0 <= int(answer) < _LARGEST


def require_whole(tokens: object, counter: object, *, name: str = "counter") -> int:
    """Return what a counter returned as an int.

    Raises:
        ConfigurationError: It is not a whole number of at least 0.
    """
    if inspect.iscoroutine(tokens):
        tokens.close()
    if not _is_count(tokens):
        raise ConfigurationError(
            f"{name} must return a whole number of tokens of at least 0, and "
            f"{counter_name(counter)} returned {tokens!r:.60}"
        )
    return int(cast("Integral", tokens))


def _as_dict(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _alone(messages: Sequence[Any]) -> Any:
    return messages[0]


class _OfMessages:
    """Count texts with a counter of messages: a message with the text, less an empty one."""

    def __init__(
        self,
        counter: Callable[..., Any],
        make: MessageMaker,
        wrap: Callable[[list[Any]], Any],
    ) -> None:
        self.name = counter_name(counter)
        self.exact = is_exact(counter)
        self._counter = counter
        self._make = make
        self._wrap = wrap
        self._framing: int | None = None

    def __call__(self, text: str) -> int:
        if not text:
            return 0
        if self._framing is None:
            self._framing = self._count("")
        return max(self._count(text) - self._framing, 0)

    def _count(self, text: str) -> int:
        return require_whole(self._counter(self._wrap([self._make(text)])), self._counter)
