"""All options: frozen, checked at construction, and unchanged by a JSON round trip.

Every range is checked at construction, so a configuration that exists is valid. pydantic
does the checking; its error is translated once into `ConfigurationError`.

The defaults are what works best on real data (`docs/decisions/`); `ContextConfig.reference()`
keeps the values of agentmaker.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from functools import wraps
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, dataclass_transform

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = (
    "CompactionConfig",
    "ContextConfig",
    "MuntinConfig",
    "Ratios",
    "ReducerConfig",
    "WindowBudgetConfig",
)

_Config = TypeVar("_Config")


class Ratios(Mapping[str, float]):
    """Hold shares by source name: read-only, hashable, and comparable with any mapping."""

    __slots__ = ("_pairs",)

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._pairs: dict[str, float] = dict(shares)

    def __getitem__(self, name: str) -> float:
        return self._pairs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        return hash(frozenset(self._pairs.items()))

    def __repr__(self) -> str:
        return repr(self._pairs)

    def __reduce__(self) -> tuple[object, ...]:
        return (Ratios, (self._pairs,))

    def __deepcopy__(self, memo: dict[int, Any]) -> Ratios:
        return self


def _ratios(value: object) -> Ratios:
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError as its own
            f"ratios are a mapping of source name to share, not {value!r}"
        )
    shares: dict[str, float] = {}
    for name, share in cast("Mapping[object, object]", value).items():
        if not isinstance(name, str) or isinstance(share, bool):
            raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError as its own
                f"a ratio goes from a source name to a number, not {name!r}: {share!r}"
            )
        try:
            number = float(cast("str", share))
        except (TypeError, ValueError):
            raise ValueError(f"the ratio of source {name!r} is not a number: {share!r}") from None
        if not math.isfinite(number) or number < 0:
            raise ValueError(f"the ratio of source {name!r} must be finite and >= 0, not {share!r}")
        shares[name] = number
    if not sum(shares.values()) > 0:
        raise ValueError("at least one source needs a ratio above 0")
    return Ratios(shares)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _config(cls: type[_Config]) -> type[_Config]:
    """Make a frozen dataclass that raises `ConfigurationError` for wrong values."""
    settings = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    made: Any = dataclass(frozen=True, slots=False, kw_only=True, config=settings)(cls)
    made.__init__ = _translated(made.__init__, made.__name__)
    return made


def _translated(init: Callable[..., None], name: str) -> Callable[..., None]:
    @wraps(init)
    def checked(self: object, *args: object, **kwargs: object) -> None:
        try:
            init(self, *args, **kwargs)
        except ValidationError as error:
            problems = "; ".join(_problem(detail) for detail in error.errors())
            raise ConfigurationError(f"{name}: {problems}") from None

    return checked


def _problem(detail: Any) -> str:
    where = ".".join(str(part) for part in detail["loc"] if not isinstance(part, int))
    said = str(detail["msg"]).removeprefix("Value error, ")
    given = detail.get("input")
    shown = "" if detail["type"] == "value_error" else f" (given: {given!r})"
    return f"{where}: {said[:1].lower()}{said[1:]}{shown}" if where else said


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"must be an int, got {value!r:.60}")  # noqa: TRY004 - pydantic reports it
    return int(value)


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number; numpy integers are accepted, bool, float and str are not."""
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
_REFERENCE_RATIOS = Ratios({"history": 0.35, "rag": 0.30, "memory": 0.20, "tool": 0.15})


