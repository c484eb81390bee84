"""The ledger of a run: how a model's window is divided, and what each part has used.

    window = output reserve + fixed overhead (system, tools) + retrieval + trajectory

`WindowBudget` computes that division once per run from the real window and the measured overhead.
`ContextBudget` is the same account with named shares that are charged and released. Both draw on
`resolve_window`, which finds the size of a window and reports where it is known from. An unknown
window is an error or a stated fallback, never a guess.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, cast

from muntin.counting import checked_tokens, window_of_name
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.runtime import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.config import WindowBudgetConfig

__all__ = ("ContextBudget", "Window", "WindowBudget", "resolve_window")

Provenance = Literal["declared", "profile", "genai-prices", "fallback"]
"""Source of a window's size: given, stated by the model object, found by the model's name, or
assumed on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hold what is known of a model's context window."""

    tokens: int
    """All tokens the model reads and writes in one call."""
    max_output: int | None = None
    """Tokens the model writes at most in one call; `None` where unknown."""
    provenance: Provenance = "declared"
    """Where the size is known from."""


def resolve_window(llm_or_int: object, *, fallback: int | None = None) -> Window:
    """Find out how large a model's context window is.

    Reads, in this order: a number; a `Window`; `context_window` (with `max_output_tokens`) on the
    model; LangChain's `profile` (`max_input_tokens`, `max_output_tokens`); LlamaIndex's `metadata`
    (`context_window`, `num_output`). A LlamaIndex model that does not know its window reports the
    library's default, which cannot be distinguished from a real one: pass a number where that
    matters.

    A bare name is looked up in `genai-prices` (extra `models`), offline; of several entries the
    smallest window counts.

    Args:
        llm_or_int: A model object, the name of a model, or the window in tokens.
        fallback: Window to assume if the model reports none; `None` makes that an error.

    Raises:
        ConfigurationError: The window is unknown and there is no fallback, or it is not positive.

    ```python
    from muntin import resolve_window

    print(resolve_window(8192))
    #> Window(tokens=8192, max_output=None, provenance='declared')
    ```
    """
    if isinstance(llm_or_int, Window):
        return llm_or_int
    if isinstance(llm_or_int, Real):
        return Window(tokens=checked_tokens(llm_or_int, "the window"))
    told = _named(llm_or_int) if isinstance(llm_or_int, str) else _told(llm_or_int)
    if told is not None:
        return told
    if fallback is not None:
        return Window(tokens=checked_tokens(fallback, "the fallback window"), provenance="fallback")
    hint = ', install "muntin[models]"' if isinstance(llm_or_int, str) and not _has_names() else ""
    raise ConfigurationError(
        f"the context window of {_name(llm_or_int)} is unknown: pass it as a number{hint}, or give "
        f"a fallback you know to be safe"
    )


def _has_names() -> bool:
    return importlib.util.find_spec("genai_prices") is not None


def _named(name: str) -> Window | None:
    """Return the window of a model by its name; `None` if it is unknown or cannot be looked up."""
    tokens = window_of_name(name) if _has_names() else None
    return None if tokens is None else Window(tokens=tokens, provenance="genai-prices")


def _told(llm: object) -> Window | None:
    """Read the window that a model object reports."""
    metadata = getattr(llm, "metadata", None)
    profile: object = getattr(llm, "profile", None)
    sources = (
        (getattr(llm, "context_window", None), getattr(llm, "max_output_tokens", None)),
        (_key(profile, "max_input_tokens"), _key(profile, "max_output_tokens")),
        (getattr(metadata, "context_window", None), getattr(metadata, "num_output", None)),
    )
    for tokens, output in sources:
        if isinstance(tokens, int) and tokens > 0:
            cap = output if isinstance(output, int) and output > 0 else None
            return Window(tokens=tokens, max_output=cap, provenance="profile")
    return None


def _key(profile: object, name: str) -> Any:
    if isinstance(profile, dict):
        return cast("dict[str, Any]", profile).get(name)
    return None


