"""`muntin trim`: fit the conversations of a file into a token budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muntin.cli.conversations.job import Job, on_conversations
from muntin.cli.failures import Failure
from muntin.cli.terminal.options import option, tokens_option

if TYPE_CHECKING:
    from muntin.cli.conversations.chats import Chat
    from muntin.cli.forms.dumps import Dumped
    from muntin.counting import NamedCounter
    from muntin.report import AssemblyReport

__all__ = ("trim",)


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
            says="Instead of a budget: the model's window, of which room for the answer is left.",
        ),
    ] = None,
    question: Annotated[
        str | None,
        option(
            "--question",
            "-q",
            takes="TEXT",
            says="Bring older messages that speak of this back word for word (@FILE reads it).",
        ),
    ] = None,
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

    System messages, the newest question and the tool round in flight stay as they are, results
    stay with their calls, and a note keeps the facts of what had to go. No model is asked. The
    result has the same form as FILE and goes to stdout; FILE is replaced only with --write.

    Example: muntin trim chat.json --budget 8k --question "Which order was late?" -o small.json
    """  # fmt: skip
    from muntin.cli.conversations.chats import read_tools
    from muntin.conversations import fit_messages
    from muntin.errors import ContextWindowExceeded

    if budget is None and window is None:
        raise Failure("how far to trim? give --budget (say 8k), or --window")
    if budget is not None and window is not None and budget > window:
        raise Failure(f"the budget of {budget} is over the window of {window}: give one of them")
    job.check_stdin("--tools", tools)
    asked = job.question_of(question)
    schemas = None if tools is None else read_tools(tools)

    def fitted(chat: Chat, counter: NamedCounter) -> tuple[list[Dumped], AssemblyReport]:
        try:
            done = fit_messages(
                chat.pinned(keep),
                budget=budget,
                window=window,
                tools=chat.tools if schemas is None else schemas,
                question=asked,
                counter=counter,
                repair=repair,
            )
        except ContextWindowExceeded as error:
            error.args = (f"{chat.label}: {error}",)
            raise
        return done.messages, done.report

    job.run("trimming", fitted)