@_config
class ContextConfig:
    """Configure how a context's budget is divided and how candidates are selected.

    ```python
    from muntin import ContextConfig

    print(ContextConfig.for_window(200_000).max_tokens)
    #> 100000
    ```

    Raises:
        ConfigurationError: A value is out of range or of the wrong type.
    """

    max_tokens: Annotated[Whole, Field(gt=0)] | None = None
    """Tokens of the whole context, reserve included. `None` has no default meaning: functions that
    need a budget then require one."""
    output_reserve_ratio: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=True)] = (
        0.2
    )
    """Share of `max_tokens` withheld for the model's answer."""
    source_ratios: Annotated[
        Mapping[str, float], PlainValidator(_ratios), PlainSerializer(dict)
    ] = _REFERENCE_RATIOS
    """Share of each source in what is left for candidates. Only proportions matter. A source must
    be named here to take part; a ratio of 0 places only what others leave idle."""
    mmr_lambda: Share = 1.0
    """Relevance against diversity in selection, in [0, 1]; 1 is pure relevance. On real retrieval
    every step towards diversity lost passages that held the answer; duplicates go anyway."""
    dedup_threshold: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] = 0.95
    """Similarity to a kept candidate from which one counts as a near-duplicate; above 1 none
    does."""
    link_weight: Weight = 0.6
    """Bonus, in units of relevance (at most 1), of a candidate whose name occurs in the question or
    in a candidate chosen before; 0 switches links off."""
    coverage_weight: Weight = 0.5
    """Bonus of a candidate that has all words of the question which nothing chosen before has, in
    proportion for fewer; 0 switches coverage off. It is off where the question's vector is given;
    links then begin with the third candidate."""
    allow_borrow: StrictBool = True
    """Whether idle quota goes to sources that still have something to place."""
    min_chunk_tokens: Annotated[Whole, Field(ge=0)] = 64
    """Tokens of one candidate that every quota must be able to hold, for the sanity check."""
    dedup_across_sources: StrictBool = True
    """Whether the same passage from two sources is kept once, at its better score."""
    similarity: Literal["auto", "embedding", "lexical"] = "auto"
    """How near-duplicates are recognised: vectors where both candidates have one and words
    otherwise (`auto`), vectors alone, or words alone."""
    fill: StrictBool = True
    """Whether an item that does not fit is skipped for the next one that does. `False` stops a
    source at its first item that does not fit, as agentmaker does."""
    shorten: StrictBool = False
    """Whether tokens that stay idle are filled with the beginnings of passages that do not fit
    whole, cut at the end of a sentence."""
    never_empty: StrictBool = True
    """Whether the best passage is shortened if no passage fits: at the end of a sentence, else
    anywhere."""
    windows: StrictBool = True
    """Whether, where the budget holds less than one and a half passages, the best sentences of
    several passages are placed instead: with their title line, in their order, gaps marked by "…".
    Code, tables and JSON are never cut so."""
    strict: StrictBool = False
    """Whether it is an error (`ContextWindowExceeded`) if passages were found and not even a part
    of one fits. Otherwise the report has a note, and `shortfall` of the context is set."""

    @classmethod
    def for_window(
        cls,
        context_window: int | None,
        *,
        use_ratio: float = 0.5,
        fallback_window: int | None = None,
        **knobs: Any,
    ) -> ContextConfig:
        """Derive the budget from a model's context window.

        Args:
            context_window: The window in tokens; `None` or 0 means unknown.
            use_ratio: Share of the window the context may take, in (0, 1].
            fallback_window: Window to assume when the real one is unknown.
            **knobs: Any other field of `ContextConfig`.

        Raises:
            ConfigurationError: `use_ratio` is outside (0, 1] or a window is negative.
        """
        if not 0 < use_ratio <= 1:
            raise ConfigurationError(f"use_ratio must be in (0, 1], got {use_ratio}")
        window = _window(context_window, "context_window")
        window = window or _window(fallback_window, "fallback_window")
        return cls(max_tokens=int(window * use_ratio) if window else None, **knobs)

    @classmethod
    def reference(cls, **knobs: Any) -> ContextConfig:
        """Return agentmaker's values: its allocation, cosine alone, no pooling."""
        values: dict[str, Any] = {
            "mmr_lambda": 0.7,
            "dedup_threshold": 0.95,
            "dedup_across_sources": False,
            "similarity": "embedding",
            "link_weight": 0.0,
            "coverage_weight": 0.0,
            "fill": False,
            "shorten": False,
            "never_empty": False,
            "windows": False,
        }
        return cls(**{**values, **knobs})

    def validate(
        self, *, min_chunk_tokens: int | None = None, require_max_tokens: bool = True
    ) -> None:
        """Check that every source's quota can hold one candidate.

        Args:
            min_chunk_tokens: Tokens one rendered candidate takes; `None` takes the field.
            require_max_tokens: Whether a missing `max_tokens` is an error.

        Raises:
            ConfigurationError: `max_tokens` is not set, or a quota is too small for one item.
        """
        if self.max_tokens is None:
            if require_max_tokens:
                raise ConfigurationError(
                    "max_tokens is not set: give it, or use ContextConfig.for_window(...)"
                )
            return
        least = self.min_chunk_tokens if min_chunk_tokens is None else min_chunk_tokens
        total = sum(self.source_ratios.values())
        region = self.max_tokens * (1 - self.output_reserve_ratio)
        for name, ratio in self.source_ratios.items():
            quota = region * ratio / total
            if ratio and quota < least:
                raise ConfigurationError(
                    f"source {name!r} has a quota of {int(quota)} tokens, less than one item "
                    f"({least}): raise max_tokens ({self.max_tokens}) or its ratio ({ratio:g})"
                )


@_config
class WindowBudgetConfig:
    """Configure how a model's window is divided between output, retrieval and trajectory."""

    desired_output_tokens: Annotated[Whole, Field(ge=0)] = 4096
    """Tokens the answer may take at most; smaller caps of the model or the window win."""
    max_output_fraction: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False, strict=True)] = 0.5
    """Share of the window the output reserve may take at most, for small windows."""
    rag_ratio: Share = 0.35
    """Retrieval's share of what is left after reserve and fixed overhead; the trajectory gets
    the rest."""

    def validate(self) -> None:
        """Check every field again, as construction does.

        Raises:
            ConfigurationError: A value is out of range or of the wrong type.
        """
        replace(self)

    def output_reserve(self, *, window: int, model_max_output: int | None) -> int:
        """Return the tokens to reserve for the answer.

        The smallest of what is desired, the window's guardrail and the model's own cap, where it
        is known and not 0.
        """
        clamps = [self.desired_output_tokens, int(window * self.max_output_fraction)]
        if model_max_output:
            clamps.append(model_max_output)
        return max(min(clamps), 0)


