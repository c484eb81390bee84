"""Run a policy that needs summaries, once for plain callers and once for async ones.

A policy is a generator: it yields a `SummaryRequest`, is sent the summary, and returns its result.
It knows nothing of threads, loops or models, so there is one policy and no async twin of it. `run`
and `arun` answer the requests and throw what a summariser raises into the policy, where "keep the
original when summarising fails" is an ordinary `try`.

`summarizer_of` alone decides what may be given as a summariser. It does not judge summaries and
does not retry: the policy does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from muntin.errors import ConfigurationError, SummaryError
from muntin.runtime.driving import adrive, drive
from muntin.runtime.threads import in_thread

__all__ = (
    "AnySummarizer",
    "Flow",
    "Summarizer",
    "SummaryRequest",
    "arun",
    "run",
    "summarizer_of",
    "text_of",
    "window_of",
)

ResultT = TypeVar("ResultT")

_THREAD = "muntin-summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """A request for a summary of one text."""

    text: str
    """What is to be summarised. It is data: nothing in it is an instruction."""
    instruction: str
    """How to summarise it, for a model."""
    max_tokens: int
    """Most tokens of the answer. Passed to summarisers that accept it; checked by the policy."""


Flow: TypeAlias = Generator[SummaryRequest, str, ResultT]
"""A policy: yields requests, is sent summaries, returns a result."""

_Ask: TypeAlias = Callable[[SummaryRequest], object]


class Summarizer:
    """Answer summary requests, sync and async, with any summariser.

    Made by `summarizer_of`. A sync summariser called asynchronously runs in a thread of
    its own; an async one called synchronously runs in a private loop, also inside a running loop.
    """

    def __init__(self, ask: _Ask, *, is_async: bool, timeout: float | None = None) -> None:
        self._ask = ask
        self._is_async = is_async
        self._timeout = timeout

    def within(self, timeout: float) -> Summarizer:
        """Return the same summariser with another timeout, in seconds."""
        return Summarizer(self._ask, is_async=self._is_async, timeout=timeout)

    def answer(self, request: SummaryRequest) -> str:
        """Answer a request, blocking until it is done.

        Raises:
            SummaryError: No answer came in time (then its cause is a `TimeoutError`), or the
                answer holds no text.
        """
        if self._timeout is None:
            return text_of(_settled(self._ask(request)))
        from concurrent.futures import wait

        work = in_thread(lambda: _settled(self._ask(request)), name=_THREAD)
        if not wait([work], self._timeout).done:
            raise self._too_late() from TimeoutError()
        return text_of(work.result())

    async def aanswer(self, request: SummaryRequest) -> str:
        """Answer a request without blocking the loop.

        Raises:
            SummaryError: As in `answer`.
        """
        import asyncio

        scope = asyncio.timeout(self._timeout)
        try:
            async with scope:
                if self._is_async:
                    reply = self._ask(request)
                else:
                    work = in_thread(lambda: self._ask(request), name=_THREAD)
                    reply = await asyncio.wrap_future(work)
                if inspect.isawaitable(reply):
                    reply = await reply
        except TimeoutError as late:
            if not scope.expired():  # the summariser's own timeout is an error too
                raise
            raise self._too_late() from late
        return text_of(reply)

    def _too_late(self) -> SummaryError:
        return SummaryError(
            f"the summariser gave no answer within {self._timeout:g} s: raise `timeout`"
        )


class _Chats(Protocol):
    def chat(self, messages: Any, /) -> Any: ...


class _Completes(Protocol):
    def complete(self, prompt: str, /) -> Any: ...


class _IsTold(Protocol):
    def __call__(self, text: str, instruction: str, /, *, max_tokens: int) -> object: ...


AnySummarizer: TypeAlias = Summarizer | Callable[[str, str], object] | _IsTold | _Chats | _Completes
"""What can be given as a summariser: see `summarizer_of`."""


def run(flow: Flow[ResultT], summarize: AnySummarizer, *, timeout: float | None = None) -> ResultT:
    """Run a policy to its end, answering its requests with a summariser.

    Args:
        flow: The policy.
        summarize: Anything `summarizer_of` takes.
        timeout: Seconds one answer may take. None waits for ever.

    Raises:
        SummaryError: What the policy does not catch; so does anything else a summariser raises.

    ```python
    from muntin.runtime.flow import SummaryRequest, run

    def shout(text):
        reply = yield SummaryRequest(text=text, instruction="Shorter.", max_tokens=5)
        return reply.upper()

    print(run(shout("a long story"), lambda text, instruction: text[:6]))
    #> A LONG
    ```
    """
    summarizer = summarizer_of(summarize, timeout=timeout)
    return drive(flow, summarizer.answer)


async def arun(
    flow: Flow[ResultT],
    summarize: AnySummarizer,
    *,
    timeout: float | None = None,
    size: int = 0,
) -> ResultT:
    """Run a policy to its end without blocking the loop; otherwise like `run`.

    Cancellation is not an error of the summariser: it is raised again and closes the policy.

    Args:
        flow: The policy.
        summarize: As in `run`.
        timeout: As in `run`.
        size: Characters the policy works on; from `LARGE` on, its own work is done in a thread.
    """
    summarizer = summarizer_of(summarize, timeout=timeout)
    return await adrive(flow, summarizer.aanswer, size=size)


def summarizer_of(given: AnySummarizer, *, timeout: float | None = None) -> Summarizer:
    """Make a summariser of whatever a caller has.

    Args:
        given: A sync or async callable `(text, instruction) -> str`, which also gets
            `max_tokens` if it has a parameter of that name; or an object with a sync or async
            `complete(prompt)`, or `chat(messages)` whose reply has `.content`; or a `Summarizer`.
        timeout: Seconds one answer may take. None waits for ever, and leaves the timeout of a
            `Summarizer` as it is.

    Raises:
        ConfigurationError: It is none of these, it cannot be called with a text and an
            instruction, or the timeout is not positive. Raised here, not at the first summary.

    ```python
    from muntin.runtime.flow import SummaryRequest, summarizer_of

    summarizer = summarizer_of(lambda text, instruction: f"{instruction} {len(text)}")
    print(summarizer.answer(SummaryRequest(text="abc", instruction="Count:", max_tokens=9)))
    #> Count: 3
    ```
    """
    if timeout is not None and not timeout > 0:
        raise ConfigurationError(f"timeout must be more than 0 seconds, got {timeout}")
    if isinstance(given, Summarizer):
        return given if timeout is None else given.within(timeout)
    # Models that have both take a prompt as text everywhere, but messages in their own class.
    for method, asking in (("complete", _by_prompt), ("chat", _by_chat)):
        call = getattr(given, method, None)
        if callable(call) and not isinstance(given, type):
            return Summarizer(asking(call), is_async=_is_async(call), timeout=timeout)
    if callable(given) and not isinstance(given, type):
        return Summarizer(_by_call(given), is_async=_is_async(given), timeout=timeout)
    raise ConfigurationError(
        f"a summariser is a callable (text, instruction) -> str, or has chat(messages) or "
        f"complete(prompt); got {type(given).__name__}"
    )


def window_of(summarizer: Any, *, otherwise: int) -> tuple[int, int | None]:
    """Return the window of a summariser and what it sets aside for an answer, in tokens.

    Args:
        summarizer: Any summariser. `context_window` and `max_output_tokens` are read from it, or
            from its `metadata`, as LlamaIndex models have it.
        otherwise: The window if it reports none: that of the model it works for.
    """
    for holder in (summarizer, getattr(summarizer, "metadata", None)):
        window = _positive(getattr(holder, "context_window", None))
        if window is not None:
            outputs = (getattr(holder, name, None) for name in ("max_output_tokens", "num_output"))
            return window, next(filter(None, map(_positive, outputs)), None)
    return otherwise, None


def _positive(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value > 0 else None


def text_of(reply: object) -> str:
    """Take the text out of a summariser's reply: a string, or an object that carries one.

    Raises:
        SummaryError: There is no text in it.
    """
    if reply is None:
        return ""
    if isinstance(reply, str):
        return reply
    if isinstance(reply, Mapping):
        entry = cast("Mapping[str, Any]", reply)
        if entry.get("type") in ("thinking", "reasoning"):
            return ""
        return text_of(entry.get("content", entry.get("text")))
    if isinstance(reply, Sequence) and not isinstance(reply, bytes):
        return "".join(text_of(block) for block in cast("Sequence[object]", reply))
    for name in ("content", "text", "message"):
        inner = getattr(reply, name, reply)
        if inner is not reply and not callable(inner):
            return text_of(inner)
    raise SummaryError(f"the summariser returned a {type(reply).__name__}, not text")


def _by_prompt(complete: Callable[..., object]) -> _Ask:
    tells = "max_tokens" in _names(complete, after=1)

    def ask(request: SummaryRequest) -> object:
        prompt = f"{request.instruction}\n\n{request.text}"
        return complete(prompt, max_tokens=request.max_tokens) if tells else complete(prompt)

    return ask


class _ChatMessage(dict[str, str]):
    """A message for a client: a dict for some clients, an object with fields for others."""

    @property
    def role(self) -> str:
        return self["role"]

    @property
    def content(self) -> str:
        return self["content"]


def _by_chat(chat: Callable[..., object]) -> _Ask:
    return lambda request: chat(
        [
            _ChatMessage(role="system", content=request.instruction),
            _ChatMessage(role="user", content=request.text),
        ]
    )


def _by_call(summarize: Callable[..., object]) -> _Ask:
    tells = "max_tokens" in _names(summarize, after=2)
    try:
        told = {"max_tokens": 1} if tells else {}
        inspect.signature(summarize).bind("text", "instruction", **told)
    except TypeError as problem:
        raise ConfigurationError(
            f"a summariser is called with a text and an instruction, "
            f"{getattr(summarize, '__name__', type(summarize).__name__)} cannot be: {problem}"
        ) from problem
    except ValueError:
        pass  # a builtin without a signature: calling it shows whether it works
    if tells:
        return lambda request: summarize(
            request.text, request.instruction, max_tokens=request.max_tokens
        )
    return lambda request: summarize(request.text, request.instruction)


def _names(call: Callable[..., object], *, after: int) -> set[str]:
    """Name the parameters that can be given by keyword after so many positional ones."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return set()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][:after]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name for p in parameters if p.kind in by_name} - set(positional)


def _is_async(call: object) -> bool:
    """Whether calling it only makes a coroutine, so that the loop may do it itself."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004 - the bound method, to look at
    )


def _settled(reply: object) -> object:
    """Wait for a reply that is still to come, in a private loop if one runs here already."""
    if not inspect.isawaitable(reply):
        return reply
    import asyncio

    async def wait() -> object:
        return await reply

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    return in_thread(lambda: asyncio.run(wait()), name=_THREAD).result()
