"""What of a graph's state is put back when messages are left out: its todo list by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias, cast

from muntin.state import AgentState, state_block

__all__ = ("Restate", "digest_of", "restated", "value_of")

Restate: TypeAlias = Callable[[Any], AgentState | None]
"""Writes what must not be forgotten out of a graph's state; `None` when there is nothing."""


def restated(state: Any, restate: Restate | None) -> AgentState | None:
    """Write down what of a state has to be put back; `None` when there is nothing."""
    found = (restate or _todos)(state)
    return None if found is None or found.is_empty() else found


def digest_of(state: AgentState | None) -> str:
    """Digest what a state says, to know whether it changed; `""` when there is nothing."""
    if state is None:
        return ""
    written = state_block(state.snapshot()).encode("utf-8", "surrogatepass")
    return blake2b(written, digest_size=8).hexdigest()


def value_of(state: Any, key: str) -> Any:
    """Read a key of a state that is a dict or an object; `None` where it has none."""
    if isinstance(state, dict):
        return cast("dict[str, Any]", state).get(key)
    return getattr(state, key, None)


def _todos(state: Any) -> AgentState | None:
    """Read the todo list as LangChain's middleware keeps it: contents with a status each."""
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
