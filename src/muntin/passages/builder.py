"""One context out of several sources: gather, select, allocate, lay out, report.

Each step is a function of values and this module is their composition. The entry points differ only
in what they hand back and in how they fetch: the strings are the `.text` of the assembled object,
and the async methods fetch on the event loop and then do what the sync ones do, off the loop.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from muntin.config import ContextConfig
from muntin.counting import checked_counter
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.passages.account import Totals, account_for
from muntin.passages.assembled import AssembledContext
from muntin.passages.given import read_given
from muntin.passages.layout import Layout, Rendering
from muntin.passages.placing import Frame, measure, place
from muntin.passages.planning import plan_block, plan_of_gathered, plan_whole
from muntin.passages.selecting import rank
from muntin.passages.sources import agather, gather
from muntin.passages.splitting import split_strings
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muntin.counting import AnyCounter
    from muntin.passages.candidates import Candidate, Embedding, Scope
    from muntin.passages.given import AnyGiven
    from muntin.passages.layout import Item
    from muntin.passages.placing import Placement
    from muntin.passages.planning import Plan
    from muntin.passages.selecting import Ranking
    from muntin.passages.sources import ContextSource, Gathered
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("ContextBuilder",)


class ContextBuilder:
    """Assemble the text a model reads from several sources, inside a token budget.

    Args:
        config: The budget and the options of selection; `None` takes `ContextConfig()`.
        min_chunk_tokens: Tokens one candidate may take at most, for the check that every quota
            can hold one; `None` takes the configuration's. Where `config.fill` is true, sources
            lend each other idle quota, and only the whole budget is checked.
        prompts: Where headings come from; `None` takes the built-in English ones.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        layout: Order, headings and style; `None` takes `Layout()`.
        token_counter: Another name of `counter`.

    Raises:
        ConfigurationError: The budget cannot hold one candidate; where sources may not borrow, a
            quota cannot.

    ```python
    from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig

    def search_docs(query):
        return [
            Candidate("Letters weigh 80 grams at most, no form needed.", 0.9),
            Candidate("Parcels weigh 500 grams at most, form required.", 0.7),
        ]

    builder = ContextBuilder(ContextConfig.for_window(8000))
    print(
        builder.build(
            "how much may a letter weigh?",
            sources=[CallableSource("rag", search_docs)],
            system_prompt="You are a post office assistant.",
        )
    )
    #> You are a post office assistant.
    #>
    #> [Knowledge]
    #> - Letters weigh 80 grams at most, no form needed.
    #> - Parcels weigh 500 grams at most, form required.
    #>
    #> [Current question]
    #> how much may a letter weigh?
    ```
    """

    def __init__(
        self,
        config: ContextConfig | None = None,
        *,
        min_chunk_tokens: int | None = None,
        prompts: PromptRegistry | None = None,
        counter: AnyCounter = None,
        model: object = None,
        layout: Layout | None = None,
        token_counter: AnyCounter = None,
    ) -> None:
        self.config = config or ContextConfig()
        count = checked_counter(counter, model=model, alias={"token_counter": token_counter})
        self._rendering = Rendering(
            layout=layout or Layout(), prompts=prompts or DEFAULT_PROMPTS, counter=count
        )
        body = self.config.min_chunk_tokens if min_chunk_tokens is None else min_chunk_tokens
        least = body + count("- ")
        if not (self.config.fill and self.config.allow_borrow):
            self.config.validate(min_chunk_tokens=least, require_max_tokens=False)
        elif self.config.max_tokens is not None:  # idle quotas are lent: only the sum matters
            total = self.config.max_tokens - int(
                self.config.max_tokens * self.config.output_reserve_ratio
            )
            if total < least:
                raise ConfigurationError(
                    f"max_tokens={self.config.max_tokens} leaves {total} tokens for passages, less "
                    f"than one item ({least}): raise max_tokens or lower min_chunk_tokens"
                )

    def build(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        given: AnyGiven = (),
    ) -> str:
        """Return the whole context as one string: system prompt, sections, question.

        See `assemble` for the arguments and errors.
        """
        return self.assemble(
            query, sources=sources, system_prompt=system_prompt, scope=scope, given=given
        ).text

    async def abuild(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        given: AnyGiven = (),
    ) -> str:
        """Return what `build` returns; sources are fetched on the event loop."""
        context = await self.aassemble(
            query, sources=sources, system_prompt=system_prompt, scope=scope, given=given
        )
        return context.text

    def build_block(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        scope: Scope | None = None,
        budget: int | None = None,
        given: AnyGiven = (),
    ) -> str:
        """Return only the sections, without system prompt and question; `""` if nothing fits.

        For conversations: put the block into a system message and send the history as messages.

        Args:
            query: The question; it is searched for and, without a `budget`, paid for.
            sources: Where candidates come from.
            scope: User, agent, session and app to fetch for.
            budget: Tokens the block may take, net: reserve and question have been paid for
                elsewhere. `None` takes `max_tokens` less reserve and question. Not positive
                leaves space for nothing.
            given: What the model has already: texts, candidates, contexts or messages, or a
                function that returns them. Passages in it are left out, unless pinned.

        Raises:
            ConfigurationError: `max_tokens` is not set and no budget is given, or a source is
                unknown or repeated.
            ContextWindowExceeded: The question or a pinned candidate alone does not fit.
            SourceError: A source failed.
        """
        plan = plan_block(query, sources, budget, self.config, self._rendering)
        had = read_given(given)
        return self._assemble(plan, gather(sources, query, scope), None, had).text

    async def abuild_block(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        scope: Scope | None = None,
        budget: int | None = None,
        given: AnyGiven = (),
    ) -> str:
        """Return what `build_block` returns; sources are fetched on the event loop."""
        plan = plan_block(query, sources, budget, self.config, self._rendering)
        had = read_given(given)
        gathered = await agather(sources, query, scope)
        return (await self._aassemble(plan, gathered, None, had)).text

    def assemble(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        budget: int | None = None,
        query_embedding: Embedding | None = None,
        given: AnyGiven = (),
    ) -> AssembledContext:
        """Assemble the context and its report.

        Args:
            query: The question.
            sources: Where candidates come from; each named in `source_ratios`, none twice.
            system_prompt: Always present, in front.
            scope: User, agent, session and app to fetch for.
            budget: Tokens the text may take, net of any reserve. `None` takes `max_tokens` less
                the reserve.
            query_embedding: Vector of the question, shape `(d,)`, to vote on relevance. `None`
                trusts the scores.
            given: What the model has already: texts, candidates, contexts or messages, or a
                function that returns them. Passages in it are left out, unless pinned.

        Raises:
            ConfigurationError: `max_tokens` is not set and no budget is given, or a source is
                unknown or repeated.
            ContextWindowExceeded: System prompt, question and pinned candidates do not fit.
            SourceError: A source failed.
        """
        plan = plan_whole(query, sources, system_prompt, budget, self.config, self._rendering)
        had = read_given(given)
        return self._assemble(plan, gather(sources, query, scope), query_embedding, had)

    async def aassemble(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        budget: int | None = None,
        query_embedding: Embedding | None = None,
        given: AnyGiven = (),
    ) -> AssembledContext:
        """Assemble what `assemble` does; sources are fetched on the event loop."""
        plan = plan_whole(query, sources, system_prompt, budget, self.config, self._rendering)
        had = read_given(given)
        gathered = await agather(sources, query, scope)
        return await self._aassemble(plan, gathered, query_embedding, had)

    def assemble_block(
        self,
        query: str,
        gathered: Gathered,
        *,
        budget: int,
        query_embedding: Embedding | None = None,
        given: AnyGiven = (),
    ) -> AssembledContext:
        """Assemble the sections of what was gathered already, and their report.

        Nothing is fetched here, so another budget can be tried at once.

        Args:
            query: The question, for the report.
            gathered: What `muntin.passages.sources.gather` or `agather` returned.
            budget: Tokens the block may take, net. Not positive leaves space for nothing.
            query_embedding: Vector of the question, as in `assemble`.
            given: What the model has already, as in `assemble`.

        Raises:
            ConfigurationError: A source is not named in `source_ratios`.
            ContextWindowExceeded: A pinned candidate alone does not fit.
        """
        names = tuple(gathered.candidates)
        plan = plan_of_gathered(query, names, budget, self.config, self._rendering)
        return self._assemble(plan, gathered, query_embedding, read_given(given))

    async def _aassemble(
        self,
        plan: Plan,
        gathered: Gathered,
        query_embedding: Embedding | None,
        given: Sequence[str],
    ) -> AssembledContext:
        """Assemble without blocking the event loop."""
        return await off_loop(
            partial(self._assemble, plan, gathered, query_embedding, given),
            size=gathered.characters,
        )

    def _assemble(
        self,
        plan: Plan,
        gathered: Gathered,
        query_embedding: Embedding | None,
        given: Sequence[str],
    ) -> AssembledContext:
        def fits(name: str, candidate: Candidate) -> bool:
            rendered = self._rendering.rendered(candidate, name)
            return self._rendering.counter(rendered + "\n") <= plan.frame.region

        offered, split = gathered.candidates, ()
        if self.config.never_empty:
            offered, split = split_strings(gathered.candidates, fits)
        ranking = rank(
            offered,
            self.config,
            question=plan.query,
            query_embedding=query_embedding,
            given=given,
        )
        items = measure(ranking, self._rendering)
        notes = tuple(f"{failure}; it was left out" for failure in gathered.failures) + split
        return self._laid_out(plan, ranking, items, notes)

    def _laid_out(
        self, plan: Plan, ranking: Ranking, items: Sequence[Item], notes: tuple[str, ...]
    ) -> AssembledContext:
        frame, rendering = plan.frame, self._rendering
        placement = place(ranking, items, frame, rendering, self.config)

        def replay(max_tokens: int) -> AssemblyReport:
            return self._laid_out(plan.within(max_tokens), ranking, items, notes).report

        shortfall = _shortfall(ranking, items, placement, frame)
        if shortfall is not None and self.config.strict:
            raise shortfall
        missing = () if shortfall is None else (f"no passage fits: {shortfall}",)
        totals = Totals(
            query=plan.query,
            budget=frame.limit,
            reserve=plan.reserve,
            notes=(*notes, *missing, *self._small_quotas(placement, items, ranking)),
            replay=replay,
        )
        report = account_for(totals, ranking, items, placement, frame, rendering)
        placed = placement.items
        return AssembledContext(
            parts=placement.parts,
            report=report,
            query=plan.query,
            ranked=tuple(placed[number].candidate for number in ranking.line if number in placed),
            shortfall=shortfall,
        )

    def _small_quotas(
        self, placement: Placement, items: Sequence[Item], ranking: Ranking
    ) -> Iterator[str]:
        """Name the sources whose quota, after all fixed costs, is smaller than what waits there."""
        waiting: dict[str, int] = {}
        for number in ranking.order:
            if number not in placement.items:
                source = ranking.offers[number].source
                waiting[source] = min(
                    waiting.get(source, items[number].tokens), items[number].tokens
                )
        for source, least in waiting.items():
            share = placement.allocation.shares[source]
            if share.quota < least and not share.used and self.config.source_ratios[source]:
                yield (
                    f"source {source!r} placed nothing: its quota of {share.quota} tokens is less "
                    f"than its smallest item ({least}); raise the budget or its ratio"
                )


def _shortfall(
    ranking: Ranking, items: Sequence[Item], placement: Placement, frame: Frame
) -> ContextWindowExceeded | None:
    """Return the error that explains an empty context, `None` if it is not or nothing was found."""
    found = [items[number].tokens for number in ranking.line]
    if placement.items or not found:
        return None
    return ContextWindowExceeded(
        "the shortest passage that was found", needed=min(found), available=frame.region
    )
