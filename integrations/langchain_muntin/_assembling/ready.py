"""What an assembler reads once, when it is made: window, counter, sources, tools.

Nothing here depends on the question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import SystemMessage

from langchain_muntin._assembling.inputs import Asked, read_input
from langchain_muntin._assembling.policy import Assembly, Place
from langchain_muntin._values.models import ModelFacts, counter_of
from langchain_muntin.sources import source_of, sources_of
from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import Keeper, check_given
from muntin.config import ContextConfig, WindowBudgetConfig
from muntin.counting import count_tools, counts_for
from muntin.errors import ConfigurationError
from muntin.passages import ContextBuilder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import BaseMessage

    from langchain_muntin.assembler import ContextAssembler
    from muntin.counting import MessageCounts, TokenCounter
    from muntin.passages import AnyGiven, ContextSource, Embedding, Gathered
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("Ready",)

_RATIO = 0.3
"""Ratio of a source without one of its own: that of retrieval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What every assembly of one assembler has in common."""

    question_key: str
    history_key: str
    standing: tuple[ContextSource, ...]
    """The sources it is made with."""
    embeddings: Embeddings | None
    front: tuple[BaseMessage, ...]
    """The system prompt, where there is one."""
    budget: int
    """Tokens a request may take."""
    window: int | None
    reserve: int
    tools: tuple[Any, ...]
    tool_tokens: int
    share: float
    place: Place
    recall: bool
    given: AnyGiven
    strict: bool
    config: ContextConfig | None
    counter: TokenCounter
    counts: MessageCounts
    layout: Any
    prompts: PromptRegistry | None
    summarizer: Any
    store: ToolResultStore | None
    builders: dict[tuple[str, ...], ContextBuilder] = field(
        default_factory=dict[tuple[str, ...], ContextBuilder], repr=False
    )
    """Builders by the sources they know, made when first needed."""

    @classmethod
    def of(cls, made: ContextAssembler) -> Ready:
        """Read everything once, and refuse what cannot work.

        Raises:
            ConfigurationError: Neither a window nor a budget is known.
        """
        check_given(made.given)
        facts = ModelFacts.of(made.model)
        division = made.division or WindowBudgetConfig()
        keeper = Keeper(
            model=facts,
            window=made.window,
            budget=made.budget,
            reserve=made.reserve,
            division=division,
            counter=counter_of(made.counter),
        )
        known = keeper.facts()
        counter = known.counts.counter
        tools = facts.schemas(made.tools)
        return cls(
            question_key=made.question_key,
            history_key=made.history_key,
            standing=sources_of(made.sources),
            embeddings=made.embeddings,
            front=(SystemMessage(made.system_prompt),) if made.system_prompt else (),
            budget=known.budget,
            window=known.window,
            reserve=known.reserve,
            tools=tools,
            tool_tokens=count_tools(tools, counter=counter) if tools else 0,
            share=division.rag_ratio,
            place=made.place,
            recall=made.recall,
            given=made.given,
            strict=made.strict,
            config=made.config,
            counter=counter,
            counts=counts_for(counter),
            layout=made.layout,
            prompts=made.prompts,
            summarizer=summarizer_for(made.summarizer),
            store=made.store,
        )

    def read(self, given: object) -> Asked:
        """Read an input."""
        return read_input(given, question_key=self.question_key, history_key=self.history_key)

    def sources_for(self, asked: Asked) -> tuple[ContextSource, ...]:
        """Return the sources of the assembler and those of the input.

        Raises:
            ConfigurationError: One name is given twice.
        """
        if not asked.offered:
            return self.standing
        for source in self.standing:
            if source.name in asked.offered:
                raise ConfigurationError(
                    f"source {source.name!r} is given to the assembler and in the input: rename one"
                )
        offered = (source_of(name, value) for name, value in asked.offered.items())
        return (*self.standing, *offered)

    def assembly(
        self, asked: Asked, gathered: Gathered | None, vector: Embedding | None
    ) -> Assembly:
        """Put together what one assembly is made of."""
        names = () if gathered is None else tuple(sorted(gathered.candidates))
        return Assembly(
            messages=(*self.front, *asked.messages),
            question=asked.question,
            gathered=gathered,
            budget=self.budget,
            window=self.window,
            reserve=self.reserve,
            tools=self.tools,
            tool_tokens=self.tool_tokens,
            share=self.share,
            place=self.place,
            builder=self._builder(names),
            counts=self.counts,
            prompts=self.prompts,
            summarizer=self.summarizer,
            store=self.store,
            query_embedding=vector,
            recall=self.recall,
            given=self.given,
            strict=self.strict,
        )

    def _builder(self, names: tuple[str, ...]) -> ContextBuilder:
        known = self.builders.get(names)
        if known is None:
            known = self.builders[names] = ContextBuilder(
                self._config(names),
                prompts=self.prompts,
                token_counter=self.counter,
                layout=self.layout,
            )
        return known

    def _config(self, names: tuple[str, ...]) -> ContextConfig:
        """Return the configuration; without one, every source has a ratio."""
        if self.config is not None:
            return self.config
        known = ContextConfig().source_ratios
        return ContextConfig(source_ratios={**known, **{n: known.get(n, _RATIO) for n in names}})
