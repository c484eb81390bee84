"""Find the context window of a model by its bare name, offline, in the data of `genai-prices`.

The name is cleaned of provider prefixes, dates and tags. Providers serve one model with different
windows, so the smallest window of all entries that match is returned: a window that is too large
makes every request fail. Nothing is guessed: a name without an entry has no window.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("window_of_name",)

_PREFIX = re.compile(r"^(?:models/|(?:us|eu|apac|global)\.|[a-z0-9_-]+[:/](?=[a-z]))")
_SUFFIX = re.compile(
    r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4}|latest|preview|\d{3})|-v\d+(?::\d+)?|:[a-z0-9._-]+)$"
)
_STEPS = 6


@lru_cache(maxsize=256)
def window_of_name(name: str) -> int | None:
    """Return the tokens of a model's window by its name.

    Args:
        name: Name of a model, with or without a provider, a date or a tag.

    Returns:
        The smallest window of all entries for the model; `None` without an entry.

    Raises:
        ConfigurationError: `genai-prices` is not installed.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        raise ConfigurationError(
            f"the window of {name!r} is looked up in genai-prices, which is not installed: "
            f'pip install "muntin[models]", or give the window as a number'
        ) from error
    providers = get_snapshot().providers
    for variant in _variants(name):
        windows = [
            model.context_window
            for provider in providers
            for model in provider.models
            if model.context_window and (model.id.lower() == variant or model.is_match(variant))
        ]
        if windows:
            return min(windows)
    return None


def _variants(name: str) -> Iterator[str]:
    """Yield the name, then shorter forms of it: without prefixes, then without dates and tags."""
    seen: set[str] = set()
    one = name.strip().lower()
    for _ in range(_STEPS):
        for form in (one, re.sub(r"(?<=\d)\.(?=\d)", "-", one)):
            if form and form not in seen:
                seen.add(form)
                yield form
        shorter = _PREFIX.sub("", one, count=1)
        if shorter == one:
            shorter = _SUFFIX.sub("", one, count=1)
        if shorter == one:
            return
        one = shorter
