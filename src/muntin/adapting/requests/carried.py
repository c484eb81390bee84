"""State of an agent that is put back when messages are left out: its todo list by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias, cast

from muntin.state import AgentState, state_block

__all__ = ("Restate", "carried_state", "digest_of", "value_of")

Restate: TypeAlias = Callable[[Any], "AgentState | None"]
"""Make an `AgentState` of a framework's state; `None` if there is nothing to put back."""


def carried_state(state: Any, restate: Restate | None) -> AgentState | None:
    """Return what of a framework's state has to be put back; `None` if there is nothing.

    Args:
        state: The state: a dict or an object.
        restate: Reads it; `None` reads the todo list under `todos`.
    """
    found = (restate or _todos)(state)
    return None if found is None or found.is_empty() else found


def digest_of(state: AgentState | None) -> str:
    """Return a digest of the content of a state; `""` for no state."""
    if state is None:
        return ""
    written = state_block(state.snapshot()).encode("utf-8", "surrogatepass")
    return blake2b(written, digest_size=8).hexdigest()


def value_of(state: Any, key: str) -> Any:
    """Read a key of a state that is a dict or an object; `None` if it has none."""
    if isinstance(state, dict):
        return cast("dict[str, Any]", state).get(key)
    return getattr(state, key, None)


def _todos(state: Any) -> AgentState | None:
    """Read a todo list: contents with a status each."""
    todos: Any = value_of(state, "todos")
    if not isinstance(todos, Sequence) or isinstance(todos, str) or not todos:
        return None
    steps = [_step(todo) for todo in cast("Sequence[Any]", todos)]
    names = list(dict.fromkeys(name for name, _ in steps))
    current = [name for name, status in steps if status == "in_progress"]
    return AgentState(
        plan=[*names],
        completed_steps=[name for name, status in steps if status == "completed"],
        current_step=current[0] if current else None,
    )


def _step(todo: Any) -> tuple[str, str]:
    if not isinstance(todo, Mapping):
        return str(todo), "pending"
    given = cast("Mapping[str, Any]", todo)
    return str(given.get("content", "")), str(given.get("status", "pending"))
