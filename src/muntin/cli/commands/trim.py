"""`muntin trim`: fit conversations into a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muntin.cli.conversations.job import Job, on_conversations
from muntin.cli.failures import Failure
from muntin.cli.terminal.limits import Reserve, limits_of
from muntin.cli.terminal.options import counter_of, option, tokens_option

if TYPE_CHECKING:
    from muntin.cli.conversations.change import Changed
    from muntin.cli.conversations.chat_file import Chat
    from muntin.conversations import Newest

__all__ = ("trim",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trim:
    """Trim one conversation; a value that pickles, for worker processes."""

    budget: int | None
    window: int | None
    reserve: int | None
    question: str | Newest | None
    keep: int
    tools: Sequence[Any] | None
    repair: bool
    model: str | None

    def __call__(self, chat: Chat) -> Changed:
        from muntin.conversations import fit_messages

        done = fit_messages(
            chat.pinned(self.keep),
            budget=self.budget,
            window=self.window,
            reserve=self.reserve,
            tools=chat.tools if self.tools is None else self.tools,
            question=self.question,
            counter=counter_of(self.model),
            repair=self.repair,
        )
        return done.messages, done.report, ""


@on_conversations
def trim(
    job: Job,
    *,
    budget: Annotated[
        int | None,
        tokens_option(
            "--budget",
            "-b",
            says="Tokens the request may take, framing and tool schemas included: 8000 or 8k.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        tokens_option(
            "--window",
            "-w",
            says="Instead of a budget: the model's window, of which --reserve is left. Default: "
            "the window of --model, where it is known.",
        ),
    ] = None,
    reserved: Reserve = None,
    question: Annotated[
        str | None,
        option(
            "--question",
            "-q",
            takes="TEXT",
            says="Bring older messages about this back word for word (@FILE reads it). Default: "
            "the newest user message.",
        ),
    ] = None,
    no_recall: Annotated[
        bool, option("--no-recall", says="Bring no older messages back, whatever the question is.")
    ] = False,
    keep: Annotated[
        int,
        option(
            "--keep",
            "-k",
            takes="N",
            min=0,
            says="Keep the newest N messages as they are, whatever else has to go.",
        ),
    ] = 0,
    tools: Annotated[
        Path | None,
        option(
            "--tools",
            takes="FILE",
            says="JSON list of the tool schemas sent along; they count. Default: `tools` in FILE.",
        ),
    ] = None,
    repair: Annotated[
        bool, option("--repair", says="First mend tool calls without results, and the reverse.")
    ] = False,
) -> None:
    """Fit a conversation into a token budget, losing the least.

    System messages, the open request and the running tool calls stay as they are, results
    stay with their calls, and a note keeps the facts of what had to go. No model is asked. The
    result has the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin trim chat.json --budget 8k --question "Which order was late?" -o small.json
    """  # fmt: skip
    from muntin.cli.conversations.opening import read_tools
    from muntin.conversations import NEWEST

    if no_recall and question is not None:
        raise Failure("--no-recall brings nothing back: leave it or --question out")
    limits = limits_of(job.model, window=window, budget=budget, reserved=reserved)
    if limits.budget is None:
        raise Failure(
            "how far to trim? give --budget (say 8k), --window, or a --model whose window is known"
        )
    job.check_stdin("--tools", tools)
    change = _Trim(
        budget=budget,
        window=limits.window if budget is None else None,
        reserve=limits.reserve if budget is None else None,
        question=None if no_recall else job.question_of(question) or NEWEST,
        keep=keep,
        tools=None if tools is None else read_tools(tools),
        repair=repair,
        model=job.model,
    )
    job.run("trimming", change)
