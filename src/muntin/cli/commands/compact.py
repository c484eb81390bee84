"""`muntin compact`: fold the older part of conversations into a recap, without a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from muntin.cli.conversations.job import Job, on_conversations
from muntin.cli.terminal.options import counter_of, option, tokens_option

if TYPE_CHECKING:
    from muntin.cli.conversations.change import Changed
    from muntin.cli.conversations.chat_file import Chat
    from muntin.conversations import ExtractiveSummarizer

__all__ = ("compact",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compact:
    """Fold one conversation; a value that pickles, for worker processes."""

    trigger: int
    keep: int
    summary: int
    question: str | None
    model: str | None

    def __call__(self, chat: Chat) -> Changed:
        from muntin.cli.conversations.recap import account_of
        from muntin.conversations import ExtractiveSummarizer, HistoryCompactor

        counter = counter_of(self.model)
        # A role that may come anywhere: Anthropic takes no second system message.
        compactor = HistoryCompactor(
            partial(_extract, ExtractiveSummarizer(counter=counter), self.question),
            keep_recent=self.keep,
            trigger_tokens=self.trigger,
            max_summary_tokens=self.summary,
            token_counter=counter,
            recap_role="system" if _takes_system(chat) else "user",
        )
        done = compactor.fold(chat.messages)
        left = ""
        if done.messages is chat.messages:
            left = f"left as it is ({done.outcome.reason.replace('_', ' ')})"
        return done.messages, account_of(chat, done, counter), left


@on_conversations
def compact(
    job: Job,
    *,
    trigger: Annotated[
        int,
        tokens_option(
            "--trigger", "-t", says="Fold only conversations with more tokens than this."
        ),
    ] = 2000,
    keep: Annotated[
        int,
        option("--keep", "-k", takes="N", min=1, says="Newest messages that stay word for word."),
    ] = 4,
    summary: Annotated[
        int, tokens_option("--summary", "-s", says="Tokens the recap may take.")
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
    asked. Unlike `trim` it aims at no budget: it shortens what is over --trigger. The result has
    the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin compact chat.json --trigger 4k --keep 6 -o short.json
    """  # fmt: skip
    change = _Compact(
        trigger=trigger,
        keep=keep,
        summary=summary,
        question=job.question_of(question),
        model=job.model,
    )
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
