"""Where candidates come from, and how several sources are asked at once.

Gathering is the only input and output of an assembly, and it happens once, before anything is
decided. Sources are asked side by side: each sync one in a thread of its own, so that a slow one
blocks no other, each async one as a task. A source that fails is named; whether that ends
the build or only leaves the source out is the source's own `on_error`. What steers a framework,
such as a graph that pauses, is not a failure and passes through.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from muntin.errors import AsyncSourceError, ConfigurationError, SourceError, is_control_flow
from muntin.passages.candidates import Candidate, candidate_of
from muntin.runtime import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.passages.candidates import Scope

__all__ = (
    "CallableSource",
    "ContextSource",
    "Gathered",
    "GivenSource",
    "agather",
    "check_sources",
    "gather",
    "source_named",
)

_THREAD = "muntin-source"

OnError = Literal["raise", "skip"]
"""What a failing source does to the build: end it, or be left out and named in the report."""


class _TakesScopeByName(Protocol):
    def __call__(self, query: str, /, *, scope: Any) -> Any: ...


class ContextSource(ABC):
    """Supply candidates for a question, under the name whose quota they draw on.

    Subclass it and implement `fetch`; override `afetch` where the store has an async interface.
    """

    name: str
    """Name of the source: a key of `ContextConfig.source_ratios`."""
    timeout: float | None = None
    """Seconds to wait for an answer; `None` waits as long as it takes."""
    on_error: OnError = "raise"
    """What happens when it fails."""

    @abstractmethod
    def fetch(self, query: str, scope: Scope | None = None) -> Iterable[Candidate]:
        """Return candidates for a question, the most relevant first."""

    async def afetch(self, query: str, scope: Scope | None = None) -> Iterable[Candidate]:
        """Return candidates without blocking the event loop; by default `fetch` in a thread."""
        return await _off_the_loop(lambda: self.fetch(query, scope))


class CallableSource(ContextSource):
    """Make a source of a function from a question to candidates.

    The function may be sync or async, and may return candidates, plain strings, a generator, or
    `None` for nothing; or anything else that `read` makes candidates of.

    Args:
        name: Name of the source.
        fetch: The function, `(query)` or `(query, scope)`.
        afetch: An async function that answers like it, for the async form. `None` awaits `fetch`
            where it is async, and calls it in a thread where it is not.
        read: Makes candidates of what either returned; `None` takes candidates and strings.
        pass_scope: How the run's scope reaches it. `None` passes it as the second positional
            parameter where that has no default or is called `scope`, so that closures like
            `lambda q, _docs=docs: ...` keep what they closed over; `True` passes it by keyword;
            `False` never.
        timeout: Seconds to wait; `None` waits as long as it takes.
        on_error: What happens when it fails.

    Raises:
        ConfigurationError: `fetch` cannot be called, or `timeout` or `on_error` is out of range.

    ```python
    from muntin import Candidate, CallableSource

    rules = CallableSource("rag", lambda query: [Candidate("Letters weigh 80 grams.", 0.9)])
    print(rules.fetch("letters?"))
    #> [Candidate(content='Letters weigh 80 grams.', score=0.9, source='rag', id='', pinned=False)]
    ```
    """

    def __init__(
        self,
        name: str,
        fetch: Callable[[str], Any] | Callable[[str, Any], Any] | _TakesScopeByName,
        *,
        afetch: Callable[..., Any] | None = None,
        read: Callable[[Any], Iterable[Candidate]] | None = None,
        pass_scope: bool | None = None,
        timeout: float | None = None,
        on_error: OnError = "raise",
    ) -> None:
        if not callable(fetch):
            raise ConfigurationError(f"source {name!r} needs a callable, not {fetch!r}")
        if timeout is not None and not timeout > 0:
            raise ConfigurationError(f"source {name!r}: timeout must be > 0 or None, not {timeout}")
        if on_error not in ("raise", "skip"):
            raise ConfigurationError(f"source {name!r}: on_error is 'raise' or 'skip'")
        self.name = name
        self.timeout = timeout
        self.on_error = on_error
        self._fetch: Callable[..., Any] = fetch
        self._afetch = fetch if afetch is None and inspect.iscoroutinefunction(fetch) else afetch
        self._reader = read
        self._takes_scope = _takes_scope(fetch) if pass_scope is None else False
        self._by_keyword = pass_scope is True

    def fetch(self, query: str, scope: Scope | None = None) -> list[Candidate]:
        """Call the function.

        Raises:
            AsyncSourceError: The function is async.
        """
        if inspect.iscoroutinefunction(self._fetch):
            raise AsyncSourceError(self.name, _IS_ASYNC)
        return self._read(_sync_only(self.name, self._call(self._fetch, query, scope)))

    async def afetch(self, query: str, scope: Scope | None = None) -> list[Candidate]:
        """Await the function, or call it in a thread where it is sync."""
        if self._afetch is not None:
            return self._read(await _settled(self._call(self._afetch, query, scope)))

        def call() -> Any:  # a generator is run through in the thread, too: it may be slow
            found = self._call(self._fetch, query, scope)
            return found if _is_awaited(found) else self._read(found)

        found = await _off_the_loop(call)
        return self._read(await _settled(found)) if _is_awaited(found) else found

    def _call(self, ask: Callable[..., Any], query: str, scope: Scope | None) -> Any:
        if self._by_keyword:
            return ask(query, scope=scope)
        return ask(query, scope) if self._takes_scope else ask(query)

    def _read(self, found: Any) -> list[Candidate]:
        return _candidates(self.name, found if self._reader is None else self._reader(found))


class GivenSource(ContextSource):
    """Offer candidates that are there already, whatever is asked.

    Args:
        name: Name of the source.
        candidates: What it offers.

    ```python
    from muntin import Candidate
    from muntin.passages.sources import GivenSource

    rules = GivenSource("rag", [Candidate("Letters weigh 80 grams.", source="rag")])
    print(rules.fetch("anything?")[0].content)
    #> Letters weigh 80 grams.
    ```
    """

    def __init__(self, name: str, candidates: Sequence[Candidate]) -> None:
        self.name = name
        self._candidates = candidates

    def fetch(self, query: str, scope: Scope | None = None) -> Sequence[Candidate]:  # noqa: ARG002 - whatever is asked
        """Return the candidates."""
        return self._candidates

    async def afetch(self, query: str, scope: Scope | None = None) -> Sequence[Candidate]:
        """Return the candidates; there is nothing to wait for."""
        return self.fetch(query, scope)


def source_named(name: str, source: ContextSource) -> ContextSource:
    """Return a source that is given under a name.

    Raises:
        ConfigurationError: It has another name.
    """
    if source.name != name:
        raise ConfigurationError(f"the source named {source.name!r} is given as {name!r}")
    return source


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Hold what the sources gave, by name, in the order in which the sources were given."""

    candidates: Mapping[str, tuple[Candidate, ...]]
    """Candidates by source, in the source's own order."""
    failures: tuple[SourceError, ...] = ()
    """Sources that failed and were left out."""

    @property
    def characters(self) -> int:
        """Characters of all candidates."""
        return sum(len(one.content) for many in self.candidates.values() for one in many)


