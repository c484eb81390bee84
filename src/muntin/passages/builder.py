"""One context out of several sources: gather, select, allocate, lay out, report.

Each step is a function of values and this module is their composition. The entry points differ only
in what they hand back and in how they fetch: the strings are the `.text` of the assembled object,
and the async methods fetch on the event loop and then do what the sync ones do, off the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from muntin.config import ContextConfig
from muntin.counting import checked_counter, checked_tokens, tokens_of
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.passages.account import Sheet, account_for
from muntin.passages.assembled import AssembledContext
from muntin.passages.layout import Dress, Layout
from muntin.passages.placing import Frame, measure, place
from muntin.passages.selecting import rank
from muntin.passages.sources import agather, check_sources, gather
from muntin.passages.splitting import split_strings
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import off_loop
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from muntin.counting import AnyCounter
    from muntin.passages.candidates import Candidate, Embedding, Scope
    from muntin.passages.layout import Item
    from muntin.passages.placing import Placement
    from muntin.passages.selecting import Ranking
    from muntin.passages.sources import ContextSource, Gathered
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("ContextBuilder",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is known before anything is fetched."""

    query: str
    frame: Frame
    max_tokens: int
    """The whole budget."""
    reserve_ratio: float
    """Share of it withheld for the answer; 0 for a net budget."""
    outside: int = 0
    """Tokens of it that are paid for something sent besides the text."""

    @property
    def reserve(self) -> int:
        """Tokens of the budget that are not for the text."""
        return int(self.max_tokens * self.reserve_ratio) + self.outside

    def within(self, max_tokens: int) -> _Plan:
        """Make the same plan for another budget; what is fixed stays as large as it is."""
        plan = replace(self, max_tokens=max_tokens)
        limit = max_tokens - plan.reserve
        if limit <= 0:
            raise ConfigurationError(f"a budget of {max_tokens} tokens leaves nothing to fill")
        return replace(plan, frame=replace(self.frame, limit=limit))


