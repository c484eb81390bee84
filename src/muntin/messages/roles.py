"""Arrange the roles of a request as a model family demands.

Chat templates of Mistral, Gemma and Llama 2 demand that user and assistant alternate and that a
system message comes first; most providers refuse system messages inside the conversation, and some
accept them only behind a user turn. Neighbours of one role are joined, and a system message in a
place that is refused becomes a user message. It does not cut anything and does not count tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from muntin.errors import ConfigurationError
from muntin.messages.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.message import Role
    from muntin.messages.shapes import MessageView

__all__ = (
    "AS_THEY_ARE",
    "RoleRules",
    "alternating",
    "arrange_roles",
    "must_alternate",
    "role_rules",
)

SystemPlace = Literal["anywhere", "placed", "first"]
"""Where a system message is accepted: in any place; in front, or behind a user turn where an
assistant turn or the end follows; in front only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRules:
    """What a provider or a chat template demands of the order of roles."""

    alternate: bool = False
    """Whether user and assistant must alternate, beginning with the user. Tool rounds do not take
    part."""
    system: SystemPlace = "anywhere"
    """Where system messages are accepted."""


AS_THEY_ARE: Final = RoleRules()
"""Accepts every order."""
_STRICT: Final = RoleRules(alternate=True, system="first")
_FAMILIES: Final = (
    (re.compile(r"mistral|mixtral|ministral|codestral|gemma|llama-?2\b|codellama"), _STRICT),
    (
        re.compile(r"claude-(?:opus-(?:4[-.]8|5)|(?:sonnet|haiku)-5[-.]5|(?:fable|mythos)-5)"),
        RoleRules(system="placed"),
    ),
    (re.compile(r"claude|gemini"), RoleRules(system="first")),
)
"""Rules by family, as of 2026-11-30; the first match is used."""
_BETWEEN: Final[dict[Role, str]] = {"assistant": "(no answer)", "user": "(continue)"}
"""Texts of messages put between two that cannot be joined."""


def role_rules(name: str) -> RoleRules:
    """Return the rules of a model by its name; an unknown name accepts every order.

    ```python
    from muntin.messages import role_rules

    print(role_rules("gemma-3-27b-it").alternate, role_rules("gpt-4o").alternate)
    #> True False
    ```
    """
    cleaned = name.lower()
    return next((rules for family, rules in _FAMILIES if family.search(cleaned)), AS_THEY_ARE)


def arrange_roles(
    messages: Sequence[Any], *, alternate: bool = False, system: SystemPlace = "anywhere"
) -> Sequence[Any]:
    r"""Return the messages in an order of roles that is accepted; the given ones do not change.

    Two user messages in a row become one, and so do two answers. Messages that hold more than text
    are kept apart by a short message of the other role.

    Args:
        messages: A conversation of any shape, with its pairs intact.
        alternate: Whether user and assistant must alternate, beginning with the user.
        system: Where system messages are accepted.

    Returns:
        A list, or the given object if nothing had to change.

    Raises:
        ConfigurationError: No shape reads one of the messages.

    ```python
    from muntin.messages import arrange_roles

    talk = [{"role": "user", "content": "Where is it?"}, {"role": "user", "content": "P-7, I mean"}]
    print(arrange_roles(talk, alternate=True))
    #> [{'role': 'user', 'content': 'Where is it?\n\nP-7, I mean'}]
    ```
    """
    if not alternate and system == "anywhere":
        return messages
    views = [shape_of(message).view(message) for message in messages]
    lead = next((at for at, one in enumerate(views) if one.role != "system"), len(views))
    out: list[Any] = list(messages[:lead])
    if alternate and lead > 1:
        out = _joined_all(out)
    body = [
        _as_user(message) if _is_misplaced(views, at, lead, system) else message
        for at, message in enumerate(messages[lead:], lead)
    ]
    out += _alternating(body) if alternate else body
    same = len(out) == len(messages) and all(a is b for a, b in zip(out, messages, strict=True))
    return messages if same else out


def must_alternate(alternate: object, model: str | None) -> bool:
    """Return whether roles must alternate.

    Args:
        alternate: What the caller demands; `None` leaves it to the family of the model.
        model: Name of the model; `None` if unknown.

    Raises:
        ConfigurationError: `alternate` is neither a bool nor `None`.
    """
    if alternate is None:
        return role_rules(model or "").alternate
    if isinstance(alternate, bool):
        return alternate
    raise ConfigurationError(f"alternate must be a bool or None, got {alternate!r:.60}")


def alternating(messages: Sequence[Any]) -> Sequence[Any]:
    """Return messages in which user and assistant alternate behind the system message."""
    return arrange_roles(messages, alternate=True, system="first")


def _is_misplaced(views: Sequence[MessageView], at: int, lead: int, system: SystemPlace) -> bool:
    """Return whether a system message behind the leading ones is in a place that is refused."""
    if system == "anywhere" or views[at].role != "system" or views[at].unknown:
        return False  # blocks such as added tools have no other place
    if system == "first":
        return True
    before = views[at - 1].role if at > lead else None
    after = views[at + 1].role if at + 1 < len(views) else "assistant"
    return before not in ("user", "tool") or after != "assistant"


def _as_user(message: Any) -> Any:
    shape = shape_of(message)
    return shape.note(shape.view(message).text, "user")


def _alternating(messages: Sequence[Any]) -> list[Any]:
    """Join neighbours of one role, and put a message between those that cannot be joined."""
    out: list[Any] = []
    before: Role = "assistant"
    is_behind_round = False
    for message in messages:
        shape = shape_of(message)
        view = shape.view(message)
        if view.calls or view.results or view.role == "tool":
            if not out and view.calls:
                out.append(shape.note(_BETWEEN["user"], "user"))
                before = "user"
            out.append(message)
            is_behind_round = True
            continue
        if view.role == before:
            joined = _joined(out[-1], message) if out and not is_behind_round else None
            if joined is not None:
                out[-1] = joined
                continue
            other: Role = "assistant" if view.role == "user" else "user"
            out.append(shape.note(_BETWEEN[other], other))
        out.append(message)
        before, is_behind_round = view.role, False
    return out


def _joined_all(messages: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for message in messages:
        joined = _joined(out[-1], message) if out else None
        if joined is None:
            out.append(message)
        else:
            out[-1] = joined
    return out


def _joined(first: Any, second: Any) -> Any:
    """Return one message with the texts of both; `None` if both hold more than text."""
    one, other = shape_of(first), shape_of(second)
    view, following = one.view(first), other.view(second)
    text = "\n\n".join(part for part in (view.text, following.text) if part)
    if not _holds_more(following):
        return one.with_text(first, text)
    return None if _holds_more(view) else other.with_text(second, text)


def _holds_more(view: MessageView) -> bool:
    return bool(
        view.media or view.server or view.reasoning or view.signed or view.unknown or view.pinned
    )