def check_sources(sources: Sequence[ContextSource], known: Iterable[str]) -> None:
    """Refuse sources that are unknown, repeated or no sources, before anything is fetched.

    Raises:
        ConfigurationError: The source is named, and so are the known ones.
    """
    names = tuple(known)
    seen: set[str] = set()
    for source in sources:
        if not isinstance(cast("object", source), ContextSource):
            raise ConfigurationError(
                f"a source is a ContextSource, not {type(source).__name__}: wrap a function in "
                f"CallableSource(name, function)"
            )
        if source.name not in names:
            raise ConfigurationError(
                f"source {source.name!r} has no ratio in source_ratios, which has: "
                f"{', '.join(names)}"
            )
        if source.name in seen:
            raise ConfigurationError(f"two sources are named {source.name!r}: merge or rename one")
        seen.add(source.name)


def gather(sources: Sequence[ContextSource], query: str, scope: Scope | None = None) -> Gathered:
    """Ask all sources at once, each in its own thread.

    Raises:
        SourceError: A source failed or ran out of time, and its `on_error` is `raise`.
    """
    if len(sources) == 1 and sources[0].timeout is None:  # nothing runs in parallel
        return _gathered(sources, [_outcome(sources[0], query, scope)])
    waiting = [in_thread(_fetching(source, query, scope), name=_THREAD) for source in sources]
    answers: list[Answer] = []
    for source, future in zip(sources, waiting, strict=True):
        try:
            answers.append(future.result(source.timeout))
        except TimeoutError:
            answers.append(_too_slow(source))
    return _gathered(sources, answers)


