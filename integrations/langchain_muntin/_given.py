"""Make sources of whatever stands under a name: retrievers, runnables, functions, or values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from langchain_muntin._conversion import RELEVANCE, Score, candidates_of
from langchain_muntin.sources import RetrieverSource, RunnableSource
from muntin.errors import ConfigurationError
from muntin.passages import CallableSource, ContextSource, GivenSource, source_named

__all__ = ("source_of", "standing_sources")


def source_of(name: str, given: object, *, score: Score = RELEVANCE) -> ContextSource:
    """Make a source of whatever stands under a name: the three ways to give one, and values.

    Args:
        name: Name of the source.
        given: A `ContextSource`, a retriever, any other runnable, a function of the question, or
            the candidates themselves.
        score: Where a document's score is.

    Raises:
        ConfigurationError: A `ContextSource` under another name than its own.
    """
    if isinstance(given, ContextSource):
        return source_named(name, given)
    if isinstance(given, BaseRetriever):
        return RetrieverSource(name, given, score=score)
    if isinstance(given, Runnable):
        return RunnableSource(name, cast("Runnable[str, Any]", given), score=score)
    if callable(given):
        return CallableSource(name, given, read=partial(candidates_of, name=name, score=score))
    return GivenSource(name, candidates_of(given, name=name, score=score))


def standing_sources(sources: Any) -> tuple[ContextSource, ...]:
    """Read the sources an assembler is made with."""
    if sources is None:
        return ()
    if isinstance(sources, Mapping):
        named = cast("Mapping[str, object]", sources)
        return tuple(source_of(name, given) for name, given in named.items())
    if isinstance(sources, ContextSource):
        return (sources,)
    found = tuple(cast("Sequence[object]", sources))
    for given in found:
        if not isinstance(given, ContextSource):
            raise ConfigurationError(
                f"a list of sources holds ContextSource objects, not {type(given).__name__}: "
                f"use a dict of name to retriever, runnable or function"
            )
    return cast("tuple[ContextSource, ...]", found)
