"""Refuse what a provider would refuse, before anything is sent to one.

Providers answer a broken request with an error that ends the run: a tool result nobody asked for, a
call without its result right behind it, an empty message, a system message in the wrong place, more
tokens than the window holds. `check_request` applies the same rules to messages of any shape, so a
double can be as strict as the real thing. It judges one request; it does not answer it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from muntin.counting import TokenCounter, count_messages, count_tokens
from muntin.errors import ConfigurationError, ContextError
from muntin.messages import view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import MessageView

__all__ = ("Provider", "Refusal", "RequestOverflow", "RequestRefused", "check_request")

Provider = Literal["openai", "anthropic"]
"""Whose rules apply where they differ."""

Refusal = Literal[
    "no_messages",
    "empty_content",
    "orphan_result",
    "unanswered_call",
    "repeated_call",
    "system_position",
    "first_message",
    "missing_thinking",
    "overflow",
]
"""Why a request was refused."""


class RequestRefused(ContextError):  # noqa: N818 - says what is the case
    """A provider would answer this request with an error."""

    def __init__(self, code: Refusal, index: int | None, problem: str) -> None:
        self.code: Refusal = code
        self.index = index
        self.problem = problem
        where = "the request" if index is None else f"message {index}"
        super().__init__(f"{where} is refused ({code}): {problem}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.code, self.index, self.problem))


class RequestOverflow(RequestRefused):
    """The request and the room for its answer are larger than the window."""

    def __init__(self, needed: int, window: int, max_output: int) -> None:
        self.needed = needed
        self.window = window
        self.max_output = max_output
        super().__init__(
            "overflow",
            None,
            f"This model's maximum context length is {window} tokens. However, you requested "
            f"{needed + max_output} tokens ({needed} in the messages, {max_output} in the "
            f"completion).",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (RequestOverflow, (self.needed, self.window, self.max_output))


def check_request(
    messages: Sequence[Any],
    *,
    window: int | None = None,
    tools: Sequence[Any] = (),
    max_output: int = 0,
    counter: TokenCounter = count_tokens,
    provider: Provider = "openai",
    thinking: bool = False,
) -> int:
    """Check one request as a provider would, and return its tokens.

    Args:
        messages: What is sent, in any shape, the system message included.
        window: Tokens of the context window; `None` checks no size.
        tools: Tool schemas that are sent along.
        max_output: Tokens asked for the answer; they have to fit the window, too.
        counter: How this provider counts.
        provider: Whose rules apply where they differ. Both want every call answered directly
            behind it and by nothing else; `anthropic` also wants system messages in front only,
            a user message first, and no blank text.
        thinking: Whether extended thinking is on: then the newest tool round in flight must open
            with its thinking.

    Raises:
        RequestRefused: With `.code` and `.index` of the message.
        RequestOverflow: It is larger than the window.
        ConfigurationError: The provider is unknown, or no shape reads a message.

    ```python
    from muntin.testing import RequestRefused, check_request

    history = [{"role": "user", "content": "Look."},
               {"role": "tool", "tool_call_id": "c1", "content": "A door."}]
    try:
        check_request(history, window=8000)
    except RequestRefused as refused:
        print(refused.code, refused.index)
    #> orphan_result 1
    ```
    """
    if provider not in get_args(Provider):
        raise ConfigurationError(f"provider is one of {get_args(Provider)}, not {provider!r}")
    views = [view(message) for message in messages]
    if all(one.role == "system" for one in views):
        raise RequestRefused("no_messages", None, "nobody says anything: there is no user message")
    for index, one in enumerate(views):
        _check_content(index, one, provider)
    _check_pairs(views)
    if provider == "anthropic":
        _check_order(views)
    if thinking:
        _check_thinking(views)
    tokens = count_messages(messages, tools, counter=counter)
    if window is not None and tokens + max_output > window:
        raise RequestOverflow(tokens, window, max_output)
    return tokens


def _check_content(index: int, one: MessageView, provider: Provider) -> None:
    says = bool(one.text.strip() if provider == "anthropic" else one.text)
    carries = one.calls or one.results or one.media or one.server or one.unknown or one.reasoning
    if not says and not carries and not one.signed:
        raise RequestRefused("empty_content", index, f"a {one.role} message needs content")


def _check_pairs(views: Sequence[MessageView]) -> None:
    """Every call is answered right behind the message that makes it, and nothing else is."""
    waiting: dict[str, int] = {}
    for index, one in enumerate(views):
        for result in one.results:
            if result.call_id not in waiting:
                raise RequestRefused(
                    "orphan_result", index, f"no call right before it has the id {result.call_id!r}"
                )
            del waiting[result.call_id]
        goes_on = one.item and index > 0 and (views[index - 1].item or views[index - 1].leads)
        if waiting and not one.results and not goes_on:
            raise _unanswered(waiting, f"message {index} ({one.role}) comes first")
        for call in one.calls:
            if call.id in waiting:
                raise RequestRefused("repeated_call", index, f"the id {call.id!r} is open already")
            waiting[call.id] = index
    if waiting:
        raise _unanswered(waiting, "the conversation ends")


def _unanswered(waiting: dict[str, int], why: str) -> RequestRefused:
    ids = ", ".join(waiting)
    return RequestRefused("unanswered_call", min(waiting.values()), f"{why} before {ids} came back")


def _check_order(views: Sequence[MessageView]) -> None:
    first = next(index for index, one in enumerate(views) if one.role != "system")
    if views[first].role != "user":
        raise RequestRefused("first_message", first, f"it is {views[first].role}, not user")
    for index, one in enumerate(views[first:], first):
        if one.role == "system":
            raise RequestRefused("system_position", index, "system messages stand in front only")


def _check_thinking(views: Sequence[MessageView]) -> None:
    for index in range(len(views) - 1, -1, -1):
        one = views[index]
        if one.role == "assistant":
            if one.calls and not one.signed:
                raise RequestRefused(
                    "missing_thinking", index, "a tool round in flight opens with its thinking"
                )
            return
        if one.role == "user" and not one.results:
            return
