"""One assembly after the fetch: the tokens for passages, and which messages stay.

Tools, system prompt and question are charged first. Passages may take their share of the rest and
the tokens that the conversation does not use. The conversation is fitted into what remains.
Passages that were assembled for an earlier question are removed from the conversation: they are
retrieved again. Nothing is fetched here, so the same assembly can be repeated in another budget.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_muntin._shapes import MARK, marked
from langchain_muntin.prompt_value import AssembledPrompt
from muntin.adapting import Fit, drive, mended
from muntin.conversations import NEWEST
from muntin.counting import REPLY_TOKENS
from muntin.errors import ContextWindowExceeded
from muntin.messages import leading_system, newest_user
from muntin.passages import given_among, read_given
from muntin.report import UNRANKED, AssemblyReport, SourceReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.adapting import Mended, Policy
    from muntin.conversations import FittedMessages
    from muntin.counting import MessageCounts
    from muntin.passages import (
        AnyGiven,
        AssembledContext,
        Candidate,
        ContextBuilder,
        Embedding,
        Gathered,
    )
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("Assembly", "Place")

Place = Literal["system", "question"]
"""Where passages go: into a system message behind the leading ones, or into a message of their own
right before the question, so that everything before it stays in the provider's cache."""


_ROUNDS = 3
"""Times passages are assembled anew because the conversation lost what they repeat; the last time
all passages are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Everything one assembly is made of."""

    messages: Sequence[BaseMessage]
    """The conversation, system prompt and question included."""
    question: str
    """What passages were retrieved for."""
    gathered: Gathered | None
    """What was fetched; `None` where there are no sources."""
    budget: int
    """Tokens the request may take."""
    window: int | None
    """Tokens of the window; `None` when unknown."""
    reserve: int
    """Tokens kept free for the answer."""
    tools: Sequence[Any]
    """Tool schemas that travel with the request."""
    tool_tokens: int
    """What they cost."""
    share: float
    """Share of the tokens that are not fixed; passages may always take it."""
    place: Place
    """Where passages are placed."""
    builder: ContextBuilder
    """Assembles the passages."""
    counts: MessageCounts
    """What messages cost."""
    prompts: PromptRegistry | None = None
    """Texts of notes."""
    summarizer: Any = None
    """Asked for a recap of what is left out; `None` asks no model."""
    store: ToolResultStore | None = None
    """Keeps the originals of tool results that are cut."""
    query_embedding: Embedding | None = None
    """Vector of the question."""
    strict: bool = False
    """Whether it is an error if passages were found and none fits."""
    is_trial: bool = False
    """Whether only a report is needed, so that there are no warnings and no errors."""
    recall: bool = True
    """Whether older messages about the question come back word for word."""
    given: AnyGiven = None
    """What the model has already; `None` takes the conversation."""

    def policy(self) -> Policy[AssembledPrompt]:
        """Assemble the passages and fit the conversation around them.

        Raises:
            ContextWindowExceeded: What must stay is over the budget even without passages.
        """
        talk = self._talk()
        room = self._room(talk)
        had = self._given(talk.messages, talk.views)
        rounds = 0
        while True:
            context = self._context(room, had)
            messages = self._placed(talk, context)
            try:
                fitted: FittedMessages[Sequence[BaseMessage]] = yield Fit(
                    messages=messages, arguments=self._fitting(), size=talk.characters
                )
            except ContextWindowExceeded as exceeded:
                if context is None or not context.text:
                    raise
                # What must stay of the conversation needs more than its share: passages get less.
                excess = exceeded.needed - exceeded.available
                room = max(min(room, context.report.used) - excess, 0)
            else:
                kept = self._still_given(had, fitted, messages)
                if kept is not None and rounds < _ROUNDS:
                    rounds += 1
                    had = kept if rounds < _ROUNDS else ()
                    continue
                return self._prompt(fitted, messages, context, (*talk.notes, *self._empty(context)))

    def _empty(self, context: AssembledContext | None) -> tuple[str, ...]:
        """Return a note, and warn, if passages were found and none of them was placed.

        Raises:
            ContextWindowExceeded: None was placed, and `strict` is true.
        """
        if context is None or context.candidates:
            return ()
        offered = [one for one in context.report.decisions if one.reason not in UNRANKED]
        if not offered:
            return ()
        least = min(one.tokens for one in offered)
        if self.strict and not self.is_trial:
            raise ContextWindowExceeded(
                "the shortest passage that was found", needed=least, available=context.report.budget
            )
        note = (
            f"no passage fits: {len(offered)} were found, the shortest takes {least} tokens and "
            f"{context.report.budget} are left for passages"
        )
        if self.is_trial:
            return (note,)
        warnings.warn(
            f"{note}. The model is asked without them; raise the budget, or give strict=True to "
            f"make this an error",
            UserWarning,
            stacklevel=2,
        )
        return (note,)

    def _given(self, messages: Sequence[BaseMessage], views: Sequence[Any]) -> tuple[str, ...]:
        """Return what the model has already: by default the conversation without the question."""
        if self.gathered is None or not any(self.gathered.candidates.values()):
            return ()
        if self.given is not None:
            return read_given(self.given)
        asked = newest_user(views)
        return read_given(
            [
                message
                for at, message in enumerate(messages)
                if at != asked and marked(message) != "context"
            ]
        )

    def _still_given(
        self,
        had: tuple[str, ...],
        fitted: FittedMessages[Sequence[BaseMessage]],
        messages: Sequence[BaseMessage],
    ) -> tuple[str, ...] | None:
        """Return what is left of the conversation if a passage went with it, `None` otherwise."""
        if not had or self.given is not None or fitted.messages is messages:
            return None
        views = [one.view for one in self.counts.measure_all(fitted.messages)]
        kept = self._given(fitted.messages, views)
        found = [one.content for many in self._candidates() for one in many]
        before, now = given_among(found, had), given_among(found, kept)
        return None if before == now else kept

    def _candidates(self) -> Sequence[Sequence[Candidate]]:
        return () if self.gathered is None else tuple(self.gathered.candidates.values())

    def _talk(self) -> Mended:
        """Read the conversation, without what was assembled for earlier questions."""
        if self.gathered is None:  # nothing is retrieved here, so earlier passages stay
            return mended(self.messages, self.counts, self.prompts)
        said = [message for message in self.messages if marked(message) != "context"]
        talk = mended(said, self.counts, self.prompts)
        old = len(self.messages) - len(said)
        if not old:
            return talk
        note = f"{old} messages of passages for earlier questions were left out"
        return replace(talk, notes=(note, *talk.notes))

    def _prompt(
        self,
        fitted: FittedMessages[Sequence[BaseMessage]],
        messages: Sequence[BaseMessage],
        context: AssembledContext | None,
        notes: tuple[str, ...],
    ) -> AssembledPrompt:
        return AssembledPrompt.of(
            fitted.messages,
            account=lambda: self._report(fitted, messages, context, notes),
            context=context,
        )

    def _room(self, talk: Mended) -> int:
        """Return the tokens passages may take: their share, and what messages leave idle."""
        sizes = [one.tokens for one in talk.measured]
        asked = newest_user(talk.views)
        fixed = sum(sizes[: leading_system(talk.views)]) + (0 if asked is None else sizes[asked])
        overhead = self.tool_tokens + REPLY_TOKENS + self.counts.framing
        share = int(self.share * max(self.budget - overhead - fixed, 0))
        return max(self.budget - overhead - sum(sizes), share)

    def _context(self, room: int, had: Sequence[str]) -> AssembledContext | None:
        if self.gathered is None:
            return None
        return self.builder.assemble_block(
            self.question,
            self.gathered,
            budget=room,
            query_embedding=self.query_embedding,
            given=had,
        )

    def _placed(self, talk: Mended, context: AssembledContext | None) -> Sequence[BaseMessage]:
        """Insert the passages; without passages the conversation is returned unchanged."""
        given = talk.messages
        if context is None or not context.text:
            return given
        if self.place == "system":
            at = leading_system(talk.views)
            block: BaseMessage = SystemMessage(context.text, additional_kwargs=_CONTEXT)
        else:
            asked = newest_user(talk.views)
            at = len(given) if asked is None else asked
            block = HumanMessage(context.text, additional_kwargs=_CONTEXT)
        return [*given[:at], block, *given[at:]]

    def _fitting(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "tools": self.tools,
            "summarizer": self.summarizer,
            "store": self.store,
            "prompts": self.prompts,
            "counts": self.counts,
            "question": NEWEST if self.recall else None,
        }

    def _report(
        self,
        fitted: FittedMessages[Sequence[BaseMessage]],
        messages: Sequence[BaseMessage],
        context: AssembledContext | None,
        notes: tuple[str, ...],
    ) -> AssemblyReport:
        """Write one report of the whole window out of those of passages and conversation."""
        talk = fitted.report
        views = [one.view for one in self.counts.measure_all(messages)]
        asked = newest_user(views)
        is_block = [marked(m) == "context" for m in messages]
        leading = range(leading_system(views))
        fixed = {"system": 0, "question": 0, **talk.fixed}
        decisions = list(context.report.decisions if context else ())
        said: list[Any] = []
        for one in talk.decisions:
            if is_block[one.index]:
                continue
            if one.index in leading:
                fixed["system"] += one.kept_tokens
            elif one.index == asked and one.kind == "kept":
                fixed["question"] += one.kept_tokens
            else:
                said.append(replace(one, source=_TALK))
        sources = list(context.report.sources if context else ())
        if said:
            used = sum(one.kept_tokens for one in said)
            sources.append(SourceReport.of(_TALK, said, used=used))
        return replace(
            talk,
            kind="context" if context else "conversation",
            window=self.window,
            reserve=self.reserve,
            fixed={name: tokens for name, tokens in fixed.items() if tokens},
            sources=tuple(sources),
            decisions=(*decisions, *said),
            events=(*(context.report.events if context else ()), *talk.events),
            notes=(*notes, *(context.report.notes if context else ()), *talk.notes),
            replay=self._replay,
        )

    def _replay(self, max_tokens: int) -> AssemblyReport:
        """Do the same in another budget; a larger one takes from the reserve first."""
        tried = replace(self, budget=max_tokens, summarizer=None, is_trial=True)
        if self.window is not None:
            window = max(self.window, max_tokens)
            tried = replace(tried, window=window, reserve=min(self.reserve, window - max_tokens))
        return drive(tried.policy()).report


_CONTEXT = {MARK: "context"}
_TALK = "conversation"
