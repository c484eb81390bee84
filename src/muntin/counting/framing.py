"""Tokens that a chat template adds around each message.

OpenAI's format adds four tokens to a message, ChatML and Llama 3 add five, and templates of unknown
models are charged six. A counter carries its framing in an attribute `framing`, so every place that
counts messages with it charges the same.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from muntin.counting.tokens import TokenCounter

__all__ = (
    "FRAMING_TOKENS",
    "REPLY_TOKENS",
    "FramedCounter",
    "framing_of",
    "framing_of_name",
    "with_framing",
)

FRAMING_TOKENS: Final = 4
"""Around one message in OpenAI's format: three, and one for the role."""
REPLY_TOKENS: Final = 3
"""Once per request: what primes the reply."""

_UNKNOWN: Final = 6
_FAMILIES: Final = (
    (re.compile(r"claude|gemini|command|nova|grok|gpt|\bo[134]\b"), 4),
    (re.compile(r"qwen|chatml|hermes|yi-|smollm|internlm|olmo|phi-?[34]|llama-?[34]|gemma"), 5),
)
"""Tokens by family: hosted models like OpenAI's; ChatML, Llama 3 and Gemma templates."""
_REMEMBERED: Final = 32


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FramedCounter:
    """A counter with the framing of a chat template."""

    counter: TokenCounter
    """Counts texts."""
    framing: int
    """Tokens around one message."""

    @property
    def name(self) -> str:
        """Name of the counter, for reports."""
        given = getattr(self.counter, "name", None) or getattr(self.counter, "__name__", None)
        return given if isinstance(given, str) else type(self.counter).__name__

    @property
    def exact(self) -> bool:
        """Whether it counts as the model's own tokenizer does."""
        return getattr(self.counter, "exact", False) is True

    @property
    def ratio(self) -> Any:
        """What the counter learned from usage; `None` if it learns nothing."""
        return getattr(self.counter, "ratio", None)

    def __call__(self, text: str) -> int:
        """Count the tokens of a text."""
        return self.counter(text)


_lock = threading.Lock()
_made: OrderedDict[tuple[int, int], FramedCounter] = OrderedDict()


def framing_of(counter: object) -> int:
    """Return the tokens around one message that a counter charges.

    ```python
    from muntin import count_tokens
    from muntin.counting import framing_of, with_framing

    print(framing_of(count_tokens), framing_of(with_framing(count_tokens, 6)))
    #> 4 6
    ```
    """
    framing = getattr(counter, "framing", FRAMING_TOKENS)
    return framing if type(framing) is int else FRAMING_TOKENS


def with_framing(counter: TokenCounter, framing: int | None) -> TokenCounter:
    """Return the counter with the framing of another chat template.

    The same counter and framing give the same object, so its counts are remembered.

    Args:
        counter: Counts texts.
        framing: Tokens around one message; `None` returns the counter as it is.

    Raises:
        ConfigurationError: The framing is not a whole number of at least 0.
    """
    if framing is None or framing == framing_of(counter):
        return counter
    if type(framing) is not int or framing < 0:
        raise ConfigurationError(f"framing must be an int of at least 0 (tokens), got {framing!r}")
    inner = counter.counter if isinstance(counter, FramedCounter) else counter
    with _lock:
        found = _made.get((id(inner), framing))
        if found is None or found.counter is not inner:
            found = _made[id(inner), framing] = FramedCounter(inner, framing)
            while len(_made) > _REMEMBERED:
                _made.popitem(last=False)
        return found


def framing_of_name(name: str) -> int:
    """Return the framing of the template of a model that is not OpenAI's, by its family.

    ```python
    from muntin.counting import framing_of_name

    print(framing_of_name("qwen3:8b"), framing_of_name("our-own-model"))
    #> 5 6
    ```
    """
    cleaned = name.lower()
    return next((tokens for family, tokens in _FAMILIES if family.search(cleaned)), _UNKNOWN)
