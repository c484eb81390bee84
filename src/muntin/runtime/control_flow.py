"""Which exceptions steer whoever runs the program, and are no failure of what raised them.

A graph pauses to ask a person by raising through everything between itself and the place that asks.
Whoever here catches all that a source or a summariser may raise lets such exceptions pass: they
are not for us. The core knows none of them; an integration says how to find its framework's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("is_control_flow", "register_control_flow")

_finders: list[Callable[[], tuple[type[BaseException], ...]]] = []


def register_control_flow(find: Callable[[], tuple[type[BaseException], ...]]) -> None:
    """Make the exceptions of a framework pass through; the same function counts once.

    Args:
        find: Returns the kinds of exception there are by now. It is asked whenever something was
            raised, so that it need not import what nobody uses.

    ```python
    from muntin.runtime.control_flow import is_control_flow, register_control_flow

    class Paused(Exception):
        pass

    register_control_flow(lambda: (Paused,))
    print(is_control_flow(Paused()), is_control_flow(ValueError()))
    #> True False
    ```
    """
    if find not in _finders:
        _finders.append(find)


def is_control_flow(error: BaseException) -> bool:
    """Say whether an exception is meant for a framework that runs the program."""
    return any(isinstance(error, find()) for find in _finders)
