"""The arguments of `trim_messages`: applied, accepted because they hold anyway, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import BaseMessage

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("TRIM_ARGUMENTS", "Trimming")

TRIM_ARGUMENTS = (
    "strategy", "allow_partial", "end_on", "start_on", "include_system", "text_splitter",
)  # fmt: skip
"""Arguments of `trim_messages` except `max_tokens` and `token_counter`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimming:
    """Hold the arguments that have an effect."""

    end_on: tuple[str | type, ...] = ()
    """Types of message on which the conversation may end; empty for any."""

    @classmethod
    def of(cls, given: Mapping[str, Any], every: Mapping[str, Any]) -> Trimming:
        """Read the arguments.

        Args:
            given: Those of `TRIM_ARGUMENTS` that were given.
            every: All further keywords.

        Raises:
            ConfigurationError: One of them is not supported; the message names an alternative.
        """
        if every.get("token_counter") is len:
            raise ConfigurationError(
                "token_counter=len makes trim_messages count messages; compact_messages counts "
                "tokens: leave it out, and give budget= in tokens"
            )
        _require(given, "strategy", ("last",), "the newest messages are kept; drop it")
        _require(
            given, "allow_partial", (False, None),
            "long tool results are shortened and say so, other messages stay whole; drop it",
        )  # fmt: skip
        _require(
            given, "include_system", (True, None),
            "leading system messages always stay: remove them from the messages to drop them",
        )  # fmt: skip
        _require(given, "text_splitter", (None,), "texts are cut at sentences and lines; drop it")
        starts = _types(given.get("start_on"), "start_on")
        if starts and not {"human", "user"} & {_name(one) for one in starts}:
            raise ConfigurationError(
                f"compact_messages cannot obey start_on={given['start_on']!r:.60}: results stay "
                f"with their calls, and calls behind the user message they answer; drop it"
            )
        return cls(end_on=_types(given.get("end_on"), "end_on"))

    def ended(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Return the messages up to the last one on which they may end."""
        if not self.end_on:
            return messages
        names = {_name(one) for one in self.end_on}
        end = len(messages)
        while end and messages[end - 1].type not in names:
            end -= 1
        return messages[:end]


def _require(given: Mapping[str, Any], name: str, allowed: tuple[Any, ...], why: str) -> None:
    if name in given and given[name] not in allowed:
        raise ConfigurationError(f"compact_messages cannot obey {name}={given[name]!r:.60}: {why}")


def _types(given: Any, name: str) -> tuple[str | type, ...]:
    """Read one type of message, or several."""
    if given is None:
        return ()
    many = cast("Any", given) if isinstance(given, (list, tuple, set)) else (given,)
    for one in many:
        if not isinstance(one, str) and not (
            isinstance(one, type) and issubclass(one, BaseMessage)
        ):
            raise ConfigurationError(
                f"{name} must be a type of message or its name, got {one!r:.60}"
            )
    return tuple(many)


def _name(one: str | type) -> str:
    """Name a type of message as messages do."""
    if isinstance(one, str):
        return {"user": "human", "assistant": "ai"}.get(one, one)
    fields: Any = getattr(one, "model_fields", {})
    return str(fields["type"].default) if "type" in fields else one.__name__
