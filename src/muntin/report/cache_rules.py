"""What prompt caches of providers store and charge, as dated data.

A prefix below the minimum of a model is not cached, and no provider reports that. Prices are
factors of the price of an input token. The rows are what the providers' pages stated on
`AS_OF`; a row is data, so give your own where a provider has changed its prices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from muntin.errors import ConfigurationError

__all__ = ("AS_OF", "CACHE_RULES", "CacheRules", "cache_rules", "rules_of")

AS_OF: Final = "2026-11-30"
"""Date of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """How a provider caches prompts.

    Raises:
        ConfigurationError: A number is negative, or the minimum or the step is below 1.
    """

    name: str
    """Provider or family of models."""
    minimum: int
    """Tokens of the smallest prefix that is cached."""
    write: float = 1.0
    """Price of a token that is written to the cache, as a factor of the input price."""
    read: float
    """Price of a token that is read from the cache, as a factor of the input price."""
    step: int = 1
    """Tokens of a block: a prefix is cached in whole blocks."""
    marks: int | None = None
    """Marks a request may hold; `None` where the provider finds prefixes by itself."""
    minutes: int | None = 5
    """Minutes after which an unused prefix is dropped; `None` if it is not stated."""

    def __post_init__(self) -> None:
        if self.minimum < 1 or self.step < 1 or self.write < 0 or self.read < 0:
            raise ConfigurationError(
                f"minimum and step must be at least 1 and prices at least 0, got {self}"
            )

    def cached(self, prefix: int) -> int:
        """Return the tokens of a prefix that a cache can hold; 0 if it is below the minimum.

        ```python
        from muntin.report import cache_rules

        rules = cache_rules("claude-opus-4-6")
        print(rules.cached(4000), rules.cached(5000))
        #> 0 5000
        ```
        """
        return 0 if prefix < self.minimum else prefix - prefix % self.step

    def price(self, tokens: int, *, shared: int) -> float:
        """Return what a prompt costs, in input tokens.

        Args:
            tokens: Tokens of the prompt.
            shared: Tokens at its beginning that the cache may hold.
        """
        hit = self.cached(min(shared, tokens))
        written = self.cached(tokens)
        write = self.write if written else 1.0
        return hit * self.read + max(written - hit, 0) * write + (tokens - max(written, hit))


def _claude(name: str, minimum: int) -> CacheRules:
    return CacheRules(name=name, minimum=minimum, write=1.25, read=0.1, marks=4)


_ROWS: Final = (
    (r"claude-(?:opus|fable|mythos)-5(?![-.]\d(?!\d))", _claude("Claude Opus 5, Fable 5", 512)),
    (r"claude-opus-4[-.]7", _claude("Claude Opus 4.7", 2048)),
    (r"claude-(?:opus-4[-.][56]|haiku-4[-.]5)", _claude("Claude Opus 4.5/4.6, Haiku 4.5", 4096)),
    (r"claude-(?:opus-4[-.][18]|sonnet-(?:5|4[-.][56]))(?![-.]5)",
     _claude("Claude Opus 4.1/4.8, Sonnet 4.5/4.6/5", 1024)),
    (r"claude", _claude("Claude, other models", 4096)),
    (r"gpt-(?:5[-.][6-9]|[6-9])",
     CacheRules(name="OpenAI, GPT-5.6 and later", minimum=1024, write=1.25, read=0.1, marks=4,
                minutes=30)),
    (r"gpt|\bo[134]\b", CacheRules(name="OpenAI, up to GPT-5.5", minimum=1024, read=0.1)),
    (r"gemini-2[-.]5", CacheRules(name="Gemini 2.5", minimum=2048, read=0.1, minutes=None)),
    (r"gemini", CacheRules(name="Gemini 3", minimum=4096, read=0.1, minutes=None)),
    (r"grok", CacheRules(name="xAI", minimum=128, read=0.25, step=128, minutes=None)),
    (r"qwen", CacheRules(name="Qwen, implicit", minimum=256, read=0.2)),
)  # fmt: skip
CACHE_RULES: Final = tuple(rules for _, rules in _ROWS)
"""Every row."""
_PATTERNS: Final = tuple((re.compile(pattern), rules) for pattern, rules in _ROWS)


def cache_rules(model: str) -> CacheRules | None:
    """Return the rules of a model by its name; `None` where they are not stated.

    ```python
    from muntin.report import cache_rules

    rules = cache_rules("gpt-4o")
    print(rules.name, rules.minimum, cache_rules("our-own-model"))
    #> OpenAI, up to GPT-5.5 1024 None
    ```
    """
    cleaned = model.lower()
    return next((rules for pattern, rules in _PATTERNS if pattern.search(cleaned)), None)


def rules_of(model: str | CacheRules) -> CacheRules:
    """Return the rules that are given, or those of a model.

    Raises:
        ConfigurationError: The rules of the model are not known.
    """
    rules = cache_rules(model) if isinstance(model, str) else model
    if rules is None:
        raise ConfigurationError(
            f"the prompt cache of {model!r} is not known: give CacheRules(...) in its place"
        )
    return rules
