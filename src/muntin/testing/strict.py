"""Refuse what a provider would refuse, for messages of any shape.

`check_request` reads messages through their shapes, so it checks what all wires have in common:
pairs, empty messages, the place of system messages, alternation, thinking and size. The validators
in `muntin.testing.wire` check a request body of one provider completely. It judges one request; it
does not answer it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from muntin.counting import TokenCounter, count_messages, count_tokens
from muntin.errors import ConfigurationError
from muntin.messages import view
from muntin.testing.wire import RequestOverflow, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import MessageView

__all__ = ("Provider", "check_request")

Provider = Literal["openai", "anthropic", "alternating"]
"""A provider with rules of its own. `alternating` is a chat template (Mistral, Gemma, Llama 2) that
demands strict alternation of user and assistant."""


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
        max_output: Tokens requested for the answer; they have to fit the window, too.
        counter: How this provider counts.
        provider: Provider with the rules to apply. All demand every call answered directly behind
            it and by nothing else. `anthropic` also demands a user message first, no system
            message behind it, and no blank text; `alternating` demands that user and assistant
            alternate.
        thinking: Whether extended thinking is on: then the newest unfinished tool round must begin
            with its thinking.

    Raises:
        RequestRefused: With `.code` and `.index` of the message.
        RequestOverflow: It is larger than the window.
        ConfigurationError: The provider is unknown, or no shape reads a message.

    ```python
    from muntin.testing import RequestRefused, check_request

    history = [{"role": "user", "content": "Look."},
               {"role": "tool", "tool_call_id": "c1", "content": "A lake."}]
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
    wants_user = provider != "openai"
    if not views or (wants_user and all(one.role == "system" for one in views)):
        raise RequestRefused("no_messages", None, "messages: at least one message is required")
    for index, (message, one) in enumerate(zip(messages, views, strict=True)):
        _check_content(index, message, one, provider)
    _check_pairs(views)
    if provider == "anthropic":
        _check_order(views)
    if provider == "alternating":
        _check_alternation(views)
    if thinking:
        _check_thinking(views)
    tokens = count_messages(messages, tools, counter=counter)
    if window is not None and tokens + max_output > window:
        raise RequestOverflow(tokens, window, max_output)
    return tokens


def _check_content(index: int, message: Any, one: MessageView, provider: Provider) -> None:
    carries = one.calls or one.results or one.media or one.server or one.unknown or one.reasoning
    if carries or one.signed:
        return
    if provider == "anthropic":
        is_prompt = one.role == "system"  # sent outside of the messages, where it may be empty
        is_empty = not one.text.strip() and not is_prompt
    else:
        # Empty texts are accepted; an absent content is not.
        given: dict[str, Any] = cast("Any", message) if isinstance(message, dict) else {}
        is_empty = "role" in given and given.get("content", "") in (None, [])
    if is_empty:
        raise RequestRefused("empty_content", index, f"a {one.role} message needs content")


def _check_pairs(views: Sequence[MessageView]) -> None:
    """Check that every call is answered right behind its message, and that nothing else is."""
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
    if views[first].role != "user" and not views[first].compacts:
        raise RequestRefused("first_message", first, f"it is {views[first].role}, not user")
    for index, one in enumerate(views[first:], first):
        if one.role == "system":
            raise RequestRefused("system_position", index, "system messages come first")


def _check_alternation(views: Sequence[MessageView]) -> None:
    """Check that user and assistant alternate; tool rounds do not take part."""
    first = 1 if views[0].role == "system" else 0
    expected = "user"
    for index, one in enumerate(views[first:], first):
        if one.role == "tool" or one.calls:
            continue
        if one.role != expected:
            code = "system_position" if one.role == "system" else "alternation"
            raise RequestRefused(code, index, f"conversation roles must alternate: {expected} is "
                                 f"expected, got {one.role}")  # fmt: skip
        expected = "assistant" if expected == "user" else "user"


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
