"""The error for a request that a provider would refuse, and small readers of request bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from muntin.errors import ContextError

__all__ = (
    "Refusal",
    "RequestOverflow",
    "RequestRefused",
    "block_of",
    "blocks_of",
    "listed",
    "matches",
    "refuse",
)

Refusal = Literal[
    "no_messages",
    "field",
    "role",
    "empty_content",
    "part_type",
    "arguments",
    "name",
    "call_id",
    "orphan_result",
    "unanswered_call",
    "repeated_call",
    "result_order",
    "result_count",
    "system_position",
    "first_message",
    "last_message",
    "alternation",
    "missing_thinking",
    "thinking_bound",
    "reasoning_pair",
    "missing_signature",
    "cache_marks",
    "overflow",
]
"""Why a request was refused."""


class RequestRefused(ContextError):  # noqa: N818 - the name of the event, as in pytest's Skipped
    """A provider would answer this request with an error."""

    status: int = 400
    """HTTP status the provider answers with."""

    def __init__(self, code: Refusal, index: int | None, problem: str) -> None:
        self.code: Refusal = code
        """Kind of the refusal."""
        self.index = index
        """Position of the message; `None` if the refusal is about the whole request."""
        self.problem = problem
        """The provider's text."""
        where = "the request" if index is None else f"message {index}"
        super().__init__(f"{where} is refused ({code}): {problem}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.code, self.index, self.problem))


class RequestOverflow(RequestRefused):
    """The request and the tokens for its answer are larger than the window."""

    def __init__(self, needed: int, window: int, max_output: int, text: str | None = None) -> None:
        self.needed = needed
        """Tokens of the prompt."""
        self.window = window
        """Tokens of the window."""
        self.max_output = max_output
        """Tokens requested for the answer."""
        self._text = text
        super().__init__(
            "overflow",
            None,
            text
            or f"This model's maximum context length is {window} tokens. However, you requested "
            f"{needed + max_output} tokens ({needed} in the messages, {max_output} in the "
            f"completion).",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (RequestOverflow, (self.needed, self.window, self.max_output, self._text))


def refuse(code: Refusal, index: int | None, problem: str) -> RequestRefused:
    """Return the error to raise."""
    return RequestRefused(code, index, problem)


def listed(value: Any) -> Sequence[Any] | None:
    """Return the value if it is a list, `None` otherwise."""
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else None


def block_of(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, an empty mapping otherwise."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def blocks_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings of a list."""
    return [block_of(one) for one in listed(value) or ()]


def matches(pattern: str, value: Any) -> bool:
    """Return whether the value is a text that the pattern matches as a whole."""
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None