@_config
class ReducerConfig:
    """Configure how many of a trajectory's newest steps stay verbatim."""

    agent_keep_recent_steps: Annotated[Whole, Field(ge=0)] = 3
    """Trailing tool units (a call with its results) kept verbatim."""
    plan_keep_recent: Annotated[Whole, Field(ge=0)] = 3
    """Trailing plan step results kept verbatim."""

    def validate(self) -> None:
        """Check every field again, as construction does.

        Raises:
            ConfigurationError: A value is out of range or of the wrong type.
        """
        replace(self)


@_config
class CompactionConfig:
    """Configure when a conversation is compacted into a recap, and how much stays verbatim."""

    keep_recent: Annotated[Whole, Field(ge=1)] = 4
    """Newest messages kept verbatim; the cut moves back to spare a tool unit."""
    trigger_tokens: Annotated[Whole, Field(ge=0)] = 2000
    """Tokens of history above which it is compacted."""
    max_summary_tokens: Annotated[Whole, Field(ge=1)] = 1000
    """Tokens the recap may take at most, its prefix included."""

    def validate(self) -> None:
        """Check every field again, as construction does.

        Raises:
            ConfigurationError: A value is out of range or of the wrong type.
        """
        replace(self)


class _ForWindow:
    """Size the context to a model's window, on the class or on an instance.

    On an instance every other setting is kept, those of the context too.
    """

    def __get__(
        self, instance: MuntinConfig | None, owner: type[MuntinConfig]
    ) -> Callable[..., MuntinConfig]:
        def for_window(context_window: int | None, **options: Any) -> MuntinConfig:
            config = owner() if instance is None else instance
            context = config.context
            kept = {one.name: getattr(context, one.name) for one in fields(cast("Any", context))}
            del kept["max_tokens"]
            sized = ContextConfig.for_window(context_window, **{**kept, **options})
            if sized.max_tokens is None:
                raise ConfigurationError("the window is unknown: give fallback_window")
            return replace(config, context=sized)

        return for_window


@_config
class MuntinConfig:
    """Hold the four configurations of an application, for one file and one hand-over.

    ```python
    from muntin import MuntinConfig

    config = MuntinConfig.from_dict({"compaction": {"keep_recent": 6}})
    print(config.compaction.keep_recent, MuntinConfig.from_dict(config.to_dict()) == config)
    #> 6 True
    ```
    """

    context: ContextConfig = ContextConfig()
    """The context's budget."""
    reducer: ReducerConfig = ReducerConfig()
    """The trajectory's verbatim tail."""
    compaction: CompactionConfig = CompactionConfig()
    """The conversation's compaction."""
    window_budget: WindowBudgetConfig = WindowBudgetConfig()
    """The window's division."""

    for_window = _ForWindow()
    """Return a configuration whose context is sized to a model's window; see `_ForWindow`."""

    def validate(self) -> None:
        """Check every part again, as construction does.

        Raises:
            ConfigurationError: A value is out of range or of the wrong type.
        """
        for part in (self.context, self.reducer, self.compaction, self.window_budget):
            replace(part)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain JSON types, ready for `json.dumps`."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(cast("Any", self))}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MuntinConfig:
        """Read what `to_dict` wrote; parts and fields may be missing, none may be unknown.

        Raises:
            ConfigurationError: A part or field is unknown, or a value is of the wrong type.
        """
        if not isinstance(cast("object", data), Mapping):
            raise ConfigurationError(f"a configuration is a mapping, not {data!r}")
        parts = {
            "context": ContextConfig,
            "reducer": ReducerConfig,
            "compaction": CompactionConfig,
            "window_budget": WindowBudgetConfig,
        }
        _refuse_unknown("MuntinConfig", data, parts)
        read: dict[str, Any] = {}
        for name, part in parts.items():
            values = data.get(name, {})
            if not isinstance(values, Mapping):
                raise ConfigurationError(f"{name}: a configuration is a mapping, not {values!r}")
            knobs = cast("Mapping[str, Any]", values)
            _refuse_unknown(
                part.__name__, knobs, [field.name for field in fields(cast("Any", part))]
            )
            read[name] = part(**knobs)
        return cls(**read)


def _window(value: object, name: str) -> int | None:
    try:
        window = None if value is None else _whole(value)
    except ValueError as error:
        raise ConfigurationError(f"{name} {error}") from None
    if window is not None and window < 0:
        raise ConfigurationError(f"{name} must be an int of at least 0 (tokens), got {window}")
    return window


def _plain(config: object) -> dict[str, Any]:
    values = asdict(cast("Any", config))
    return {k: dict(v) if isinstance(v, Ratios) else v for k, v in values.items()}


def _refuse_unknown(name: str, given: Mapping[str, Any], known: Any) -> None:
    strange = [key for key in given if key not in known]
    if strange:
        raise ConfigurationError(
            f"{name} has no {', '.join(map(repr, strange))}: it has {', '.join(known)}"
        )
