"""Whether a pass is due over a history, what it would fold, and what it leaves behind.

Between passes the recap stays byte for byte what it was and only the verbatim tail grows, from
`keep_recent` messages back to the trigger, so a provider's prompt cache keeps what it has and a
long chat costs a model call now and then instead of one per message.

Everything here happens under one lock and makes no request: `compactor` asks for summaries.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from muntin.conversations.asking import Asking, Summary
from muntin.conversations.compaction.composing import Composer
from muntin.conversations.compaction.flight import Flight
from muntin.conversations.compaction.fold import (
    Fold,
    choose_fold,
    covered_end,
    due_places,
    held_places,
    holding,
)
from muntin.conversations.compaction.memory import Memory
from muntin.conversations.compaction.outcome import (
    Compaction,
    CompactionOutcome,
    CompactionPlan,
    CompactionReason,
)
from muntin.conversations.compaction.plan import Found, Pass
from muntin.conversations.compaction.recap import Recap
from muntin.conversations.compaction.recap_text import RecapText
from muntin.conversations.compaction.recapping import Recapped, Recapper
from muntin.conversations.compaction.trail import Refusal
from muntin.conversations.protect import OPEN_SHARE
from muntin.conversations.rules import merged, rules_in
from muntin.conversations.summarize import ExtractiveSummarizer
from muntin.conversations.transcript import Transcriber
from muntin.counting import counts_for
from muntin.messages import bound_places, from_compaction, keep_cache_marks
from muntin.state import is_state_block

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from muntin.conversations.compaction.plan import Rules
    from muntin.conversations.compaction.trail import Entry, Kind, Trail
    from muntin.messages import MessageView

__all__ = ("Passes",)

_SMALL_TRIGGER, _SMALL_TOKENS, _SMALL_SLACK = 16, 32, 12
"""A trigger below the first is a demonstration with messages of a few words. A recap of fewer
tokens than the second may then take so many more than what it replaces."""
_WAITING = 10
"""Calls that wait for their results may take one part in so many of the trigger."""
_PATIENCE = 3
"""Failures in a row after which a pass waits until there is more to fold."""
_MORE = 4
"""After a useless pass there must be more to fold: one part in so many, or the minimum gain."""
_USELESS: frozenset[CompactionReason | None] = frozenset(
    {"summary_echoed", "summary_grew", "summary_no_room", None}
)


class Passes:
    """Decide about passes and remember what they left. Safe between threads."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._counts = counts_for(rules.counter)
        self._memory = Memory(self._counts, self._kind_of, max_recaps=rules.max_conversations)
        self._transcriber = Transcriber(
            rules.prompts, rules.counter, entry_tokens=max(1, rules.window // 4)
        )
        self._form = RecapText(prefix=rules.prefix, prompts=rules.prompts)
        self._composer = Composer(
            form=self._form, counts=self._counts, role=rules.recap_role, model=rules.model
        )
        self._recapper = Recapper(counter=rules.counter, form=self._form)
        self._ratio = getattr(rules.counter, "ratio", None)
        self._lock = threading.Lock()

    def begin(
        self,
        history: Sequence[Any],
        summarizer: object,
        landed: Flight | None,
        *,
        thread: int,
        is_asked_for: bool = False,
    ) -> Compaction | Flight | Pass:
        """Return the result, a pass to wait for, or the pass that is due.

        Args:
            history: The history as it was given.
            summarizer: The summariser that would be asked.
            landed: The pass that was waited for; `None` if there was none.
            thread: Identifier of the caller's thread, which waits for the pass or runs its loop.
            is_asked_for: Whether the caller wants a pass now, whatever the trigger.
        """
        with self._lock:
            found = self._look(history)
            if not is_asked_for:
                if not self._is_over(found, None):
                    return self._as_given(history, found, "under_trigger")
                if found.recap and not self._is_over(found, found.recap):
                    return self._as_it_stands(history, found, "reused")
            trail = found.trail
            fold = self._fold(found, found.due)
            if not fold.places:
                return self._as_it_stands(history, found, "nothing_to_fold")
            least = self.rules.counter(self.rules.prefix)
            gain = 1 if is_asked_for else self.rules.min_gain_tokens
            is_worth_it = is_asked_for or self._is_worth_it(found, fold)
            if not is_worth_it or self._cap(found, fold, gain)[0] <= least:
                return self._as_it_stands(history, found, "too_little_to_fold")
            if trail.flight is not None:
                return trail.flight
            failure = landed.failure_at(trail.chain[fold.covered]) if landed else None
            if failure is not None:  # callers that waited share it, they do not try in turn
                reason = failure.fault or "summary_useless"
                return self._as_it_stands(history, found, reason, failure)
            if not is_asked_for and self._is_refused(trail, fold, summarizer):
                return self._as_it_stands(history, found, "not_retried")
            flight = Flight(trail.chain[fold.covered], thread=thread)
            return self._pass(history, found, fold, summarizer, gain=gain, flight=flight)

    def narrowed(
        self, history: Sequence[Any], made: Pass, plan: CompactionPlan, summarizer: object
    ) -> Pass | None:
        """Return a pass that folds only what a plan folds; `None` if nothing is left to fold."""
        with self._lock:
            found = self._look(history)
            spared = {*made.plan.fold} - {*plan.fold}
            due = found.due | {at - found.lead for at in spared}
            fold = self._fold(found, due)
            if not fold.places:
                return None
            return self._pass(history, found, fold, summarizer, gain=made.gain, flight=made.flight)

    def _fold(self, found: Found, due: set[int]) -> Fold:
        waiting = min(self.rules.trigger_tokens, found.before) // _WAITING
        return choose_fold(found.trail, found.recap, due, waiting=waiting)

    def _is_over(self, found: Found, recap: Recap | None) -> bool:
        """Whether a history, with a recap or without, is over the trigger."""
        tokens = found.before - self._composer.saved(found.trail, recap)
        messages = len(found.messages)
        if recap is not None:
            messages -= covered_end(found.trail, recap)
            messages += 1 + len(held_places(found.trail, recap))
        most = self.rules.trigger_messages
        if most is not None:
            return messages > most
        return tokens > self.rules.trigger_tokens

    def finish(
        self, history: Sequence[Any], made: Pass, recapped: Recapped, summarizer: object
    ) -> Compaction:
        """Remember what a pass came to and return the history as it is now."""
        with self._lock:
            trail, verdict = made.trail, recapped.summary
            if verdict.text:
                trail.failures, trail.refusal = 0, None
                recap = Recap(
                    digest=made.digest.hex(),
                    covered=made.fold.covered,
                    held=made.fold.held,
                    text=verdict.text,
                    rules=recapped.rules,
                    framed=recapped.framed,
                    written=made.spoken,
                )
                self._memory.keep([recap], instead_of=made.recap)
            else:
                trail.failures += 1
                enough = 0
                if verdict.fault in _USELESS or trail.failures >= _PATIENCE:
                    tokens = made.fold.tokens
                    enough = tokens + max(self.rules.min_gain_tokens, tokens // _MORE)
                trail.refusal = Refusal(summarizer, made.history, enough)
            found = self._look(history)
            reason: CompactionReason = verdict.fault or "compacted"
            if not verdict.text:
                reason = verdict.fault or "summary_useless"
                return self._as_it_stands(history, found, reason, verdict)
            chain = found.trail.chain
            if made.fold.covered >= len(chain) or chain[made.fold.covered] != made.digest:
                return self._as_it_stands(history, found, "history_changed", verdict)
            saved = made.before - self._tokens_now(found)
            done = self._as_it_stands(history, found, reason, verdict)
            return replace(
                done,
                outcome=replace(
                    done.outcome,
                    folded=made.folded,
                    interrupted=made.fold.interrupted,
                    effective=saved >= made.gain,
                ),
            )

    @contextmanager
    def flying(self, made: Pass) -> Generator[Flight]:
        """Keep others off the conversation while the pass is made, however that ends."""
        try:
            with made.flight.led_from_here():
                yield made.flight
        finally:
            with self._lock:
                made.trail.flight = None
            made.flight.land()

    def abandoned(self, step: Compaction | Flight | Pass) -> None:
        """End a pass that was planned for a caller who was cancelled meanwhile."""
        if isinstance(step, Pass):
            with self.flying(step):
                pass

    def as_it_stands(self, history: Sequence[Any], reason: CompactionReason) -> Compaction:
        """Return a history with the recap there is, without a pass."""
        with self._lock:
            return self._as_it_stands(history, self._look(history), reason)

    def recaps(self, history: Sequence[Any] | None) -> tuple[Recap, ...]:
        """Return the recap of one history, or all there are."""
        with self._lock:
            if history is None:
                return self._memory.recaps
            recap = self._look(history).recap
            return (recap,) if recap else ()

    def keep(self, recaps: Sequence[Recap]) -> None:
        """Remember recaps made elsewhere."""
        with self._lock:
            self._memory.keep(recaps)

    # --- looking: what follows is called with the lock held -------------------------------------

    def _look(self, history: Sequence[Any]) -> Found:
        ratio = getattr(self.rules.counter, "ratio", None)
        if ratio != self._ratio:  # a usage anchor has learned: what was counted is out of date
            self._memory.forget_counts()
            self._ratio = ratio
        replaced = from_compaction(history)
        messages = list(history if replaced is None else replaced.messages)
        lead, lead_tokens = 0, 0
        for message in messages:
            measured = self._counts.measure(message)
            if measured.view.compacts:  # a provider ignores what is in front of its own summary
                lead += 1
                lead_tokens += measured.tokens - self._counts.framing
                break
            if measured.view.role != "system" or self._kind_of(message, measured.view) != "said":
                break
            lead += 1
            lead_tokens += measured.tokens - self._counts.framing
        trail = self._memory.trail_of(messages[lead:])
        due = due_places(
            trail,
            keep_recent=self.rules.keep_recent,
            keep_tokens=self.rules.keep_tokens,
            open_tokens=int(OPEN_SHARE * min(self.rules.trigger_tokens, trail.totals[-1])),
            pinned=self._pinned(trail),
        )
        recap = self._recap_of(trail, due)
        return Found(messages, lead, trail, due, recap, lead_tokens + trail.totals[-1])

    def _recap_of(self, trail: Trail, due: set[int]) -> Recap | None:
        """Find the recap that covers most, unless what must stay next to it leaves no gain."""
        for recap in self._memory.recaps_of(trail):
            self._memory.serve(trail, recap)
            whole = holding(trail, recap, due)
            if whole is recap or self._composer.saved(trail, whole) > 0:
                return whole
        self._memory.serve(trail, None)
        return None

    def _tokens_now(self, found: Found) -> int:
        return found.before - self._composer.saved(found.trail, found.recap)

    def _pinned(self, trail: Trail) -> list[int]:
        pinned = self.rules.pinned
        if pinned is None:
            return []
        return [at for at in trail.spoken if pinned(trail.messages[at])]

    def _kind_of(self, _message: Any, view: MessageView) -> Kind:
        mark = self.rules.prefix.strip()
        role = self.rules.recap_role
        said_by = ("system", "user") if role == "system" else (role,)
        if mark and view.role in said_by and view.text.startswith(mark):
            # A user can type the prefix, so a user's recap must be a known one.
            text = self._form.read(view.text)[0]
            if (
                view.injected
                or view.role == "system"
                or any(text == known.text.strip() for known in self._memory.recaps)
            ):
                return "recap"
        if view.injected and not view.results and not view.calls:
            return "note"
        if view.role in ("user", "system") and is_state_block(view.text):
            return "note"
        return "said"

    # --- answering ------------------------------------------------------------------------------

    def _as_given(
        self, history: Sequence[Any], found: Found, reason: CompactionReason
    ) -> Compaction:
        outcome = CompactionOutcome(
            reason=reason, tokens_before=found.before, tokens_after=found.before
        )
        return Compaction(messages=_sent(history, found), outcome=outcome)

    def _as_it_stands(
        self,
        history: Sequence[Any],
        found: Found,
        reason: CompactionReason,
        verdict: Summary | None = None,
    ) -> Compaction:
        recap = found.recap
        messages = _sent(history, found)
        unsent = blocks = 0
        if recap is not None:
            messages = self._composer.composed(found, recap)
            is_same = any(
                known.digest == recap.digest and known.held == recap.held
                for known in self._memory.recaps
            )
            lighter = self._composer.without_stale(found, recap, messages, is_same=is_same)
            if lighter is not None:
                messages, unsent, blocks = lighter.messages, lighter.tokens, lighter.blocks
            messages = keep_cache_marks(history, messages)
        outcome = CompactionOutcome(
            reason=reason,
            tokens_before=found.before,
            tokens_after=self._tokens_now(found) - unsent,
            over_trigger=self._is_over(found, recap),
            covered=recap.covered - len(recap.held) if recap else 0,
            model_calls=verdict.calls if verdict else 0,
            extracted=bool(verdict and verdict.fault and verdict.text),
            shortened=verdict.shortened if verdict else False,
            error=verdict.error if verdict else None,
            reasoning_blocks=blocks,
            reasoning_tokens=unsent,
        )
        return Compaction(messages=messages, outcome=outcome)

    # --- planning -------------------------------------------------------------------------------

    def _is_worth_it(self, found: Found, fold: Fold) -> bool:
        """Whether a pass would save enough; bringing one recap up to date has to bring more."""
        if fold.recaps + (found.recap is not None) == 1:
            return fold.tokens - fold.recap_tokens >= self.rules.min_update_tokens
        return fold.tokens >= self.rules.min_gain_tokens

    def _cap(self, found: Found, fold: Fold, gain: int) -> tuple[int, int]:
        """Return the tokens a recap may take, and by how many it may exceed what it replaces."""
        rules, slack = self.rules, 0
        before = fold.tokens + self._composer.note_tokens(found.trail, found.recap)
        if before < _SMALL_TOKENS and rules.trigger_tokens < _SMALL_TRIGGER:
            slack = _SMALL_SLACK
        allowed = before + slack if slack else before - gain
        return max(0, min(rules.max_summary_tokens, allowed)), slack

    def _is_refused(self, trail: Trail, fold: Fold, summarizer: object) -> bool:
        refusal = trail.refusal
        if refusal is None or refusal.summarizer is not summarizer:
            return False
        return trail.chain[-1] == refusal.history or fold.tokens < refusal.enough

    def _pass(
        self,
        history: Sequence[Any],
        found: Found,
        fold: Fold,
        summarizer: object,
        *,
        gain: int,
        flight: Flight,
    ) -> Pass:
        rules, trail = self.rules, found.trail
        digest = trail.chain[fold.covered]
        entries = [trail.entries[at] for at in fold.places]
        cap, slack = self._cap(found, fold, gain)
        asking = Asking(
            counter=rules.counter,
            instruction=rules.instruction,
            merge_instruction=rules.merge_instruction,
            brief_instruction=rules.brief_instruction,
            window=rules.window,
            max_input=rules.max_input,
            max_output=rules.max_output,
            labels=(rules.prefix,),
        )
        earlier = [found.recap.text] if found.recap else []
        earlier += [self._unprefixed(entry.view) for entry in entries if entry.kind == "recap"]
        names: dict[str, str] = {
            call.id: call.name for entry in entries for call in entry.view.calls
        }
        written = self._transcriber.entries(
            [entry.view for entry in entries if entry.kind == "said"], names
        )
        trail.flight = flight
        flight.digest = digest
        return Pass(
            flight=flight,
            trail=trail,
            history=trail.chain[-1],
            digest=digest,
            recap=found.recap,
            fold=fold,
            folded=tuple(entry.view.id or entry.digest.hex() for entry in entries),
            before=self._tokens_now(found),
            gain=gain,
            spoken=len(trail.spoken) if bound_places(trail.messages, rules.model) else 0,
            plan=CompactionPlan(
                messages=_sent(history, found),
                fold=tuple(found.lead + at for at in fold.places),
                tokens=fold.tokens,
                max_summary_tokens=cap,
            ),
            flow=self._recapper.flow(
                asking,
                written,
                previous=self._transcriber.recap("\n".join(earlier)),
                rules=self._standing(found, entries),
                cap=cap,
                slack=slack,
                quotes=isinstance(summarizer, ExtractiveSummarizer),
            ),
        )

    def _standing(self, found: Found, entries: Sequence[Entry]) -> list[str]:
        """List the standing rules of what a pass folds, earlier recaps included."""
        earlier = [found.recap.rules] if found.recap else []
        earlier += [self._form.read(one.view.text)[1] for one in entries if one.kind == "recap"]
        return merged(*earlier, rules_in(one.view for one in entries if one.kind == "said"))

    def _unprefixed(self, view: MessageView) -> str:
        return self._form.read(view.text)[0]


def _sent(history: Sequence[Any], found: Found) -> Sequence[Any]:
    """Return a history, from the provider's own summary on if there is one."""
    return history if len(found.messages) == len(history) else found.messages
