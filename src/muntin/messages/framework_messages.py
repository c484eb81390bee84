"""Recognise user-role messages that a framework wrote: reminders, dates, hand-off notes.

Frameworks speak to the model in the role of the user. Such a message is not a request: it does not
end a tool round and is not protected as one. It is recognised by its `name`, by tags like
`<system-reminder>` around all of its text, or because a program registered its name or tag.
Adapters set `injected` for marks of their own framework (`lc_source`); this module does not read
metadata.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("is_framework_text", "register_framework_messages")

_KINDS = (
    "reminder|reminders|notice|notification|hook|handoff|hand_off|transfer|todo|todos|todo_list"
    "|current_date|current_time|datetime|environment|environment_context|environment_details"
    "|heartbeat|middleware|ephemeral|system_message|system_note|system_info|system_context"
    "|system_update|system_event|system_warning|context_update|command_message|command_name"
    "|command_args|local_command_stdout|local_command_caveat|local_command_stderr"
)
"""Last part of a framework's name or tag; hyphens count as underscores."""
_NAME = re.compile(rf"(?:.*_)?(?:{_KINDS})", re.IGNORECASE)
_TAGGED = re.compile(r"\s*<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,200})?>(.*?)</\1\s*>\s*", re.DOTALL)

_lock = threading.Lock()
_names: frozenset[str] = frozenset()
_tags: frozenset[str] = frozenset()


def register_framework_messages(*, names: Iterable[str] = (), tags: Iterable[str] = ()) -> None:
    """Register names and tags of messages that a framework writes in the role of the user.

    The registration holds for the process. Registering a value again changes nothing.

    Args:
        names: Values of a message's `name`. Case and hyphens do not matter.
        tags: Names of tags that enclose the whole text, without the angle brackets.

    Raises:
        ConfigurationError: A value is not a non-empty string.

    ```python
    from muntin.messages import register_framework_messages, view

    register_framework_messages(names=["clock"], tags=["editor-state"])
    print(view({"role": "user", "name": "clock", "content": "09:00"}).is_user_turn)
    #> False
    ```
    """
    global _names, _tags
    new_names, new_tags = _checked("names", names), _checked("tags", tags)
    with _lock:
        _names |= new_names
        _tags |= new_tags


def _checked(argument: str, values: Iterable[str]) -> frozenset[str]:
    if isinstance(values, str):
        raise ConfigurationError(f"{argument} must be a list of strings, got {values!r}")
    given: list[object] = list(values)
    for value in given:
        if not isinstance(value, str) or not value.strip():
            raise ConfigurationError(f"{argument} must hold non-empty strings, got {value!r}")
    return frozenset(_folded(str(value)) for value in given)


def is_framework_text(text: str, name: str | None) -> bool:
    """Return whether a framework wrote a user-role message, by its name or its tags.

    A message with text outside the tags is a request, even if it contains a reminder.
    """
    if name and _is_known(_folded(name), _names):
        return True
    # Most messages do not begin with a tag, and are decided here.
    return text.lstrip()[:1] == "<" and _is_tagged_throughout(text)


def _is_tagged_throughout(text: str) -> bool:
    at = 0
    while at < len(text):
        found = _TAGGED.match(text, at)
        if found is None or not _is_known(_folded(found[1]), _tags):
            return not text[at:].strip() and at > 0
        at = found.end()
    return True


def _is_known(folded: str, registered: frozenset[str]) -> bool:
    return folded in registered or _NAME.fullmatch(folded) is not None


def _folded(name: str) -> str:
    return name.strip().casefold().replace("-", "_")
