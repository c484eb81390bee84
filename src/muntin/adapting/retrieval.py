"""Choose the passages that a retriever returns: one policy for every framework's retriever.

A retriever returns passages, not a text with headings. So passages are counted as the next step
joins them, with a blank line between two, and ordered over all sources. Selection, quotas, filling
and shortening are those of `ContextBuilder`. If no passage fits, the best one is shortened; if
that is impossible too, the result holds the error and the adapter decides what to do with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from muntin.config import ContextConfig
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.passages import ContextBuilder, Layout, Section, check_sources, read_given
from muntin.prompts import DEFAULT_PROMPTS
from muntin.report import UNRANKED, Decision, Piece, SourceReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.counting import TokenCounter
    from muntin.passages import (
        AnyGiven,
        AssembledContext,
        Candidate,
        ContextSource,
        Embedding,
        Gathered,
        Item,
    )
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = (
    "JoinedLayout",
    "Ordering",
    "PassagePolicy",
    "Retrieved",
    "arranged",
    "check_given",
    "check_retrieval",
    "ratios_for",
)

Ordering = Literal["selection", "ascending", "lost-in-the-middle", "document"]
"""The best first over all sources; the best last; the strongest at both ends; or source by source
as they came."""

_GAP = "\n\n"
_SLACK = 16
"""Tokens added per passage to a budget that must not limit anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedSection(Section):
    """Passages without a heading, with a blank line between two."""

    @property
    def text(self) -> str:
        """The passages joined by blank lines."""
        return _GAP.join(item.text for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedLayout(Layout):
    """Lay passages out as chains and synthesizers join them: no headings, no marks.

    Override `render` where a framework writes more than the text of a passage.
    """

    order: tuple[str, ...] = ("system", "*", "question")
    """Sources stay in the order in which they were given."""
    ordering: Ordering = "document"
    """Passages of a source stay in its order; `PassagePolicy` orders what it returns."""

    def render(self, candidate: Candidate, source: str) -> str:  # noqa: ARG002 - the same everywhere
        """Return the text of a passage."""
        return candidate.content

    def opening(self, name: str, prompts: PromptRegistry = DEFAULT_PROMPTS) -> str:  # noqa: ARG002 - sections have no heading
        """Return no heading."""
        return ""

    def section(
        self, name: str, items: Sequence[Item], prompts: PromptRegistry = DEFAULT_PROMPTS
    ) -> Section:
        """Join the passages of a source."""
        section = Layout.section(self, name, items, prompts)
        return _JoinedSection(name=name, opening="", items=section.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """Hold the chosen passages and their report."""

    candidates: tuple[Candidate, ...]
    """The chosen passages in the order asked for; some may be shortened."""
    report: AssemblyReport
    """What became of every passage."""
    shortfall: ContextWindowExceeded | None = None
    """Set if passages were found and nothing of them fits the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagePolicy:
    """Choose passages from several sources within one budget.

    ```python
    from muntin import Candidate, count_tokens
    from muntin.adapting import PassagePolicy
    from muntin.passages import Gathered

    found = {"docs": (Candidate("Parcels ship daily.", 0.9), Candidate("Parcels ship daily!", 0.8))}
    policy = PassagePolicy(budget=50, counter=count_tokens)
    print([one.content for one in policy.choose(Gathered(candidates=found), "parcels?").candidates])
    #> ['Parcels ship daily.']
    ```
    """

    budget: int | None
    """Tokens of the passages joined by blank lines; `None` does not limit them."""
    counter: TokenCounter
    """Counts tokens."""
    config: ContextConfig | None = None
    """Options of selection and allocation; `None` takes the defaults. Its `max_tokens` and
    `output_reserve_ratio` are not read. Its ratios are, if they are not the default ones."""
    ratios: Mapping[str, float] | None = None
    """Share of each source; `None` takes those of `config`, else equal shares."""
    top_k: int | None = None
    """Most passages; `None` takes all that fit."""
    ordering: Ordering = "selection"
    """Order of the passages."""
    layout: JoinedLayout = field(default_factory=JoinedLayout)
    """How a passage is written when it is counted."""

    def choose(
        self,
        gathered: Gathered,
        question: str,
        *,
        query_embedding: Embedding | None = None,
        given: AnyGiven = (),
        notes: Sequence[str] = (),
    ) -> Retrieved:
        """Choose among gathered passages.

        Args:
            gathered: Passages by source.
            question: The question, for the report.
            query_embedding: Vector of the question; `None` trusts the scores.
            given: What the model has already, as in `ContextBuilder.assemble`.
            notes: Sentences to add to the report.

        Raises:
            ConfigurationError: A source has no ratio, or a score is not finite.
            ContextWindowExceeded: A pinned passage alone is over the budget.
        """
        config = self._config(tuple(gathered.candidates))
        budget = self._budget(gathered)

        had = read_given(given)

        def assembled(config: ContextConfig) -> AssembledContext:
            builder = ContextBuilder(config, token_counter=self.counter, layout=self.layout)
            return builder.assemble_block(
                question, gathered, budget=budget, query_embedding=query_embedding, given=had
            )

        context = assembled(config)
        offered = [one for one in context.report.decisions if one.reason not in UNRANKED]
        if offered and not context.candidates and not config.shorten:
            context = assembled(replace(cast("Any", config), shorten=True))
        shortfall = None
        if offered and not context.candidates:
            shortfall = ContextWindowExceeded(
                "the shortest passage that was found",
                needed=min(one.tokens for one in offered),
                available=budget,
            )
        candidates, report = self._within_top_k(context)
        report = replace(report, notes=(*report.notes, *notes))
        return Retrieved(candidates=candidates, report=report, shortfall=shortfall)

    def _config(self, names: tuple[str, ...]) -> ContextConfig:
        """Return the options with a ratio for every source and no budget of their own."""
        given = self.config or ContextConfig()
        ratios = ratios_for(names, self.ratios, self.config)
        return replace(
            cast("Any", given), source_ratios=ratios, max_tokens=None, output_reserve_ratio=0.0
        )

    def _budget(self, gathered: Gathered) -> int:
        if self.budget is not None:
            return self.budget
        texts = [
            self.layout.render(candidate, name)
            for name, candidates in gathered.candidates.items()
            for candidate in candidates
        ]
        return self.counter(_GAP.join(texts)) + _SLACK * (len(texts) + 1)

    def _within_top_k(
        self, context: AssembledContext
    ) -> tuple[tuple[Candidate, ...], AssemblyReport]:
        """Take the best `top_k`, order them, and count the joined text in that order."""
        report, decided = context.report, _decided(context)
        best = list(context.ranked)
        refused: dict[tuple[str, int], Any] = {}
        if self.top_k is not None:
            for candidate in best[self.top_k :]:
                one = decided[id(candidate)]
                refused[one.source, one.index] = "beyond_top_k"
            best = best[: self.top_k]
        items = {id(item.candidate): item for part in context.sections for item in part.items}
        while True:
            ordered = self._ordered(best, context)
            texts = [items[id(candidate)].text for candidate in ordered]
            used = self.counter(_GAP.join(texts))
            if used <= report.budget or not best:
                break
            # Tokens are not additive: another order may cost more than the one that was placed.
            one = decided[id(best.pop())]
            refused[one.source, one.index] = "join_overflow"
        pieces = tuple(
            Piece.of(
                f"{decided[id(candidate)].source} {decided[id(candidate)].index}",
                (_GAP if at else "") + text,
                items[id(candidate)].tokens,
            )
            for at, (candidate, text) in enumerate(zip(ordered, texts, strict=True))
        )
        return tuple(ordered), _without(report, refused, used=used, pieces=pieces)

    def _ordered(self, best: Sequence[Candidate], context: AssembledContext) -> list[Candidate]:
        if self.ordering == "document":
            kept = {id(candidate) for candidate in best}
            return [candidate for candidate in context.candidates if id(candidate) in kept]
        return arranged(best, self.ordering)


def arranged(best: Sequence[Any], ordering: Ordering) -> list[Any]:
    """Order things that come best first.

    Raises:
        ConfigurationError: The ordering is unknown, or needs more than the ranking.
    """
    if ordering == "selection":
        return list(best)
    if ordering == "ascending":
        return list(best)[::-1]
    if ordering == "lost-in-the-middle":
        return [*best[::2], *reversed(best[1::2])]
    raise ConfigurationError(
        f"ordering must be 'selection', 'ascending', 'lost-in-the-middle' or 'document', got "
        f"{ordering!r}"
    )


def ratios_for(
    names: Sequence[str], ratios: Mapping[str, float] | None, config: ContextConfig | None
) -> Mapping[str, float]:
    """Return the share of each source: as given, else as configured, else equal shares.

    The default ratios of `ContextConfig` count as not configured: they name sources of their own.
    """
    if ratios is not None:
        return ratios
    if config is not None and config.source_ratios != ContextConfig().source_ratios:
        return config.source_ratios
    return dict.fromkeys(names, 1.0) if names else ContextConfig().source_ratios


def check_given(given: AnyGiven) -> None:
    """Refuse a setting `given` that cannot be read at every request.

    Raises:
        ConfigurationError: It is an iterator, or holds something that is not a text, a candidate or
            a message.
    """
    if isinstance(given, Iterator):
        raise ConfigurationError(
            "given must be a list or a function that returns one, got an iterator, which can be "
            "read only once"
        )
    if not callable(given):
        read_given(given)


def check_retrieval(
    sources: Sequence[ContextSource],
    ratios: Mapping[str, float] | None,
    config: ContextConfig | None,
) -> None:
    """Refuse sources that are repeated or have no ratio, before anything is fetched.

    Raises:
        ConfigurationError: There is no source, or one is repeated or has no ratio.
    """
    if not sources:
        raise ConfigurationError("a retriever needs at least one source, got none")
    check_sources(sources, ratios_for([source.name for source in sources], ratios, config))


def _decided(context: AssembledContext) -> dict[int, Decision]:
    """Return the decision about each placed candidate, by the identity of the candidate."""
    placed: dict[str, list[Decision]] = {}
    for one in context.report.decisions:  # in the order of each source, as the layout has them
        if one.kind in ("kept", "shortened"):
            placed.setdefault(one.source, []).append(one)
    return {
        id(item.candidate): one
        for section in context.sections
        for item, one in zip(section.items, placed[section.name], strict=True)
    }


def _without(
    report: AssemblyReport,
    refused: Mapping[tuple[str, int], Any],
    *,
    used: int,
    pieces: tuple[Piece, ...],
) -> AssemblyReport:
    """Write a report for what is left when some placed passages are taken out again."""
    decisions = tuple(
        replace(one, kind="dropped", reason=refused[one.source, one.index], kept_tokens=0)
        if (one.source, one.index) in refused
        else one
        for one in report.decisions
    )
    freed: dict[str, int] = {}
    for one in report.decisions:
        if (one.source, one.index) in refused:
            freed[one.source] = freed.get(one.source, 0) + one.kept_tokens
    sources = tuple(
        SourceReport.of(
            source.name,
            [one for one in decisions if one.source == source.name],
            used=source.used - freed[source.name],
            quota=source.quota,
            lent=source.lent,
            borrowed=source.borrowed,
        )
        if source.name in freed
        else source
        for source in report.sources
    )
    return replace(report, decisions=decisions, sources=sources, used=used, pieces=pieces)
