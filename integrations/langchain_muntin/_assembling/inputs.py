"""Read the input of an assembler: a string, a prompt value, messages, or a dict.

Roles are never flattened: messages stay as they are, and only the value under a source's key is
offered as passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import PromptValue

from langchain_muntin._shapes import SHAPE
from muntin.errors import ConfigurationError
from muntin.passages import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Asked", "AssemblerInput", "read_input", "read_messages")

AssemblerInput: TypeAlias = PromptValue | list[BaseMessage] | dict[str, Any] | str
"""What an assembler takes."""

_MESSAGES = "messages"
_SCOPE = "scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an input asks for."""

    messages: tuple[BaseMessage, ...]
    """The conversation, the question included."""
    question: str
    """What passages are retrieved for."""
    offered: Mapping[str, object]
    """The values of the other keys of the input."""
    scope: Scope | None = None
    """Scope of the request; `None` if the input has none."""


def read_input(given: object, *, question_key: str, history_key: str) -> Asked:
    """Read an input of any accepted kind.

    Raises:
        ConfigurationError: It is of no accepted kind, or has no user message.
    """
    if isinstance(given, Mapping):
        return _read_mapping(cast("Mapping[str, object]", given), question_key, history_key)
    messages = read_messages(given)
    return Asked(messages=messages, question=_newest_question(messages), offered={})


def read_messages(given: object) -> tuple[BaseMessage, ...]:
    """Read messages in any way LangChain writes them.

    Raises:
        ConfigurationError: It holds something that is not a message.
    """
    if isinstance(given, str):
        return (HumanMessage(given),)
    if isinstance(given, BaseMessage):
        given = (given,)
    if isinstance(given, PromptValue):
        given = given.to_messages()
    if not isinstance(given, Sequence) or isinstance(given, (bytes, bytearray)):
        raise ConfigurationError(
            f"a string, a prompt value, messages or a dict can be assembled, not "
            f"{type(given).__name__}"
        )
    return tuple(_message(item, at) for at, item in enumerate(cast("Sequence[object]", given)))


def _message(item: object, at: int) -> BaseMessage:
    """Read one message, in any form that LangChain converts to a message."""
    if isinstance(item, RemoveMessage):
        raise ConfigurationError(
            f"message {at} is a RemoveMessage, which tells a graph's state to forget a message and "
            f"is none itself: let the state apply it (add_messages does), and give what remains"
        )
    if isinstance(item, BaseMessage):
        return item
    try:
        (made,) = convert_to_messages([cast("Any", item)])
    except Exception as error:
        raise ConfigurationError(
            f"message {at} cannot be read ({type(item).__name__}: {error}): give a message, a pair "
            f"of role and text, or a dict with 'role' and 'content'"
        ) from error
    return made


def _read_mapping(given: Mapping[str, object], question_key: str, history_key: str) -> Asked:
    rest = dict(given)
    talks = [rest.pop(key, None) for key in dict.fromkeys((history_key, _MESSAGES))]
    said = [read_messages(talk) for talk in talks if talk is not None and talk not in ("", [], ())]
    if len(said) > 1:
        raise ConfigurationError(f"give {history_key!r} or {_MESSAGES!r}, not both")
    messages = said[0] if said else ()
    asked = rest.pop(question_key, None)
    if asked is not None:
        messages = (*messages, *read_messages(asked))
    scope = rest.pop(_SCOPE) if isinstance(rest.get(_SCOPE), Scope) else None
    try:
        question = _newest_question(messages)
    except ConfigurationError:
        keys = ", ".join(map(repr, given)) or "none"
        raise ConfigurationError(
            f"the input has no user message: put a question under {question_key!r} or messages "
            f"under {history_key!r}; the keys are {keys}"
        ) from None
    return Asked(
        messages=messages, question=question, offered=rest, scope=cast("Scope | None", scope)
    )


def _newest_question(messages: Iterable[BaseMessage]) -> str:
    for message in reversed(tuple(messages)):
        said = SHAPE.view(message)
        if said.is_user_turn and (said.text or said.media):
            return said.text
    raise ConfigurationError(
        "the input has no user message: a prompt in front of an assembler needs a ('human', "
        "'{question}') message. Leave {context} out of it: the assembler places the passages"
    )