class ContextBuilder:
    """Assemble the text a model reads from several sources, inside a token budget.

    Args:
        config: The budget and the knobs of selection; `None` takes `ContextConfig()`.
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
        self._dress = Dress(
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
    ) -> str:
        """Return the whole context as one string: system prompt, sections, question.

        See `assemble` for the arguments and errors.
        """
        return self.assemble(query, sources=sources, system_prompt=system_prompt, scope=scope).text

    async def abuild(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
    ) -> str:
        """Return what `build` returns; sources are fetched on the event loop."""
        context = await self.aassemble(
            query, sources=sources, system_prompt=system_prompt, scope=scope
        )
        return context.text

    def build_block(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        scope: Scope | None = None,
        budget: int | None = None,
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

        Raises:
            ConfigurationError: `max_tokens` is not set and no budget is given, or a source is
                unknown or repeated.
            ContextWindowExceeded: The question or a pinned candidate alone does not fit.
            SourceError: A source failed.
        """
        plan = self._plan_block(query, sources, budget)
        return self._assemble(plan, gather(sources, query, scope), None).text

    async def abuild_block(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        scope: Scope | None = None,
        budget: int | None = None,
    ) -> str:
        """Return what `build_block` returns; sources are fetched on the event loop."""
        plan = self._plan_block(query, sources, budget)
        return (await self._aassemble(plan, await agather(sources, query, scope), None)).text

    def assemble(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        budget: int | None = None,
        query_embedding: Embedding | None = None,
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

        Raises:
            ConfigurationError: `max_tokens` is not set and no budget is given, or a source is
                unknown or repeated.
            ContextWindowExceeded: System prompt, question and pinned candidates do not fit.
            SourceError: A source failed.
        """
        plan = self._plan(query, sources, system_prompt, budget)
        return self._assemble(plan, gather(sources, query, scope), query_embedding)

    async def aassemble(
        self,
        query: str,
        *,
        sources: Sequence[ContextSource],
        system_prompt: str = "",
        scope: Scope | None = None,
        budget: int | None = None,
        query_embedding: Embedding | None = None,
    ) -> AssembledContext:
        """Assemble what `assemble` does; sources are fetched on the event loop."""
        plan = self._plan(query, sources, system_prompt, budget)
        return await self._aassemble(plan, await agather(sources, query, scope), query_embedding)

    def assemble_block(
        self,
        query: str,
        gathered: Gathered,
        *,
        budget: int,
        query_embedding: Embedding | None = None,
    ) -> AssembledContext:
        """Assemble the sections of what was gathered already, and their report.

        Nothing is fetched here, so another budget can be tried at
        once.

        Args:
            query: The question, for the report.
            gathered: What `muntin.passages.sources.gather` or `agather` returned.
            budget: Tokens the block may take, net. Not positive leaves space for nothing.
            query_embedding: Vector of the question, as in `assemble`.

        Raises:
            ConfigurationError: A source is not named in `source_ratios`.
            ContextWindowExceeded: A pinned candidate alone does not fit.
        """
        room = max(budget, 0)
        self._check_names(gathered.candidates)
        frame = self._framed(tuple(gathered.candidates), room)
        plan = _Plan(query=query, frame=frame, max_tokens=room, reserve_ratio=0.0)
        return self._assemble(plan, gathered, query_embedding)

    async def _aassemble(
        self, plan: _Plan, gathered: Gathered, query_embedding: Embedding | None
    ) -> AssembledContext:
        """Assemble without blocking the event loop."""
        return await off_loop(
            partial(self._assemble, plan, gathered, query_embedding), size=gathered.characters
        )

    def _plan(
        self,
        query: str,
        sources: Sequence[ContextSource],
        system_prompt: str,
        budget: int | None,
    ) -> _Plan:
        """Divide the budget of a whole context, and refuse what cannot work before any fetch."""
        count, layout = self._dress.counter, self._dress.layout
        max_tokens = self._max_tokens() if budget is None else checked_tokens(budget, "budget")
        ratio = self.config.output_reserve_ratio if budget is None else 0.0
        limit = max_tokens - int(max_tokens * ratio)
        system = clean_text(system_prompt)
        question = clean_text(layout.question(query, self._dress.prompts))
        frame = self._frame(sources, limit, tokens_of(system, question, counter=count))
        frame = replace(frame, system=system, question=question)
        return _Plan(query=query, frame=frame, max_tokens=max_tokens, reserve_ratio=ratio)

    def _plan_block(
        self, query: str, sources: Sequence[ContextSource], budget: int | None
    ) -> _Plan:
        """Divide the budget of a block, which charges the question but does not contain it."""
        if budget is not None:
            room = max(checked_tokens(budget, "budget", least=-(2**53)), 0)
            frame = self._frame(sources, room)
            return _Plan(query=query, frame=frame, max_tokens=room, reserve_ratio=0.0)
        max_tokens, ratio = self._max_tokens(), self.config.output_reserve_ratio
        room = max_tokens - int(max_tokens * ratio)
        asked = self._dress.counter(clean_text(query))
        if asked > room:
            raise ContextWindowExceeded("the question", needed=asked, available=room)
        frame = self._frame(sources, room - asked)
        return _Plan(
            query=query, frame=frame, max_tokens=max_tokens, reserve_ratio=ratio, outside=asked
        )

    def _frame(self, sources: Sequence[ContextSource], limit: int, fixed: int = 0) -> Frame:
        """Charge the headings of all sources next to what is fixed."""
        check_sources(sources, self.config.source_ratios)
        return self._framed(tuple(source.name for source in sources), limit, fixed)

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.config.source_ratios:
                known = ", ".join(self.config.source_ratios)
                raise ConfigurationError(
                    f"source {name!r} has no ratio in source_ratios, which has: {known}"
                )

    def _framed(self, names: tuple[str, ...], limit: int, fixed: int = 0) -> Frame:
        structure = sum(self._dress.heading_tokens(name) for name in names)
        structure += self._dress.counter("\n\n") * max(len(names) - 1, 0)
        return Frame(sources=names, limit=limit, overhead=fixed + structure)

    def _assemble(
        self, plan: _Plan, gathered: Gathered, query_embedding: Embedding | None
    ) -> AssembledContext:
        def fits(name: str, candidate: Candidate) -> bool:
            rendered = self._dress.rendered(candidate, name)
            return self._dress.counter(rendered + "\n") <= plan.frame.region

        offered, split = gathered.candidates, ()
        if self.config.never_empty:
            offered, split = split_strings(gathered.candidates, fits)
        ranking = rank(offered, self.config, question=plan.query, query_embedding=query_embedding)
        items = measure(ranking, self._dress)
        notes = tuple(f"{failure}; it was left out" for failure in gathered.failures) + split
        return self._laid_out(plan, ranking, items, notes)

    def _laid_out(
        self, plan: _Plan, ranking: Ranking, items: Sequence[Item], notes: tuple[str, ...]
    ) -> AssembledContext:
        frame, dress = plan.frame, self._dress
        placement = place(ranking, items, frame, dress, self.config)

        def replay(max_tokens: int) -> AssemblyReport:
            return self._laid_out(plan.within(max_tokens), ranking, items, notes).report

        shortfall = _shortfall(ranking, items, placement, frame)
        if shortfall is not None and self.config.strict:
            raise shortfall
        missing = () if shortfall is None else (f"no passage fits: {shortfall}",)
        sheet = Sheet(
            query=plan.query,
            budget=frame.limit,
            reserve=plan.reserve,
            notes=(*notes, *missing, *self._small_quotas(placement, items, ranking)),
            replay=replay,
        )
        report = account_for(sheet, ranking, items, placement, frame, dress)
        placed = placement.items
        return AssembledContext(
            page=placement.page,
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

    def _max_tokens(self) -> int:
        if self.config.max_tokens is None:
            raise ConfigurationError(
                "max_tokens is not set: give it, use ContextConfig.for_window(...), or pass a "
                "budget where the door takes one"
            )
        return self.config.max_tokens


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