def _name(llm: object) -> str:
    if isinstance(llm, str):
        return repr(llm)
    for attribute in ("model_name", "model"):
        name = getattr(llm, attribute, None)
        if isinstance(name, str) and name:
            return repr(name)
    return "None" if llm is None else type(llm).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBudget:
    """Divide one run's window between output, overhead, retrieval and trajectory.

    ```python
    from muntin import WindowBudget, WindowBudgetConfig
    from muntin.testing import ScriptedLLM

    ledger = WindowBudget.for_run(
        llm=ScriptedLLM(context_window=200_000),
        cfg=WindowBudgetConfig(),
        system_tokens=800,
        tool_tokens=1200,
    )
    print(ledger.output_reserve, ledger.spendable, ledger.rag_budget)
    #> 4096 193904 67866
    ```

    Raises:
        ConfigurationError: A part is negative, the ratio is out of range, or the reserve leaves
            nothing of the window.
    """

    window: int
    """The model's context window in tokens."""
    output_reserve: int
    """Tokens withheld for the answer."""
    system_tokens: int = 0
    """Measured tokens of the system prompt."""
    tool_tokens: int = 0
    """Measured tokens of the tool schemas. They are sent with the messages but are not part of
    them, so they are charged here."""
    rag_ratio: float = 0.35
    """Retrieval's share of what is spendable."""

    def __post_init__(self) -> None:
        checked_tokens(self.window, "the window")
        for name in ("output_reserve", "system_tokens", "tool_tokens"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} must be >= 0, not {getattr(self, name)}")
        if not 0 <= self.rag_ratio <= 1:
            raise ConfigurationError(f"rag_ratio must be in [0, 1], not {self.rag_ratio}")
        if self.output_reserve >= self.window:
            raise ConfigurationError(
                f"the output reserve of {self.output_reserve} tokens leaves nothing of a window "
                f"of {self.window}: lower desired_output_tokens or max_output_fraction"
            )

    @classmethod
    def for_run(
        cls,
        *,
        llm: object,
        cfg: WindowBudgetConfig,
        system_tokens: int = 0,
        tool_tokens: int = 0,
        rag_ratio: float | None = None,
    ) -> WindowBudget | None:
        """Compute the ledger of one run.

        Args:
            llm: The model, or its window in tokens.
            cfg: The knobs.
            system_tokens: Measured tokens of the system prompt.
            tool_tokens: Measured tokens of the tool schemas.
            rag_ratio: Replaces the configured ratio; 0 where nothing is retrieved.

        Returns:
            The ledger, or `None` if the model reports no window.

        Raises:
            ConfigurationError: A number is out of range.
        """
        given = isinstance(llm, int | Window) and bool(llm)
        window = resolve_window(llm) if given else _told(llm)
        if window is None:
            return None
        return cls(
            window=window.tokens,
            output_reserve=cfg.output_reserve(
                window=window.tokens, model_max_output=window.max_output
            ),
            system_tokens=system_tokens,
            tool_tokens=tool_tokens,
            rag_ratio=cfg.rag_ratio if rag_ratio is None else rag_ratio,
        )

    @property
    def fixed(self) -> int:
        """Tokens of the fixed overhead: system prompt and tool schemas."""
        return self.system_tokens + self.tool_tokens

    @property
    def spendable(self) -> int:
        """Tokens retrieval and trajectory can divide, never negative."""
        return max(self.window - self.output_reserve - self.fixed, 0)

    @property
    def rag_budget(self) -> int:
        """Tokens the retrieval block may take: the `budget` of `build_block`."""
        return int(self.spendable * self.rag_ratio)

    def trajectory_budget(self, *, rag_in_scope: bool) -> int:
        """Return the tokens a trajectory may take.

        Args:
            rag_in_scope: Whether the messages to be trimmed hold the system prompt and the
                retrieval block already; then only the reserve and the tools come off the window.
        """
        if rag_in_scope:
            return max(self.window - self.output_reserve - self.tool_tokens, 0)
        return max(self.spendable - self.rag_budget, 0)


