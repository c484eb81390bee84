"""What an assembler is asked: read out of a string, a prompt value, messages, or a dict.

Roles are never flattened: messages stay the messages they are, and only what stands under a
source's key is offered as passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue

from langchain_muntin._shapes import SHAPE
from muntin.candidates import Scope
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Asked", "AssemblerInput", "read_input", "read_messages")

AssemblerInput: TypeAlias = PromptValue | list[BaseMessage] | dict[str, Any] | str
"""What an assembler takes."""

_MESSAGES = "messages"
_SCOPE = "scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold what an input asks for."""

    messages: tuple[BaseMessage, ...]
    """The conversation, the question included."""
    question: str
    """What passages are looked for."""
    offered: Mapping[str, object]
    """What the input brings under each other key."""
    scope: Scope | None = None
    """For whom, where the input says so."""


def read_input(given: object, *, question_key: str, history_key: str) -> Asked:
    """Read an input of any accepted kind.

    Raises:
        ConfigurationError: It is of no accepted kind, or nobody asks anything in it.
    """
    if isinstance(given, Mapping):
        return _read_mapping(cast("Mapping[str, object]", given), question_key, history_key)
    messages = read_messages(given)
    return Asked(messages=messages, question=_newest_question(messages), offered={})


def read_messages(given: object) -> tuple[BaseMessage, ...]:
    """Read messages in any way LangChain writes them.

    Raises:
        ConfigurationError: It holds no messages.
    """
    if isinstance(given, str):
        return (HumanMessage(given),)
    if isinstance(given, PromptValue):
        return tuple(given.to_messages())
    if isinstance(given, BaseMessage):
        return (given,)
    if isinstance(given, Sequence) and not isinstance(given, bytes):
        items = cast("Sequence[Any]", given)
        if all(isinstance(item, BaseMessage) for item in items):
            return tuple(items)
        return tuple(convert_to_messages(items))
    raise ConfigurationError(
        f"a string, a prompt value, messages or a dict can be assembled, not {type(given).__name__}"
    )


def _read_mapping(given: Mapping[str, object], question_key: str, history_key: str) -> Asked:
    rest = dict(given)
    history = rest.pop(history_key, None)
    if _MESSAGES in rest and history_key != _MESSAGES:
        if history is not None:
            raise ConfigurationError(f"give {history_key!r} or {_MESSAGES!r}, not both")
        history = rest.pop(_MESSAGES)
    messages = () if history is None else read_messages(history)
    asked = rest.pop(question_key, None)
    if asked is not None:
        messages = (*messages, *read_messages(asked))
    scope = rest.pop(_SCOPE) if isinstance(rest.get(_SCOPE), Scope) else None
    try:
        question = _newest_question(messages)
    except ConfigurationError:
        keys = ", ".join(map(repr, given)) or "none"
        raise ConfigurationError(
            f"nobody asks anything: put a question under {question_key!r} or messages under "
            f"{history_key!r}; the keys are {keys}"
        ) from None
    return Asked(
        messages=messages, question=question, offered=rest, scope=cast("Scope | None", scope)
    )


def _newest_question(messages: Iterable[BaseMessage]) -> str:
    for message in reversed(tuple(messages)):
        said = SHAPE.view(message)
        if said.is_user_turn and (said.text or said.media):
            return said.text
    raise ConfigurationError("nobody asks anything: there is no message of a user")
