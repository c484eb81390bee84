"""A Runnable that turns a question, a conversation and sources into a prompt that fits.

It stands where a prompt template's output or a dict of retrievers would go to the model, and what
it hands on is a prompt value, so chains on both sides stay as they are. Deciding is done in
`_assembly`; this class reads the input, asks the sources, and reports to the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from langchain_muntin._assembly import Assembly, Place
from langchain_muntin._embedded import aembedded, embedded
from langchain_muntin._given import source_of, standing_sources
from langchain_muntin._inputs import Asked, AssemblerInput, read_input
from langchain_muntin._models import ModelFacts
from langchain_muntin._steps import adrive, drive
from langchain_muntin.prompt_value import AssembledPrompt
from langchain_muntin.summarizer import summarizer_for
from muntin.builder import ContextBuilder
from muntin.candidates import Scope  # noqa: TC001 - pydantic reads annotations
from muntin.config import ContextConfig, MuntinConfig, WindowBudgetConfig
from muntin.errors import ConfigurationError
from muntin.message_tokens import counts_for
from muntin.sources import ContextSource, agather, gather
from muntin.tool_schemas import count_tools

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        CallbackManagerForChainRun,
    )

    from muntin.candidates import Embedding
    from muntin.sources import Gathered
    from muntin.window import Window

__all__ = ("ContextAssembler",)

EVENT = "muntin.assembly"
"""Name of the custom event that carries the report to callbacks, in its written form."""
_RATIO = 0.3
"""Ratio of a source nobody gave one: that of retrieval."""


class ContextAssembler(RunnableSerializable[AssemblerInput, AssembledPrompt]):
    """Assemble a prompt that fits the model's window, from a question, a talk and sources.

    It takes a string, a prompt value, messages, or a dict with `question`, `history` and one key
    per source. Messages keep their roles; passages are selected, deduplicated and laid out in a
    message of their own; the conversation is fitted around them. What comes out always fits.

    Raises:
        ConfigurationError: Neither `window`, nor a model that knows its window, nor `max_tokens` is
            given. An unknown window is never guessed.

    ```python
    from langchain_core.runnables import RunnableLambda
    from langchain_muntin import ContextAssembler
    from langchain_muntin.testing import StrictChatModel

    model = StrictChatModel(window=4000, replies=["80 per day."])
    rules = RunnableLambda(lambda question: ["Meals are capped at 80.", "Hotels at 500."])
    assembler = ContextAssembler(
        model=model, system_prompt="You answer about travel expenses.", sources={"rag": rules}
    )
    chain = assembler | model
    print(chain.invoke("How much may I spend on meals?").text)
    #> 80 per day.
    print(assembler.invoke("How much may I spend on meals?").messages[1].text)
    #> [Knowledge]
    #> - Meals are capped at 80.
    #> - Hotels at 500.
    ```
    """

    window: int | None = None
    """Tokens of the context window; `None` takes the model's."""
    max_tokens: int | None = None
    """Tokens the request may take at most, tools included; `None` takes the window less the output
    reserve. The smaller one wins."""
    system_prompt: str = ""
    """Always present, in front, charged first."""
    config: ContextConfig | None = None
    """Ratios and knobs of selection. `None` takes the defaults, and gives a source that has no
    ratio there the one of retrieval. Its `max_tokens` is not read."""
    budget: WindowBudgetConfig | None = None
    """How the window is divided: the output reserve, and the share passages may always take.
    `None` takes the defaults."""
    place: Place = "system"
    """Where passages stand: behind the leading system messages, or right before the `question`,
    which leaves the conversation before it in the provider's cache."""
    recall: bool = False
    """Whether older messages that speak of the question stay before newer ones that do not."""
    question_key: str = "question"
    """Key of the question in a dict."""
    history_key: str = "history"
    """Key of the conversation in a dict; `messages` is read as well."""
    scope: Scope | None = None
    """For whom sources are asked; a `Scope` under the key `scope` of the input wins."""

    model: Any = Field(default=None, exclude=True, repr=False)
    """The chat model that comes next, alone or with tools bound to it: it tells its window, its
    output cap, its tools and its tokenizer. It is not called."""
    sources: Any = Field(default=None, exclude=True, repr=False)
    """Sources by name: retrievers, runnables, functions or `ContextSource` objects; or a list of
    `ContextSource` objects."""
    tools: Sequence[Any] = Field(default=(), exclude=True, repr=False)
    """Tools that are sent along and not bound to `model`; their schemas are charged."""
    embeddings: Embeddings | None = Field(default=None, exclude=True, repr=False)
    """Embeds passages and question, for relevance and near-duplicates; `None` goes by scores and
    words."""
    counter: Any = Field(default=None, exclude=True, repr=False)
    """Counts tokens: a function of a text, or a model's name; `None` takes the model's own."""
    layout: Any = Field(default=None, exclude=True, repr=False)
    """A `muntin.Layout` for the passages; `None` takes the default one."""
    prompts: Any = Field(default=None, exclude=True, repr=False)
    """A `muntin.PromptRegistry` for headings and notes; `None` takes the built-in one."""
    summarizer: Any = Field(default=None, exclude=True, repr=False)
    """A chat model or any summariser, asked for a recap of what is left out of the conversation;
    `None` leaves facts only and asks nobody."""
    store: Any = Field(default=None, exclude=True, repr=False)
    """A `muntin.ToolResultStore` for the originals of tool results that are cut; `None` keeps
    none."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    _facts: ModelFacts = PrivateAttr()
    _known: Window | None = PrivateAttr(default=None)
    _counter: Any = PrivateAttr(default=None)
    _standing: tuple[ContextSource, ...] = PrivateAttr(default=())
    _asks: Any = PrivateAttr(default=None)
    _division: WindowBudgetConfig = PrivateAttr(default_factory=WindowBudgetConfig)

    @field_validator("config", mode="before")
    @classmethod
    def _read_config(cls, given: Any) -> Any:
        if isinstance(given, MuntinConfig):
            return given.context
        knobs = _knobs(given)
        return given if knobs is None else ContextConfig(**knobs)

    @field_validator("budget", mode="before")
    @classmethod
    def _read_budget(cls, given: Any) -> Any:
        knobs = _knobs(given)
        return given if knobs is None else WindowBudgetConfig(**knobs)

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        """Find out window, counter and sources once, and refuse what cannot work."""
        self._facts = ModelFacts.of(self.model)
        self._known = self._facts.window(self.window)
        if self._known is None and self.max_tokens is None:
            raise ConfigurationError(
                "the context window is unknown: give window=, a model whose profile has "
                "max_input_tokens, or max_tokens="
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigurationError(f"max_tokens must be at least 1, not {self.max_tokens}")
        facts = self._facts if self.counter is None else ModelFacts.of(self.counter)
        self._counter = facts.counter()
        self._standing = standing_sources(self.sources)
        self._asks = summarizer_for(self.summarizer)
        self._division = self.budget or WindowBudgetConfig()
        return self

    # --- the doors -------------------------------------------------------------------------------

    def invoke(
        self,
        input: AssemblerInput,  # noqa: A002 - the name Runnable gives it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AssembledPrompt:
        """Assemble a prompt."""
        return self._call_with_config(self._assemble, input, config, **kwargs)

    async def ainvoke(
        self,
        input: AssemblerInput,  # noqa: A002 - the name Runnable gives it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AssembledPrompt:
        """Assemble a prompt without blocking the loop."""
        return await self._acall_with_config(self._aassemble, input, config, **kwargs)

    def _assemble(
        self,
        given: AssemblerInput,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AssembledPrompt:
        asked = self._asked(given)
        sources = self._sources_for(asked)
        gathered = vector = None
        if sources:
            gathered = gather(sources, asked.question, asked.scope or self.scope)
            if self.embeddings is not None:
                gathered, vector = embedded(gathered, asked.question, self.embeddings)
        prompt = drive(self._assembly(asked, gathered, vector).policy())
        if run_manager.handlers:
            dispatch_custom_event(EVENT, prompt.report.to_dict(), config=config)
        return prompt

    async def _aassemble(
        self,
        given: AssemblerInput,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AssembledPrompt:
        asked = self._asked(given)
        sources = self._sources_for(asked)
        gathered = vector = None
        if sources:
            gathered = await agather(sources, asked.question, asked.scope or self.scope)
            if self.embeddings is not None:
                gathered, vector = await aembedded(gathered, asked.question, self.embeddings)
        prompt = await adrive(self._assembly(asked, gathered, vector).policy())
        if run_manager.handlers:
            await adispatch_custom_event(EVENT, prompt.report.to_dict(), config=config)
        return prompt

    # --- what an assembly is made of -------------------------------------------------------------

    def _asked(self, given: AssemblerInput) -> Asked:
        return read_input(given, question_key=self.question_key, history_key=self.history_key)

    def _sources_for(self, asked: Asked) -> tuple[ContextSource, ...]:
        """Add what the input brings to the sources that stand."""
        offered = tuple(source_of(name, value) for name, value in asked.offered.items())
        names = [source.name for source in (*self._standing, *offered)]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"source {name!r} is given to the assembler and in the input: rename one"
                )
        return (*self._standing, *offered)

    def _assembly(
        self, asked: Asked, gathered: Gathered | None, vector: Embedding | None
    ) -> Assembly:
        tools = self._facts.schemas(self.tools)
        budget, reserve = self._budget()
        front = [SystemMessage(self.system_prompt)] if self.system_prompt else []
        return Assembly(
            messages=[*cast("list[BaseMessage]", front), *asked.messages],
            question=asked.question,
            gathered=gathered,
            budget=budget,
            window=None if self._known is None else self._known.tokens,
            reserve=reserve,
            tools=tools,
            tool_tokens=count_tools(tools, counter=self._counter) if tools else 0,
            share=self._division.rag_ratio,
            place=self.place,
            builder=self._builder(gathered),
            counts=counts_for(self._counter),
            prompts=self.prompts,
            summarizer=self._asks,
            store=self.store,
            query_embedding=vector,
            recall=self.recall,
        )

    def _budget(self) -> tuple[int, int]:
        """Return what the request may take, and what is kept free for the answer."""
        if self._known is None:
            return cast("int", self.max_tokens), 0
        reserve = self._facts.reserve(self._known, self._division)
        room = self._known.tokens - reserve
        return (room if self.max_tokens is None else min(room, self.max_tokens)), reserve

    def _builder(self, gathered: Gathered | None) -> ContextBuilder:
        config = self.config
        if config is None:
            config = ContextConfig()
            names = () if gathered is None else tuple(gathered.candidates)
            if any(name not in config.source_ratios for name in names):
                known = config.source_ratios
                config = ContextConfig(
                    source_ratios={**known, **{n: known.get(n, _RATIO) for n in names}}
                )
        return ContextBuilder(
            config, prompts=self.prompts, token_counter=self._counter, layout=self.layout
        )

    # --- LangChain's ways ------------------------------------------------------------------------

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether it has a written form: numbers and texts do, models and sources do not."""
        return True

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Name the place it is imported from."""
        return ["langchain_muntin", "assembler"]

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """Write configurations as plain data, from which they are read again."""
        from dataclasses import asdict

        written: dict[str, Any] = {}
        if self.config is not None:
            knobs = asdict(cast("Any", self.config))
            written["config"] = {**knobs, "source_ratios": dict(self.config.source_ratios)}
        if self.budget is not None:
            written["budget"] = asdict(cast("Any", self.budget))
        return written


def _knobs(given: object) -> dict[str, Any] | None:
    return dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else None
