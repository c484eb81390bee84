"""Find the shape that reads a message: by type, by looking at it, then among the plugins."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError
from muntin.messages.shapes.dicts import dict_shape
from muntin.messages.shapes.frameworks.pydantic_ai import PYDANTIC_AI
from muntin.messages.shapes.neutral import MESSAGE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from muntin.messages.shapes.protocol import MessageShape
    from muntin.messages.shapes.views import MessageView

__all__ = ("register_shape", "shape_of", "view")

_GROUP = "muntin.shapes"
_HINTS = {
    "langchain": 'pip install "muntin[langchain]"',
    "langchain_core": 'pip install "muntin[langchain]"',
    "llama_index": 'pip install "muntin[llama-index]"',
}


_lock = threading.Lock()
_registered: list[MessageShape] = []
_by_type: dict[type, MessageShape] = {}
_plugins_lock = threading.RLock()
_plugins: list[EntryPoint] | None = None
"""Shapes of installed adapters that are not loaded yet; `None` before the first look-up."""


def register_shape(shape: MessageShape) -> None:
    """Make a shape known; the newest is asked first. Registering it again changes nothing."""
    with _lock:
        if any(known is shape for known in _registered):
            return
        _registered.insert(0, shape)
        _by_type.clear()


def shape_of(message: Any) -> MessageShape:
    """Find the shape that reads a message.

    Dicts are looked at one by one, because providers write different things into them; every other
    type is looked at once and remembered.

    Raises:
        ConfigurationError: No shape reads it. The message names the type and what to install.

    ```python
    from muntin.messages.shapes import shape_of

    print(shape_of({"role": "user", "content": "hi"}).name)
    #> openai-chat
    ```
    """
    if isinstance(message, dict):
        return _shape_of_dict(message)  # pyright: ignore[reportUnknownArgumentType] - any dict
    kind = cast("type[object]", type(message))
    known = _by_type.get(kind)
    if known is not None:
        return known
    found = _look(message) or _ask_plugins(message)
    if found is None:
        raise ConfigurationError(_unknown(kind))
    _by_type[kind] = found
    return found


def view(message: Any) -> MessageView:
    """Read a message of any shape.

    Raises:
        ConfigurationError: No shape reads it.
    """
    return shape_of(message).view(message)


def _shape_of_dict(message: dict[str, Any]) -> MessageShape:
    for shape in _registered:
        if shape.reads(message):
            return shape
    found = dict_shape(message)
    if found is None:
        keys = ", ".join(sorted(map(str, message))) or "none"
        raise ConfigurationError(
            f"a message dict needs a 'role' (or a Responses 'type'), this one has the keys: {keys}"
        )
    return found


def _look(message: Any) -> MessageShape | None:
    for shape in (MESSAGE, *_registered, PYDANTIC_AI):
        if shape.reads(message):
            return shape
    return None


def _ask_plugins(message: Any) -> MessageShape | None:
    """Load shapes that installed adapters offer, the likeliest first, until one reads a message.

    Loading a shape imports its framework, which takes seconds: not for the message of another.
    """
    global _plugins
    modules = [kind.__module__ for kind in type(message).__mro__]
    with _plugins_lock:
        if _plugins is None:
            from importlib.metadata import entry_points

            _plugins = list(entry_points(group=_GROUP))
        likely = [one for one in _plugins if any(name.startswith(one.name) for name in modules)]
        for entry in [*likely, *(one for one in _plugins if one not in likely)]:
            _plugins.remove(entry)
            try:
                shape = entry.load()
            except ImportError:
                # The adapter is on disk but its framework is not installed: then no message of
                # that framework can turn up either, and the error still names the extra.
                continue
            register_shape(shape)
            if shape.reads(message):
                return shape
    return None


def _unknown(kind: type) -> str:
    module = kind.__module__.partition(".")[0]
    hint = _HINTS.get(module)
    remedy = f"install its adapter: {hint}" if hint else "register_shape() teaches it one"
    return (
        f"no shape reads messages of type {kind.__module__}.{kind.__qualname__}: {remedy}. "
        f"Known are Message values, Pydantic AI messages, and dicts of OpenAI, Responses, "
        f"Anthropic, Gemini and the Vercel AI SDK"
    )
