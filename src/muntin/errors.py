"""The errors of the library, one family, and the exceptions it passes on.

Everything derives from `ContextError`, so one `except` catches the library and nothing else:

```text
ContextError
├── ConfigurationError (ValueError)   an option out of range, an unknown or repeated name
├── ContextWindowExceeded             what must be kept does not fit
├── PromptError (ConfigurationError)  an unknown prompt key, or an override that loses a variable
├── ReportError (ValueError)          a report that disagrees with itself, or that cannot be read
├── SourceError                       a source failed; the cause is chained
│   └── AsyncSourceError (TypeError)  an async source was fetched synchronously
├── TokenizerUnavailable              no vocabulary could be loaded
├── SummaryError                      a summariser failed or gave nothing usable
├── ToolResultNotFound (KeyError)     no stored tool result has this id
└── StateError
    ├── StateNotFound                 nothing was saved under this name
    ├── StateCorruptError             the saved bytes are torn, empty or not what they should be
    ├── StateVersionError             written by another version of the schema
    └── StateConflictError            another writer saved in between
```

Messages name what was given, what is allowed and what to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = (
    "AsyncSourceError",
    "ConfigurationError",
    "ContextError",
    "ContextWindowExceeded",
    "PromptError",
    "ReportError",
    "SourceError",
    "StateConflictError",
    "StateCorruptError",
    "StateError",
    "StateNotFound",
    "StateVersionError",
    "SummaryError",
    "TokenizerUnavailable",
    "ToolResultNotFound",
    "is_control_flow",
    "register_control_flow",
)


class ContextError(Exception):
    """Everything this library raises on purpose."""


class ConfigurationError(ContextError, ValueError):
    """A setting is out of range, or a name is unknown or repeated."""


class PromptError(ConfigurationError):
    """A prompt key is unknown, or an override loses a variable the prompt must carry."""


class ContextWindowExceeded(ContextError):  # noqa: N818 - the usual name
    """What must be kept does not fit the budget.

    Raised instead of sending too much or cutting what is protected. `parts` names each protected
    part with its tokens, to show which one to shorten.
    """

    needed: int
    """Tokens the protected parts take together, joined."""
    available: int
    """Tokens the budget allows."""
    parts: dict[str, int]
    """Tokens of each protected part, counted alone."""

    def __init__(
        self, what: str, *, needed: int, available: int, parts: Mapping[str, int] | None = None
    ) -> None:
        self.what = what
        self.needed = needed
        self.available = available
        self.parts = dict(parts or {})
        lines = [
            f"{what}: {needed} tokens needed, {available} available: raise the budget by "
            f"{needed - available} or shorten it"
        ]
        lines += [f"  {name}: {tokens} tokens" for name, tokens in self.parts.items()]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from keywords, so that the error survives a process pool."""
        return (_rebuild_exceeded, (self.what, self.needed, self.available, self.parts))


def _rebuild_exceeded(
    what: str, needed: int, available: int, parts: Mapping[str, int]
) -> ContextWindowExceeded:
    return ContextWindowExceeded(what, needed=needed, available=available, parts=parts)


class SourceError(ContextError):
    """A source raised, hung past its timeout, or returned something that is not candidates."""

    source: str
    """Name of the source that failed."""

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"source {source!r} {problem}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.source, self.problem))


class AsyncSourceError(SourceError, TypeError):
    """An async source was fetched synchronously: call the async method (`afetch`, `abuild`)."""


class TokenizerUnavailable(ContextError):  # noqa: N818 - named for the condition
    """The vocabulary of an encoding could not be loaded."""

    encoding: str
    """Name of the encoding that was asked for."""

    def __init__(self, encoding: str, problem: str) -> None:
        self.encoding = encoding
        self.problem = problem
        super().__init__(
            f"no vocabulary for {encoding!r}: {problem}. Set TIKTOKEN_CACHE_DIR to a folder that "
            f"holds it, go online once, or count with estimate_tokens"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (TokenizerUnavailable, (self.encoding, self.problem))


class SummaryError(ContextError):
    """A summariser raised, hung, or returned nothing usable."""


class ToolResultNotFound(ContextError, KeyError):  # noqa: N818 - named for the condition
    """No stored tool result has this id."""

    def __str__(self) -> str:
        """Read as a sentence; `KeyError` alone would print the repr of its argument."""
        return str(self.args[0]) if self.args else ""


class ReportError(ContextError, ValueError):
    """A report disagrees with itself, or its written form is not one this version reads."""


class StateError(ContextError):
    """Saved state could not be read or written."""


class StateNotFound(StateError):  # noqa: N818 - named for the condition
    """Nothing was saved under this name."""


class StateCorruptError(StateError):
    """The saved bytes are torn, empty, or not what they should be."""


class StateVersionError(StateError):
    """The state was written by a version of the schema this one cannot read."""


class StateConflictError(StateError):
    """Another writer saved this state after it was loaded."""


_finders: list[Callable[[], tuple[type[BaseException], ...]]] = []


def register_control_flow(find: Callable[[], tuple[type[BaseException], ...]]) -> None:
    """Register exceptions that control a program and must not be handled as failures.

    A graph pauses by raising through everything between itself and the function that asks a person.
    The library re-raises such exceptions where it catches all others. Registering the same function
    again has no effect.

    Args:
        find: Return the exception classes. It is called whenever something was raised, so it need
            not import a framework that is not in use.

    ```python
    from muntin.errors import is_control_flow, register_control_flow

    class Paused(Exception):
        pass

    register_control_flow(lambda: (Paused,))
    print(is_control_flow(Paused()), is_control_flow(ValueError()))
    #> True False
    ```
    """
    if find not in _finders:
        _finders.append(find)


def is_control_flow(error: BaseException) -> bool:
    """Return whether an exception controls the program and must be raised again."""
    return any(isinstance(error, find()) for find in _finders)