async def agather(
    sources: Sequence[ContextSource], query: str, scope: Scope | None = None
) -> Gathered:
    """Ask all sources at once on the event loop; one that fails cancels the rest.

    Raises:
        SourceError: A source failed or ran out of time, and its `on_error` is `raise`.
    """
    import asyncio

    async def ask(source: ContextSource) -> Answer:
        clock = asyncio.timeout(source.timeout)
        try:
            async with clock:
                found = await _settled(source.afetch(query, scope))
            return _candidates(source.name, found)
        except TimeoutError as error:
            answer = _too_slow(source) if clock.expired() else _failed(source, error)
        except Exception as error:
            if is_control_flow(error):
                raise
            answer = _failed(source, error)  # whatever a source raises is named after it
        if source.on_error == "raise":
            raise answer
        return answer

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(source)) for source in sources]
    except ExceptionGroup as errors:
        steering = (error for error in errors.exceptions if is_control_flow(error))
        first = next(steering, errors.exceptions[0])
        raise first from first.__cause__
    return _gathered(sources, [task.result() for task in tasks])


Answer = list[Candidate] | SourceError
_IS_ASYNC = "is async: use the async door (abuild, aassemble, afetch)"


def _takes_scope(fetch: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(fetch).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) < 2:
        return False
    return positional[1].default is inspect.Parameter.empty or positional[1].name == "scope"


def _fetching(source: ContextSource, query: str, scope: Scope | None) -> Callable[[], Answer]:
    return lambda: _outcome(source, query, scope)


def _outcome(source: ContextSource, query: str, scope: Scope | None) -> Answer:
    try:
        return _candidates(source.name, _sync_only(source.name, source.fetch(query, scope)))
    except Exception as error:
        if is_control_flow(error):
            raise
        return _failed(source, error)  # whatever a source raises is named after it


def _gathered(sources: Sequence[ContextSource], answers: Sequence[Answer]) -> Gathered:
    candidates: dict[str, tuple[Candidate, ...]] = {}
    failures: list[SourceError] = []
    for source, answer in zip(sources, answers, strict=True):
        if isinstance(answer, SourceError):
            if source.on_error == "raise":
                raise answer
            failures.append(answer)
            answer = []
        candidates[source.name] = tuple(answer)
    return Gathered(candidates=candidates, failures=tuple(failures))


def _failed(source: ContextSource, error: Exception) -> SourceError:
    if isinstance(error, SourceError):
        return error
    failure = SourceError(source.name, f"raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def _too_slow(source: ContextSource) -> SourceError:
    return SourceError(source.name, f"gave no answer within its timeout of {source.timeout} s")


def _sync_only(name: str, found: object) -> object:
    if inspect.iscoroutine(found):
        found.close()  # else Python warns that it was never awaited
    if _is_awaited(found):
        raise AsyncSourceError(name, _IS_ASYNC)
    return found


def _is_awaited(found: object) -> bool:
    return isinstance(found, Awaitable | AsyncIterable)


async def _settled(found: Any) -> Any:
    if isinstance(found, Awaitable):
        found = await cast("Awaitable[Any]", found)
    if isinstance(found, AsyncIterable):
        return [item async for item in cast("AsyncIterable[Any]", found)]
    return found


def _candidates(name: str, found: Any) -> list[Candidate]:
    """Read what a source returned; strings become candidates of unknown score."""
    if found is None:
        return []
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise SourceError(
            name, f"returned {type(found).__name__}: return a list of candidates or strings"
        )
    read: list[Candidate] = []
    for position, item in enumerate(cast("Iterable[object]", found)):
        candidate = candidate_of(item, name)
        if candidate is None:
            raise SourceError(
                name,
                f"returned a {type(item).__name__} at position {position}: return Candidate "
                f"objects or strings",
            )
        read.append(candidate)
    return read


async def _off_the_loop(work: Callable[[], Any]) -> Any:
    import asyncio

    return await asyncio.wrap_future(in_thread(work, name=_THREAD))
