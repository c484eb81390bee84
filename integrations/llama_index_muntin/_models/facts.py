"""Read the facts of a model and of tools: window, reserve, counter, schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import ChatMessage

from muntin.config import WindowBudgetConfig
from muntin.counting import (
    EstimateCounter,
    NamedCounter,
    TiktokenCounter,
    checked_counter,
    checked_tokens,
    count_tokens,
    counter_for,
    counter_name,
)
from muntin.errors import ConfigurationError
from muntin.window import Window, resolve_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from muntin.counting import TokenCounter

__all__ = (
    "counter_named",
    "counter_of",
    "reserve_of",
    "schemas_of",
    "tokenizer_of",
    "window_of",
)


def window_of(llm: object, window: int | None = None) -> Window:
    """Return a model's window: the number if one is given, else the model's own.

    Raises:
        ConfigurationError: Neither is known, or the number is not positive.
    """
    if window is None:
        return resolve_window(llm)
    window = checked_tokens(window, "window")
    said = None if llm is None else resolve_window(llm, fallback=window)
    return Window(
        tokens=resolve_window(window).tokens, max_output=said.max_output if said else None
    )


def reserve_of(window: Window, reserve: int | None = None) -> int:
    """Return the tokens to keep free for the answer.

    Args:
        window: The window, with what the model writes at most.
        reserve: Tokens to keep free; `None` takes the output limit the model reports, but never
            more than half of the window: some integrations report the window itself.

    Raises:
        ConfigurationError: The reserve is negative or leaves nothing of the window.
    """
    if reserve is None:
        config = WindowBudgetConfig()
        return config.output_reserve(window=window.tokens, model_max_output=window.max_output)
    tokens = checked_tokens(reserve, "reserve", least=0)
    if tokens >= window.tokens:
        raise ConfigurationError(
            f"reserve must be less than the window of {window.tokens} tokens, got {tokens}"
        )
    return tokens


def counter_of(counter: TokenCounter | str | None, llm: object = None) -> NamedCounter:
    """Return the counter: the given one, else the model's, else the calibrated estimate.

    Args:
        counter: A counter of text, a counter of messages, a model, or a name.
        llm: The model to count for where `counter` is `None`.

    Raises:
        ConfigurationError: It does not count.
    """
    if isinstance(counter, str):
        return counter_named(counter)
    if counter is not None:
        return counter_for(checked_counter(counter, message=ChatMessage))
    return EstimateCounter() if llm is None else counter_for(llm)


def counter_named(name: str) -> NamedCounter:
    """Return the counter with a saved name.

    A custom counter cannot be found by name: the estimate replaces it.
    """
    kind, _, encoding = name.partition(":")
    encoding, _, margin = encoding.partition("+")
    if kind == "tiktoken" and encoding:
        return TiktokenCounter(encoding)
    if kind == "estimate" and encoding in ("cl100k_base", "o200k_base"):
        share = int(margin.rstrip("%")) / 100 if margin.rstrip("%").isdecimal() else 0.0
        return EstimateCounter("cl100k_base" if encoding == "cl100k_base" else "o200k_base", share)
    if name == counter_name(count_tokens):
        return counter_for(count_tokens)
    return EstimateCounter()


def tokenizer_of(counter: TokenCounter) -> Callable[[str], list[int]]:
    """Make what LlamaIndex calls a tokenizer of a counter: a list as long as the count.

    It can be given to `Settings.tokenizer`, so that prompt helpers count as the model does.
    """

    def tokenizer(text: str) -> list[int]:
        return [0] * counter(text)

    return tokenizer


def schemas_of(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the schemas of tools as they are sent."""
    return [cast("dict[str, Any]", tool.metadata.to_openai_tool()) for tool in tools]
