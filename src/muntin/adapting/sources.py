"""Make a source of anything an application has: a source, a function, values, a framework's object.

A framework adds what it knows through `adapt` (its retrievers, its runnables) and `read` (its
documents, its nodes). The rest is decided here, so that every adapter accepts the same things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError
from muntin.passages import CallableSource, ContextSource, GivenSource, source_named

if TYPE_CHECKING:
    from muntin.passages import Candidate

__all__ = ("Adapt", "Read", "source_of", "sources_of")

Adapt = Callable[[str, Any], "ContextSource | None"]
"""Make a source of a framework's own object under a name; return `None` for any other object."""
Read = Callable[[str, Any], "Iterable[Candidate]"]
"""Make candidates of what a source with this name returned."""


def source_of(
    name: str, given: object, *, adapt: Adapt, read: Read, values: bool = False
) -> ContextSource:
    """Make a source of one object.

    Args:
        name: Name of the source.
        given: A `ContextSource`, an object the framework knows, a function of the question, or,
            where `values` is true, the passages themselves.
        adapt: Makes sources of the framework's own objects.
        read: Makes candidates of what a function returned, or of the passages.
        values: Whether passages may be given in place of a source.

    Raises:
        ConfigurationError: The object is none of these, or a source with another name.
    """
    if isinstance(given, ContextSource):
        return source_named(name, given)
    adapted = adapt(name, given)
    if adapted is not None:
        return adapted
    if callable(given):
        return CallableSource(name, given, read=lambda found: read(name, found))
    if values:
        return GivenSource(name, tuple(read(name, given)))
    raise ConfigurationError(
        f"source {name!r} must be a retriever, a ContextSource or a function of the question, got "
        f"{type(given).__name__}"
    )


def sources_of(
    given: object, *, adapt: Adapt, read: Read, values: bool = False
) -> tuple[ContextSource, ...]:
    """Make sources of what an entry point takes as `sources`.

    Args:
        given: A mapping of name to what `source_of` takes, a list of `ContextSource` objects, one
            `ContextSource`, or `None` for no sources.
        adapt: As in `source_of`.
        read: As in `source_of`.
        values: As in `source_of`.

    Raises:
        ConfigurationError: It is none of these.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        named = cast("Mapping[str, object]", given)
        return tuple(
            source_of(name, one, adapt=adapt, read=read, values=values)
            for name, one in named.items()
        )
    if isinstance(given, ContextSource):
        return (given,)
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise ConfigurationError(
            f"sources must be a mapping of name to source, or a list of ContextSource objects, got "
            f'{type(given).__name__}: give {{"name": source}}'
        )
    many = cast("Sequence[object]", given)
    for one in many:
        if not isinstance(one, ContextSource):
            raise ConfigurationError(
                f"a list of sources must hold ContextSource objects, got {type(one).__name__}: use "
                f"a mapping of name to retriever, runnable or function"
            )
    return tuple(cast("Sequence[ContextSource]", many))