DEFAULT_ALLOCATIONS: Mapping[str, float] = {
    "system": 0.10,
    "state": 0.10,
    "history": 0.30,
    "tool_results": 0.30,
    "generation": 0.20,
}
"""Named shares of a window for an agent with a plan."""


class ContextBudget:
    """Keep the account of a window by named shares: what each may take, has taken, and has left.

    Shares are whole tokens and sum to `max_tokens` exactly. `max_tokens` and `allocations` may be
    changed at any time; the next call divides anew.

    Args:
        max_tokens: The window in tokens.
        allocations: Share of each category in [0, 1]; they sum to at most 1. `None` takes
            system .10, state .10, history .30, tool_results .30, generation .20.

    Raises:
        ConfigurationError: A number is out of range, or the shares sum to more than 1.

    ```python
    from muntin import ContextBudget

    ledger = ContextBudget(128_000)
    ledger.charge("history", 30_000)
    print(ledger.budget_for("history"), ledger.remaining("history"), ledger.fits("state", 12_801))
    #> 38400 8400 False
    ```
    """

    def __init__(
        self, max_tokens: int = 128_000, allocations: Mapping[str, float] | None = None
    ) -> None:
        self.max_tokens = max_tokens
        self.allocations = dict(DEFAULT_ALLOCATIONS if allocations is None else allocations)
        self._divided()

    def budget_for(self, category: str) -> int:
        """Return the tokens a category may take in all."""
        self._check(category)
        return self._divided()[category]

    def fits(self, category: str, token_count: int) -> bool:
        """Return whether a number of tokens fits what a category has left."""
        self._check(category)
        return _not_negative(token_count) <= self.remaining(category)

    def charge(self, category: str, tokens: int) -> None:
        """Spend tokens of a category.

        Raises:
            ContextWindowExceeded: They are more than it has left; nothing is charged then.
        """
        if not self.fits(category, tokens):
            raise ContextWindowExceeded(
                f"{tokens} more tokens of {category}",
                needed=tokens,
                available=self.remaining(category),
                parts={"charged already": self._charges[category]},
            )
        self._charges[category] += tokens

    def release(self, category: str, tokens: int) -> None:
        """Give back tokens of a category.

        Raises:
            ConfigurationError: They are more than were charged.
        """
        self._check(category)
        if _not_negative(tokens) > self._charges[category]:
            raise ConfigurationError(
                f"cannot release {tokens} tokens of {category!r}: {self._charges[category]} are "
                f"charged"
            )
        self._charges[category] -= tokens

    def used(self, category: str | None = None) -> int:
        """Return the tokens charged, of one category or of all."""
        if category is None:
            return sum(self._charges.values())
        self._check(category)
        return self._charges[category]

    def remaining(self, category: str | None = None) -> int:
        """Return the tokens left, of one category or of the whole window."""
        if category is None:
            return self.max_tokens - self.used()
        return self.budget_for(category) - self.used(category)

    @property
    def _charges(self) -> Counter[str]:
        # A subclass may set its own attributes and never call this constructor.
        return vars(self).setdefault("_charged", Counter())

    def _divided(self) -> dict[str, int]:
        """Divide the window by the shares as they are now; both attributes may be changed."""
        max_tokens = checked_tokens(self.max_tokens, "max_tokens")
        for category, share in self.allocations.items():
            if not 0 <= share <= 1:
                raise ConfigurationError(
                    f"the share of {category!r} must be in [0, 1], got {share}"
                )
        whole = sum(self.allocations.values())
        if not 0 < whole <= 1 + 1e-9:
            raise ConfigurationError(
                f"the shares sum to {whole:g}: they must sum to more than 0 and at most 1"
            )
        rest = {"": max(1 - whole, 0.0)} if whole < 1 - 1e-9 else {}
        return split(max_tokens, {**self.allocations, **rest})

    def _check(self, category: str) -> None:
        if category not in self.allocations:
            raise ConfigurationError(
                f"no share is named {category!r}: there are {', '.join(self.allocations)}"
            )


def _not_negative(tokens: int) -> int:
    if tokens < 0:
        raise ConfigurationError(f"a number of tokens is >= 0, not {tokens}")
    return tokens
