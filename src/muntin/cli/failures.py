"""What a command ends with: the exit codes, and the error that carries one.

Codes are a promise to scripts, so each means one thing. Everything the library raises on purpose is
translated here; what is not foreseen keeps its traceback, because it is a defect worth reporting.
"""

from __future__ import annotations

from muntin.errors import ContextError, ContextWindowExceeded, SourceError

__all__ = (
    "ALL_FAILED",
    "DIFFERS",
    "DOES_NOT_FIT",
    "FAILED",
    "INTERRUPTED",
    "SOME_FAILED",
    "SOURCE_FAILED",
    "USAGE",
    "Failure",
    "NoConversation",
    "Skipped",
    "code_of",
    "no_room",
)

DIFFERS = 1
"""`diff --exit-code` found a difference."""
FAILED = 1
"""Something went wrong that is neither of the others: a file could not be written."""
USAGE = 2
"""The command line, or a file named on it, is not what the command takes."""
DOES_NOT_FIT = 3
"""What must be kept is over the budget."""
SOURCE_FAILED = 4
"""A source could not be read: no such file, no permission, nothing readable in a folder."""
SOME_FAILED = 5
"""Some of several files failed; the others are done."""
ALL_FAILED = 6
"""All of several files failed."""
INTERRUPTED = 130
"""Ctrl-C; nothing was left half-written."""


class Failure(Exception):  # noqa: N818 - says what is the case
    """A command cannot go on; the message is one line with what to do."""

    def __init__(self, message: str, *, code: int = USAGE) -> None:
        self.code = code
        super().__init__(message)


class NoConversation(Failure):
    """A file holds nothing that reads as a conversation."""


class Skipped(Exception):  # noqa: N818 - not an error: the other files are read
    """A file is left out, for the reason in the message."""


def no_room(window: int, sources: int) -> Failure:
    """Return the failure of a window that is too small for its sources."""
    what = f"a window of {window} tokens has no room for {sources} sources: raise --window"
    return Failure(what, code=DOES_NOT_FIT)


def code_of(error: Failure | ContextError) -> int:
    """Return the exit code an error ends the command with."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, ContextWindowExceeded):
        return DOES_NOT_FIT
    return SOURCE_FAILED if isinstance(error, SourceError) else USAGE
