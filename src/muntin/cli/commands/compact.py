"""`muntin compact`: fold the older part of a conversation into a recap, without a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from muntin.cli.conversations.job import Job, on_conversations
from muntin.cli.terminal.options import option, tokens_option
from muntin.cli.terminal.output import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.cli.conversations.chats import Chat
    from muntin.cli.forms.dumps import Dumped
    from muntin.conversations import ExtractiveSummarizer
    from muntin.counting import NamedCounter
    from muntin.report import AssemblyReport

__all__ = ("compact",)


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
    from muntin.cli.conversations.recap import account_of
    from muntin.conversations import ExtractiveSummarizer, HistoryCompactor

    asked = job.question_of(question)

    def folded(chat: Chat, counter: NamedCounter) -> tuple[Sequence[Dumped], AssemblyReport]:
        # A role that may stand anywhere: Anthropic takes no second system message.
        compactor = HistoryCompactor(
            partial(_extract, ExtractiveSummarizer(counter=counter), asked),
            keep_recent=keep,
            trigger_tokens=trigger,
            max_summary_tokens=summary,
            token_counter=counter,
            recap_role="system" if _takes_system(chat) else "user",
        )
        done = compactor.fold(chat.messages)
        if done.messages is chat.messages and not job.quiet:
            note(f"{chat.label}: left as it is ({done.outcome.reason.replace('_', ' ')})")
        return done.messages, account_of(chat, done, counter)

    job.run("compacting", folded)


def _takes_system(chat: Chat) -> bool:
    return chat.form in ("openai", "openai-responses") and chat.beside is None


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
