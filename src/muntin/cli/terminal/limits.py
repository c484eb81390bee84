"""How many tokens a command may use: decided in one place for every command.

`--window` is all that the model reads and writes in one call, and so is what `--model` implies.
`--reserve` of it is left for the answer; the rest is the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muntin.cli.failures import DOES_NOT_FIT, Failure
from muntin.cli.terminal.options import counter_of, option, tokens
from muntin.config import WindowBudgetConfig
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from muntin.counting import NamedCounter
    from muntin.window import Window

__all__ = ("Limits", "Reserve", "limits_of", "reserve", "window_of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hold what a command may use."""

    counter: NamedCounter
    """Counts as the model does."""
    window: int | None
    """Tokens the model reads and writes in one call; None where unknown."""
    reserve: int
    """Tokens of the window left for the answer; 0 where the budget was given."""
    budget: int | None
    """Tokens the request may take; None where neither it nor the window is known."""

    @property
    def reserve_ratio(self) -> float:
        """The reserve as a share of the window, such that rounding down gives it exactly."""
        return (self.reserve + 0.5) / self.window if self.window and self.reserve else 0.0


def reserve(text: str | float) -> str | float:
    """Check `--reserve`: tokens (2k) or a share of the window (0.2, 20%)."""
    given = str(text).strip()
    share = _share(given)
    if share is None:
        return tokens(given)
    if not 0 <= share < 1:
        raise typer.BadParameter(
            f"{text!r} leaves nothing for the request: give a share below 1, or tokens (2k)"
        )
    return given


def _share(given: str) -> float | None:
    try:
        if given.endswith("%"):
            return float(given[:-1]) / 100
        value = float(given)
    except ValueError:
        return None
    return value if value < 1 else None


Reserve: TypeAlias = Annotated[
    str | None,
    option(
        "--reserve",
        takes="TOKENS",
        parser=reserve,
        says="Tokens (2k) or share (20%) of the window left for the answer. Default: 4096, at "
        "most half of the window.",
    ),
]
"""The option `--reserve` of every command that has a window."""


def window_of(model: str | None) -> int | None:
    """Find the window of a model by its name, offline; None where it is unknown."""
    known = _known(model)
    return None if known is None else known.tokens


def _known(model: str | None) -> Window | None:
    from muntin.window import resolve_window

    if model is None:
        return None
    try:
        return resolve_window(model)
    except ConfigurationError:
        return None


def limits_of(
    model: str | None,
    *,
    window: int | None = None,
    budget: int | None = None,
    reserved: str | float | None = None,
    default: int | None = None,
) -> Limits:
    """Decide counter, window, reserve and budget.

    Args:
        model: Name of the model; None counts with the estimate.
        window: The window; None takes that of the model.
        budget: The budget; None takes what the reserve leaves of the window.
        reserved: The reserve, as `reserve` returns it; None takes the library's default.
        default: The window where no option and no model decides it.

    Raises:
        Failure: Budget and window contradict each other, the reserve takes all of the window, or
            it is given and no window is known.
    """
    counter = counter_of(model)
    if budget is not None:
        if window is not None and budget > window:
            raise Failure(
                f"the budget of {budget} is over the window of {window}: give one of them"
            )
        return Limits(counter=counter, window=window, reserve=0, budget=budget)
    known = None if window else _known(model)
    whole = window or (default if known is None else known.tokens)
    if whole is None:
        if reserved is not None:
            raise Failure(
                "--reserve is a part of a window: give --window, or a --model whose window is known"
            )
        return Limits(counter=counter, window=None, reserve=0, budget=None)
    kept = _reserved(reserved, whole, None if known is None else known.max_output)
    if kept >= whole:
        raise Failure(
            f"--reserve {reserved} takes all of the window of {whole}: give less",
            code=DOES_NOT_FIT,
        )
    return Limits(counter=counter, window=whole, reserve=kept, budget=whole - kept)


def _reserved(given: str | float | None, window: int, most: int | None) -> int:
    if given is None:
        return WindowBudgetConfig().output_reserve(window=window, model_max_output=most)
    share = _share(str(given))
    return tokens(str(given)) if share is None else int(window * share)
