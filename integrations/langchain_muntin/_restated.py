"""What of an agent's state is put back when messages are left out: its todo list by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from muntin.tokens import count_tokens
from muntin.truncation import truncate_to_tokens

__all__ = ("Restated", "restated", "value_of")


@dataclass(frozen=True, slots=True)
class Restated:
    """A text that stands for a state."""

    text: str

    def to_context(self, max_tokens: int | None = None, **_: Any) -> str:
        """Return the text, cut to a number of tokens."""
        if max_tokens is None:
            return self.text
        return truncate_to_tokens(self.text, max_tokens, count_tokens)


def restated(
    state: Any, restate: Callable[[Mapping[str, Any]], str | None] | None
) -> Restated | None:
    """Write down what of a state has to be put back; `None` when there is nothing."""
    text = (restate or _todos)(state)
    return Restated(text) if text else None


def value_of(state: Any, key: str) -> Any:
    """Read a key of a state that is a dict or an object; `None` where it has none."""
    if isinstance(state, dict):
        return cast("dict[str, Any]", state).get(key)
    return getattr(state, key, None)


def _todos(state: Any) -> str | None:
    """Write the todo list as LangChain's middleware keeps it."""
    todos: object = value_of(state, "todos")
    if not isinstance(todos, Sequence) or isinstance(todos, str) or not todos:
        return None
    lines = [_line(todo) for todo in cast("Sequence[Any]", todos)]
    return "Todo list:\n" + "\n".join(lines)


def _line(todo: Any) -> str:
    if not isinstance(todo, Mapping):
        return f"- {todo}"
    given = cast("Mapping[str, Any]", todo)
    return f"- [{given.get('status', 'pending')}] {given.get('content', '')}"
