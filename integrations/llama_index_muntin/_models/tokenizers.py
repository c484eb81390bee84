"""Counters as LlamaIndex has them: made of tokenizers, and found again by a saved name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from llama_index_muntin._models.facts import counter_named
from muntin.counting import TiktokenCounter, count_tokens, counter_for, counter_name
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from muntin.counting import NamedCounter, TokenCounter

__all__ = ("counter_of_tokenizer", "counter_saved", "name_to_save")

_OWN = "own:"
"""Prefix of the saved name of a counter that cannot be found by its name."""


def counter_of_tokenizer(tokenizer: Any) -> TokenCounter:
    """Return the counter of a tokenizer: the exact one where it is tiktoken's, by its name."""
    inner: Any = tokenizer
    while isinstance(inner, partial):
        inner = cast("Any", inner).func
    encoding = getattr(getattr(inner, "__self__", None), "name", None)
    if type(getattr(inner, "__self__", None)).__module__.startswith("tiktoken") and encoding:
        return TiktokenCounter(str(encoding))
    return lambda text: len(tokenizer(text))


def name_to_save(counter: NamedCounter) -> str:
    """Return the name to save for a counter; one that no name finds again is marked."""
    name = counter.name
    return name if _is_found(name) else f"{_OWN}{name.removeprefix(_OWN)}"


def counter_saved(name: str) -> NamedCounter:
    """Find a counter by the name it was saved under.

    Raises:
        ConfigurationError: It was a counter of the caller's own, which no name finds.
    """
    if name.startswith(_OWN):
        raise ConfigurationError(
            f"it was saved with a token counter of your own ({name[len(_OWN) :]!r}), "
            f"which is not part of the saved form: read it with token_counter= or tokenizer_fn="
        )
    return counter_named(name)


def _is_found(name: str) -> bool:
    return counter_named(name).name == name or name == counter_name(counter_for(count_tokens))
