"""A Runnable that turns a question, a conversation and sources into a prompt that fits.

It takes the output of a prompt template or a dict of retrievers and returns a prompt value for the
model, so chains on both sides stay as they are. `_assembling` decides; this class reads the input,
asks the sources, and reports to the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads annotations
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from langchain_muntin._assembling.inputs import AssemblerInput
from langchain_muntin._assembling.passages import aembedded, embedded
from langchain_muntin._assembling.policy import Place  # noqa: TC001 - pydantic reads annotations
from langchain_muntin._assembling.ready import Ready as _Ready
from langchain_muntin.prompt_value import AssembledPrompt
from muntin.adapting import VectorCache, adrive, construct, drive
from muntin.config import ContextConfig, MuntinConfig, WindowBudgetConfig
from muntin.errors import ConfigurationError
from muntin.passages import Scope, agather, gather
from muntin.runtime import off_loop, size_of

if TYPE_CHECKING:
    from typing import Self

    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        CallbackManagerForChainRun,
    )


__all__ = ("ContextAssembler",)

_ALIASES = {"max_tokens": "budget", "token_counter": "counter", "results": "store"}
EVENT = "muntin.assembly"
"""Name of the custom event that carries the report to callbacks, in its written form."""


class ContextAssembler(RunnableSerializable[AssemblerInput, AssembledPrompt]):
    """Assemble a prompt that fits the model's window, from a question, a history and sources.

    It takes a string, a prompt value, messages, or a dict with `question`, `history` and one key
    per source. Messages keep their roles; passages are selected, deduplicated and laid out in a
    message of their own; the conversation is fitted around them. What comes out always fits.

    Raises:
        ConfigurationError: Neither `window`, nor a model that knows its window, nor `budget` is
            given. An unknown window is never guessed.

    ```python
    from langchain_core.runnables import RunnableLambda
    from langchain_muntin import ContextAssembler
    from langchain_muntin.testing import StrictChatModel

    model = StrictChatModel(window=4000, replies=["80 grams."])
    rules = RunnableLambda(lambda question: ["Letters weigh 80 grams.", "Parcels 500."])
    assembler = ContextAssembler(
        model=model, system_prompt="You answer about postage.", sources={"rag": rules}
    )
    chain = assembler | model
    print(chain.invoke("How much may a letter weigh?").text)
    #> 80 grams.
    print(assembler.invoke("How much may a letter weigh?").messages[1].text)
    #> [Knowledge]
    #> - Letters weigh 80 grams.
    #> - Parcels 500.
    ```
    """

    window: int | None = Field(default=None, strict=True)
    """Tokens of the context window; `None` takes the model's."""
    budget: int | None = Field(default=None, strict=True)
    """Tokens the request may take at most, tools included; `None` takes the window less the
    reserve. The smaller one wins. `max_tokens` is an alias."""
    reserve: int | None = Field(default=None, strict=True)
    """Tokens kept for the answer; `None` takes the model's limit, else `division`."""
    system_prompt: str = ""
    """Always present, in front, charged first."""
    config: ContextConfig | None = None
    """Ratios and options of selection. `None` takes the defaults, and a source without a default
    ratio gets the ratio of retrieval. Its `max_tokens` is not read."""
    division: WindowBudgetConfig | None = None
    """How the window is divided: the reserve, and the share passages may always take. `None` takes
    the defaults."""
    place: Place = "system"
    """Where passages go: behind the leading system messages, or right before the `question`, which
    leaves the conversation before it in the provider's cache."""
    recall: bool = True
    """Whether older messages about the question come back word for word."""
    strict: bool = False
    """Whether it is an error, rather than a warning, if passages were found and none fits."""
    question_key: str = "question"
    """Key of the question in a dict."""
    history_key: str = "history"
    """Key of the conversation in a dict; `messages` is read as well."""
    scope: Scope | None = None
    """Scope in which sources search; a `Scope` under the key `scope` of the input wins."""

    model: Any = Field(default=None, exclude=True, repr=False)
    """The chat model that comes next, alone or with tools bound to it: gives its window, its
    output limit, its tools and its tokenizer. It is not called."""
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
    `None` leaves facts only and asks no model."""
    given: Any = Field(default=None, exclude=True, repr=False)
    """What the model has already, or a function that returns it: passages in it are left out.
    `None` takes the conversation as it is sent, without the question; `()` takes nothing."""
    store: Any = Field(default=None, exclude=True, repr=False)
    """A `muntin.ToolResultStore` for the originals of tool results that are cut; `None` keeps
    none."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    _vectors: VectorCache = PrivateAttr(default_factory=VectorCache)
    _found_out: tuple[tuple[object, ...], _Ready] | None = PrivateAttr(default=None)
    """The values of the fields, and what was computed from them."""

    if not TYPE_CHECKING:  # checkers see the fields' own signature

        def __init__(self, *given: Any, **fields: Any) -> None:
            if given:
                # `prompt | ContextAssembler` calls the class with the output of the prompt.
                raise ConfigurationError(
                    f"ContextAssembler takes keywords only, got {type(given[0]).__name__}: in a "
                    f"chain, write prompt | ContextAssembler(model=model) | model"
                )
            if isinstance(fields.get("budget"), (Mapping, WindowBudgetConfig)):
                fields["division"] = fields.pop("budget")  # its earlier meaning
            construct(super().__init__, type(self), fields, _ALIASES)
            # Not in a validator: there pydantic would wrap our errors into its own.
            _ = self._ready

    @field_validator("config", mode="before")
    @classmethod
    def _read_config(cls, given: Any) -> Any:
        if isinstance(given, MuntinConfig):
            return given.context
        knobs = _knobs(given)
        return given if knobs is None else ContextConfig(**knobs)

    @field_validator("division", mode="before")
    @classmethod
    def _read_division(cls, given: Any) -> Any:
        knobs = _knobs(given)
        return given if knobs is None else WindowBudgetConfig(**knobs)

    @property
    def _ready(self) -> _Ready:
        """What all calls share; computed again after a field was set."""
        fields = tuple(self.__dict__.values())
        if self._found_out is not None:
            before, ready = self._found_out
            if len(before) == len(fields) and all(map(is_, before, fields)):
                return ready
        ready = _Ready.of(self)
        self._found_out = (fields, ready)
        return ready

    # --- entry points -----------------------------------------------------------------------------

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
        ready = self._ready
        asked = ready.read(given)
        sources = ready.sources_for(asked)
        gathered = vector = None
        if sources:
            gathered = gather(sources, asked.question, asked.scope or self.scope)
            gathered, vector = embedded(gathered, asked.question, ready.embeddings, self._vectors)
        prompt = drive(ready.assembly(asked, gathered, vector).policy())
        if run_manager.handlers:
            dispatch_custom_event(EVENT, prompt.report.to_dict(), config=config)
        return prompt

    async def _aassemble(
        self,
        given: AssemblerInput,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AssembledPrompt:
        ready = self._ready
        asked = ready.read(given)
        sources = ready.sources_for(asked)
        gathered = vector = None
        if sources:
            gathered = await agather(sources, asked.question, asked.scope or self.scope)
            gathered, vector = await aembedded(
                gathered, asked.question, ready.embeddings, self._vectors
            )
        size = size_of(asked.messages) + (0 if gathered is None else gathered.characters)
        prompt = await adrive(ready.assembly(asked, gathered, vector).policy(), size=size)
        if run_manager.handlers:
            written = await off_loop(lambda: prompt.report.to_dict(), size=size)
            await adispatch_custom_event(EVENT, written, config=config)
        return prompt

    # --- LangChain's protocol ---------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Copy the fields; everything else is computed again."""
        copied = super().__copy__()
        copied._found_out = None
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return super(ContextAssembler, self.__copy__()).__deepcopy__(memo)

    def __getstate__(self) -> dict[Any, Any]:
        return super(ContextAssembler, self.__copy__()).__getstate__()

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
        for name, value in (("division", self.division), ("scope", self.scope)):
            if value is not None:
                written[name] = asdict(cast("Any", value))
        return written


def _knobs(given: object) -> dict[str, Any] | None:
    return dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else None
