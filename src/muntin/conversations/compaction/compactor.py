"""Keep a conversation short: the older part as one recap, the newest messages verbatim.

`compact` and `acompact` share one policy and differ only in how they wait for a model and for each
other. `passes` decides what is folded and when, and what is remembered.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from muntin.conversations.asking import UNKNOWN_WINDOW
from muntin.conversations.compaction.limits import NO_LIMIT, Limit, Threshold, threshold
from muntin.conversations.compaction.outcome import (
    Compaction,
    CompactionOutcome,
    CompactionPlan,
)
from muntin.conversations.compaction.passes import Passes
from muntin.conversations.compaction.plan import Pass, RecapRole, Rules
from muntin.conversations.compaction.recap import read_recaps, write_recaps
from muntin.counting import checked_counter, checked_tokens, model_name
from muntin.errors import ConfigurationError
from muntin.messages import alternating, must_alternate
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import (
    AnySummarizer,
    Summarizer,
    arun,
    off_loop,
    run,
    size_of,
    summarizer_of,
    window_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from muntin.config import CompactionConfig, MuntinConfig
    from muntin.conversations.compaction.flight import Flight
    from muntin.counting import AnyCounter, TokenCounter
    from muntin.prompts import PromptRegistry

__all__ = ("HistoryCompactor",)

MessageT = TypeVar("MessageT")

_LEAST_INPUT_TOKENS = 256
_WORTHWHILE = 10
"""A pass has to save at least this fraction (one in ...) of the trigger."""
_UPDATE = 3
"""A recap is brought up to date with no less than this fraction of the trigger: where what stays is
nearly as large as the trigger, a model would otherwise be asked on every message."""


class HistoryCompactor:
    """Fold the older part of a conversation into a recap, and keep the rest verbatim.

    Safe to share between conversations, threads and tasks. It never changes the messages it is
    given. When a summary is missing, the history comes back; when a summary is wrong, an extraction
    takes its place; `last_outcome` has the reason.

    After a summary that failed, the same history comes back the same, and the same summariser is
    asked again after further messages. After one that was useless, and from the third failure
    in a row on, it is asked again when there is a quarter more to fold.

    Args:
        llm: Writes the recaps: anything that `summarizer_of` takes. None summarises by extraction,
            without a model.
        keep_recent: Newest messages kept verbatim, at least 1. A tool round is never parted.
        trigger_tokens: Tokens of content above which a history is compacted, at least 0.
        trigger: The same in another unit: a share of the window (`0.8`) or a pair such as
            `("messages", 50)`. `None` takes `trigger_tokens`.
        keep: Newest messages kept verbatim as tokens, share or pair, at least one message. `None`
            takes `keep_recent`.
        window: Tokens of the window of the model that reads the result. Needed for shares; a
            summariser of unknown window gets no more either.
        before_compaction: Called with the plan of every compaction before a model is asked; it
            returns the plan, one that folds less, or `None` to leave the history as it is.
        max_summary_tokens: Tokens the recap takes at most, its prefix included, at least 1.
        summary_prompt: The instruction that starts a recap. None takes `compaction.summary`.
        prompts: Texts to write with. None takes the built-in English ones.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`. It decides what reasoning is bound to
            the messages before it; `None` takes all signed reasoning to be bound.
        token_counter: Another name of `counter`.
        recap_role: Role of the recap. Use "user" for providers that take no second system message;
            among Anthropic messages, "system" is written as "user".
        alternate: Whether user and assistant must alternate in what is returned, as chat templates
            of Mistral, Gemma and Llama 2 demand: neighbours of one role are joined. `None` decides
            by the name of `model`.
        timeout: Seconds one summary may take. None waits for ever.
        min_gain_tokens: Tokens a pass has to save. None means a tenth of the trigger for the first
            recap, and a third of it for bringing one up to date.
        max_input_tokens: Tokens a summariser is given at once, its instruction included; more is
            summarised in parts. None means what the model's `context_window` leaves, or 16,000.
        pinned: Returns whether a message must stay, besides messages that are pinned themselves.
        max_conversations: Recaps remembered at once; those not used for longest are forgotten.

    Raises:
        ConfigurationError: A number is out of range, or `llm` cannot summarise.

    ```python
    from muntin import HistoryCompactor, Message

    compactor = HistoryCompactor(
        lambda text, instruction: "They talked about the weather.",
        keep_recent=1,
        trigger_tokens=40,
    )
    history = [
        Message("It is raining again. " * 6, "user"),
        Message("Take a coat. " * 6, "assistant"),
        Message("And tomorrow?", "user"),
    ]
    for message in compactor.compact(history):
        print(message.role, "::", message.content)
    #> system :: [Recap] They talked about the weather.
    #> user :: And tomorrow?
    print(compactor.last_outcome.reason, compactor.last_outcome.covered)
    #> compacted 2
    ```
    """

    def __init__(
        self,
        llm: AnySummarizer | None = None,
        *,
        keep_recent: int = 4,
        trigger_tokens: int = 2000,
        max_summary_tokens: int = 1000,
        trigger: Limit | None = None,
        keep: Limit | None = None,
        window: int | None = None,
        before_compaction: Callable[[CompactionPlan], CompactionPlan | None] | None = None,
        summary_prompt: str | None = None,
        prompts: PromptRegistry | None = None,
        counter: AnyCounter = None,
        model: object = None,
        token_counter: AnyCounter = None,
        recap_role: RecapRole = "system",
        alternate: bool | None = None,
        timeout: float | None = None,
        min_gain_tokens: int | None = None,
        max_input_tokens: int | None = None,
        pinned: Callable[[Any], bool] | None = None,
        max_conversations: int = 1024,
    ) -> None:
        arguments = locals()
        self._made_with = {name: arguments[name] for name in _ARGUMENTS}
        count = checked_counter(counter, model=model, alias={"token_counter": token_counter})
        _at_least(1, keep_recent=keep_recent, max_summary_tokens=max_summary_tokens)
        _at_least(0, trigger_tokens=trigger_tokens)
        _at_least(1, max_conversations=max_conversations)
        if window is not None:
            checked_tokens(window, "window")
        due, kept = Threshold(tokens=trigger_tokens), Threshold(messages=keep_recent)
        if trigger is not None:
            due = threshold(trigger, "trigger", window=window)
        if keep is not None:
            kept = threshold(keep, "keep", window=window)
        if recap_role not in get_args(RecapRole):
            raise ConfigurationError(
                f"recap_role must be system, user or assistant: {recap_role!r}"
            )
        if min_gain_tokens is not None:
            _at_least(1, min_gain_tokens=min_gain_tokens)
        if max_input_tokens is not None:
            _at_least(_LEAST_INPUT_TOKENS, max_input_tokens=max_input_tokens)
        registry = DEFAULT_PROMPTS if prompts is None else prompts
        self._alternates = must_alternate(alternate, model_name(model) or model_name(counter))
        self._last: CompactionOutcome | None = None
        self._hook = before_compaction
        self._timeout = timeout
        self._llm = _extraction(count) if llm is None else llm
        self._summarizer = summarizer_of(self._llm, timeout=timeout)
        instruction = (
            registry.get("compaction.summary") if summary_prompt is None else summary_prompt
        )
        merge_instruction = registry.get("compaction.merge")
        reads, max_output = window_of(llm, otherwise=window or UNKNOWN_WINDOW)
        most = UNKNOWN_WINDOW if max_input_tokens is None else max_input_tokens
        if max_input_tokens is not None:
            reads = max(reads, 2 * (max_input_tokens + max_summary_tokens))
        gain = 1 if due.tokens is None else max(1, due.tokens // _WORTHWHILE)
        update = 1 if due.tokens is None else max(1, due.tokens // _UPDATE)
        self._passes = Passes(
            Rules(
                keep_recent=kept.messages or 1,
                keep_tokens=kept.tokens,
                trigger_tokens=NO_LIMIT if due.tokens is None else due.tokens,
                trigger_messages=due.messages,
                max_summary_tokens=max_summary_tokens,
                min_gain_tokens=min_gain_tokens or gain,
                min_update_tokens=min_gain_tokens or update,
                window=reads,
                max_input=most,
                max_output=max_output,
                recap_role=recap_role,
                instruction=instruction,
                merge_instruction=merge_instruction,
                brief_instruction=registry.get("compaction.brief"),
                prefix=registry.get("compaction.recap_prefix"),
                prompts=registry,
                counter=count,
                model=model_name(model) or model_name(counter),
                pinned=pinned,
                max_conversations=max_conversations,
            )
        )

    def __getstate__(self) -> dict[str, Any]:
        """Keep the arguments and the recaps; a copy remembers the same conversations."""
        return {"arguments": self._made_with, "recaps": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["arguments"])
        self.load(state["recaps"])

    @classmethod
    def from_config(
        cls,
        llm: AnySummarizer | None,
        config: MuntinConfig | CompactionConfig,
        *,
        summary_prompt: str | None = None,
        prompts: PromptRegistry | None = None,
        **more: Any,
    ) -> HistoryCompactor:
        """Make a compactor from a configuration.

        Args:
            llm: Writes recaps; None summarises by extraction.
            config: The whole configuration, or its `compaction` part.
            summary_prompt: As in the constructor.
            prompts: As in the constructor.
            more: Any other keyword of the constructor.
        """
        part = cast("CompactionConfig", getattr(config, "compaction", config))
        return cls(
            llm,
            keep_recent=part.keep_recent,
            trigger_tokens=part.trigger_tokens,
            max_summary_tokens=part.max_summary_tokens,
            summary_prompt=summary_prompt,
            prompts=prompts,
            **more,
        )

    @property
    def keep_recent(self) -> int:
        """Newest messages that stay verbatim, at least."""
        return self._passes.rules.keep_recent

    @property
    def trigger_tokens(self) -> int:
        """Tokens of content above which a history is compacted; `sys.maxsize` without limit."""
        return self._passes.rules.trigger_tokens

    @property
    def max_summary_tokens(self) -> int:
        """Tokens a recap takes at most, its prefix included."""
        return self._passes.rules.max_summary_tokens

    @property
    def last_outcome(self) -> CompactionOutcome | None:
        """What the call that ended last came to; None before the first.

        Where calls run at the same time, use `fold`, whose result carries its own.
        """
        return self._last

    def compact(
        self, history: list[MessageT], *, summarize: AnySummarizer | None = None
    ) -> list[MessageT]:
        """Compact a history.

        Works inside a running loop, too; then it blocks the loop while a model answers.

        Args:
            history: Messages of any shape. Not changed.
            summarize: Writes the recap this time. None takes the summariser of the constructor.

        Returns:
            Leading system messages, the recap and the verbatim rest, in a new list; the given
            object itself when there is nothing to compact or no summary could be had.

        Raises:
            ConfigurationError: A message has no shape, or `summarize` cannot summarise.
        """
        return cast("list[MessageT]", self.fold(history, summarize=summarize).messages)

    async def acompact(
        self, history: list[MessageT], *, asummarize: AnySummarizer | None = None
    ) -> list[MessageT]:
        """Compact a history without blocking the loop; otherwise like `compact`."""
        done = await self.afold(history, asummarize=asummarize)
        return cast("list[MessageT]", done.messages)

    def compact_now(
        self, history: list[MessageT], *, summarize: AnySummarizer | None = None
    ) -> list[MessageT]:
        """Compact a history now, whatever the trigger; otherwise like `compact`.

        Also asks a summariser again that failed on the same history.
        """
        done = self.fold(history, summarize=summarize, is_asked_for=True)
        return cast("list[MessageT]", done.messages)

    async def acompact_now(
        self, history: list[MessageT], *, asummarize: AnySummarizer | None = None
    ) -> list[MessageT]:
        """Compact a history now without blocking the loop; otherwise like `compact_now`."""
        done = await self.afold(history, asummarize=asummarize, is_asked_for=True)
        return cast("list[MessageT]", done.messages)

    def fold(
        self,
        history: Sequence[Any],
        *,
        summarize: AnySummarizer | None = None,
        is_asked_for: bool = False,
    ) -> Compaction:
        """Compact a history and return the account with the messages; see `compact`.

        Args:
            history: As in `compact`.
            summarize: As in `compact`.
            is_asked_for: Whether to compact whatever the trigger, as `compact_now` does.
        """
        given, summarizer = self._asked(summarize)
        landed: Flight | None = None
        while True:
            step = self._passes.begin(
                history, given, landed, thread=get_ident(), is_asked_for=is_asked_for
            )
            if isinstance(step, Compaction):
                return self._accounted(step)
            if isinstance(step, Pass):
                with self._passes.flying(step) as flight:
                    made = self._agreed(history, step, given)
                    if isinstance(made, Compaction):
                        return self._accounted(made)
                    flight.verdict = run(made.flow, summarizer)
                    done = self._passes.finish(history, made, flight.verdict, given)
                return self._accounted(done)
            if step.is_mine() or step.blocks_this_thread():
                return self._accounted(self._passes.as_it_stands(history, "in_flight"))
            step.wait()
            landed = step

    async def afold(
        self,
        history: Sequence[Any],
        *,
        asummarize: AnySummarizer | None = None,
        is_asked_for: bool = False,
    ) -> Compaction:
        """Compact a history without blocking the loop; otherwise like `fold`."""
        given, summarizer = self._asked(asummarize)
        size = size_of(history)
        landed: Flight | None = None
        while True:
            step = await off_loop(
                partial(
                    self._passes.begin,
                    history,
                    given,
                    landed,
                    thread=get_ident(),
                    is_asked_for=is_asked_for,
                ),
                size=size,
                abandoned=self._passes.abandoned,
            )
            if isinstance(step, Compaction):
                return self._accounted(step)
            if isinstance(step, Pass):
                with self._passes.flying(step) as flight:
                    made = self._agreed(history, step, given)
                    if isinstance(made, Compaction):
                        return self._accounted(made)
                    flight.verdict = await arun(made.flow, summarizer, size=size)
                    done = await off_loop(
                        partial(self._passes.finish, history, made, flight.verdict, given),
                        size=size,
                    )
                return self._accounted(done)
            if step.is_mine():
                return self._accounted(self._passes.as_it_stands(history, "in_flight"))
            await step.await_landing()
            landed = step

    def _agreed(self, history: Sequence[Any], made: Pass, given: object) -> Pass | Compaction:
        """Ask the hook about a pass; return what may go on, or the result when nothing may."""
        if self._hook is None:
            return made
        plan = self._hook(made.plan)
        if plan is None:
            return self._passes.as_it_stands(history, "vetoed")
        if not {*plan.fold} <= {*made.plan.fold}:
            raise ConfigurationError(
                "before_compaction may return fewer positions in fold, not others: "
                f"{sorted({*plan.fold} - {*made.plan.fold})} are new"
            )
        if plan.fold == made.plan.fold:
            return made
        narrowed = self._passes.narrowed(history, made, plan, given)
        return narrowed or self._passes.as_it_stands(history, "nothing_to_fold")

    def state(self, history: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return what is remembered, in plain JSON types.

        Args:
            history: The conversation whose recap to return, to be stored next to it. None: all.
        """
        return write_recaps(self._passes.recaps(history))

    def load(self, state: Mapping[str, Any]) -> None:
        """Add what `state` returned, here or elsewhere, to what is remembered; all or nothing.

        Raises:
            StateVersionError: Another version of the library wrote it.
            StateCorruptError: It is not what was written.
        """
        self._passes.keep(read_recaps(state))

    def _asked(self, summarize: AnySummarizer | None) -> tuple[object, Summarizer]:
        if summarize is None:
            return self._llm, self._summarizer
        return summarize, summarizer_of(summarize, timeout=self._timeout)

    def _accounted(self, done: Compaction) -> Compaction:
        self._last = done.outcome
        if self._alternates:
            return replace(done, messages=alternating(done.messages))
        return done


_ARGUMENTS = tuple(inspect.signature(HistoryCompactor).parameters)


def _extraction(counter: TokenCounter) -> AnySummarizer:
    from muntin.conversations.summarize import ExtractiveSummarizer

    return ExtractiveSummarizer(counter=counter)


def _at_least(least: int, **numbers: object) -> None:
    for name, number in numbers.items():
        checked_tokens(number, name, least=least, unit="tokens" if "token" in name else "count")
