"""`muntin compact`: fold the older part of conversations into a recap, without a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from muntin.cli.conversations.job import Job, on_conversations
from muntin.cli.terminal.limits import Reserve, limits_of
from muntin.cli.terminal.options import option, tokens_option
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from muntin.cli.conversations.change import Changed
    from muntin.cli.conversations.chat_file import Chat
    from muntin.conversations import ExtractiveSummarizer

__all__ = ("compact",)

_TRIGGER = 2000
"""Tokens above which a conversation is folded where no window is known."""
_SHARE = 4
"""The recap takes at most this part of what the window leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compact:
    """Fold one conversation; a value that pickles, for worker processes."""

    trigger: int | None
    """None folds what is over the budget that the window leaves."""
    keep: int
    summary: int
    question: str | None
    model: str | None
    window: int | None = None
    reserved: str | float | None = None

    def __call__(self, chat: Chat) -> Changed:
        from muntin.cli.conversations.recap import account_of
        from muntin.conversations import ExtractiveSummarizer, HistoryCompactor
        from muntin.counting import count_messages

        limits = limits_of(self.model, window=self.window, reserved=self.reserved)
        counter = limits.counter
        is_over, summary = False, self.summary
        if limits.budget is not None:
            summary = max(1, min(summary, limits.budget // _SHARE))
        if self.trigger is None and limits.budget is not None:
            is_over = count_messages(chat.messages, chat.tools, counter=counter) > limits.budget
        # A role that may come anywhere: Anthropic takes no second system message.
        compactor = HistoryCompactor(
            partial(_extract, ExtractiveSummarizer(counter=counter), self.question),
            keep_recent=self.keep,
            trigger_tokens=self.trigger or limits.budget or _TRIGGER,
            max_summary_tokens=summary,
            token_counter=counter,
            recap_role="system" if _takes_system(chat) else "user",
        )
        done = compactor.fold(chat.messages, is_asked_for=is_over)
        left = ""
        if done.messages is chat.messages:
            left = f"left as it is ({done.outcome.reason.replace('_', ' ')})"
        report = account_of(chat, done, limits)
        if limits.budget is not None and report.used > limits.budget:
            reason = done.outcome.reason.replace("_", " ")
            raise ContextWindowExceeded(
                f"the recap and the newest messages ({reason})",
                needed=report.used,
                available=limits.budget,
            )
        return done.messages, report, left


@on_conversations
def compact(
    job: Job,
    *,
    trigger: Annotated[
        int | None,
        tokens_option(
            "--trigger",
            "-t",
            says="Fold only conversations with more tokens than this. Default: what --reserve "
            "leaves of the window where it is known, else 2000.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        tokens_option(
            "--window",
            "-w",
            says="The model's window: what --reserve leaves of it is the most a result may take. "
            "Default: the window of --model, where it is known.",
        ),
    ] = None,
    reserved: Reserve = None,
    keep: Annotated[
        int,
        option("--keep", "-k", takes="N", min=1, says="Newest messages that stay word for word."),
    ] = 4,
    summary: Annotated[
        int,
        tokens_option(
            "--summary",
            "-s",
            says="Tokens the recap may take; at most a quarter of what a known window leaves.",
        ),
    ] = 1000,
    question: Annotated[
        str | None,
        option(
            "--question",
            "-q",
            takes="TEXT",
            says="Prefer sentences that speak of this (@FILE reads it).",
        ),
    ] = None,
) -> None:
    """Fold the older part of a conversation into one recap, and keep the rest word for word.

    The recap is made of sentences of the conversation itself, those that carry most; no model is
    asked. Unlike `trim` it does not fill a budget: it shortens what is over --trigger. The result
    has the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin compact chat.json --trigger 4k --keep 6 -o short.json
    """  # fmt: skip
    change = _Compact(
        trigger=trigger,
        keep=keep,
        summary=summary,
        question=job.question_of(question),
        model=job.model,
        window=window,
        reserved=reserved,
    )
    limits_of(job.model, window=window, reserved=reserved)  # refused once, not for every file
    job.run("compacting", change)


def _takes_system(chat: Chat) -> bool:
    has_prompt = any(message.beside for message in chat.messages)
    return chat.read.place.kind.name in ("openai", "openai-responses") and not has_prompt


def _extract(
    extract: ExtractiveSummarizer,
    question: str | None,
    text: str,
    instruction: str,
    *,
    max_tokens: int,
) -> str:
    """Summarise with the question in mind."""
    return extract(text, instruction, max_tokens=max_tokens, question=question)
