"""Policies that need summaries: one generator, two drivers, and whatever stands in for a model."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from muntin.errors import ConfigurationError, SummaryError
from muntin.runtime.flow import Flow, SummaryRequest, arun, run, summarizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import EntryPoint
    from muntin.messages.message import Message


def request(text: str = "a long text", max_tokens: int = 7) -> SummaryRequest:
    return SummaryRequest(text=text, instruction="Shorter.", max_tokens=max_tokens)


def twice(text: str) -> Flow[list[str]]:
    """Ask two times and return both answers."""
    first = yield request(text)
    second = yield request(first)
    return [first, second]


def guarded() -> Flow[str]:
    """Ask once and name what was raised instead of an answer."""
    try:
        return (yield request())
    except ValueError as error:
        return f"caught {error}"


def one_question() -> Flow[str]:
    return (yield request())


class Chatty:
    """The model of the reference documents: async `chat`, a reply with `.content`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def chat(self, messages: Sequence[Message]) -> SimpleNamespace:
        self.seen = [(m.role, str(m.content)) for m in messages]
        return SimpleNamespace(content="short")


class PlainChatty:
    def chat(self, messages: Sequence[Message]) -> SimpleNamespace:
        return SimpleNamespace(message=SimpleNamespace(content=f"{len(messages)} messages"))


class Completes:
    def complete(self, prompt: str, max_tokens: int) -> str:
        return f"{prompt}|{max_tokens}"


class AsyncCallable:
    async def __call__(self, text: str, instruction: str) -> str:
        await asyncio.sleep(0)
        return text[:1]


async def an_async_function(text: str, instruction: str) -> str:
    await asyncio.sleep(0)
    return text[:2]


def first_six(text: str, instruction: str) -> str:
    return text[:6]


def without_first(text: str, instruction: str) -> str:
    return text[1:]


def told_the_budget(text: str, instruction: str, *, max_tokens: int) -> str:
    return f"{max_tokens}"


def gives(reply: object) -> Callable[[str, str], object]:
    return lambda text, instruction: reply


def makes_a_coroutine(text: str, instruction: str) -> object:
    return an_async_function(text, instruction)


def without_instruction(text: str) -> str:
    return text


def with_a_question(text: str, instruction: str, question: str) -> str:
    return text


KINDS: dict[str, tuple[Any, str]] = {
    "plain callable": (first_six, "a long"),
    "told the budget": (told_the_budget, "7"),
    "async function": (an_async_function, "a "),
    "async callable object": (AsyncCallable(), "a"),
    "plain function returning a coroutine": (makes_a_coroutine, "a "),
    "async chat": (Chatty(), "short"),
    "plain chat": (PlainChatty(), "2 messages"),
    "complete": (Completes(), "Shorter.\n\na long text|7"),
    "reply in blocks": (
        gives([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]),
        "ok",
    ),
    "nothing": (gives(None), ""),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_summariser_answers_at_both_entry_points(
    kind: str, entry_point: EntryPoint
) -> None:
    """Nobody has to rewrite a client because the library is called from the other world."""
    given, answer = KINDS[kind]
    assert entry_point(run, arun, one_question(), given) == answer


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_summariser_answers_inside_a_running_loop(kind: str) -> None:
    """A plain call in a notebook or a web handler must not fail because a loop runs there."""
    given, answer = KINDS[kind]

    async def handler() -> str:
        return run(one_question(), given)

    assert asyncio.run(handler()) == answer
    with_timeout = summarizer_of(given, timeout=30)
    assert asyncio.run(with_timeout.aanswer(request())) == answer
    assert with_timeout.answer(request()) == answer


def test_a_chat_model_gets_the_instruction_as_system_and_the_text_as_user() -> None:
    """Text from a conversation never stands where instructions stand."""
    llm = Chatty()
    run(one_question(), llm)
    assert llm.seen == [("system", "Shorter."), ("user", "a long text")]


def test_a_policy_gets_each_answer_and_returns_its_result(entry_point: EntryPoint) -> None:
    assert entry_point(run, arun, twice("abcd"), without_first) == ["bcd", "cd"]


def test_an_error_of_the_summariser_is_thrown_into_the_policy(entry_point: EntryPoint) -> None:
    """`keep the original when summarising fails` is an ordinary `try` in the policy."""

    def fails(text: str, instruction: str) -> str:
        raise ValueError("no credit")

    assert entry_point(run, arun, guarded(), fails) == "caught no credit"


def test_an_error_the_policy_does_not_name_escapes_as_it_is(entry_point: EntryPoint) -> None:
    """A bug in a summariser is not dressed up as something else."""
    bug = KeyError("mine")

    def fails(text: str, instruction: str) -> str:
        raise bug

    with pytest.raises(KeyError) as caught:
        entry_point(run, arun, guarded(), fails)
    assert caught.value is bug


def test_a_stray_stop_iteration_does_not_end_the_policy_quietly(entry_point: EntryPoint) -> None:
    """PEP 479: `next()` on an empty iterator in a client must not look like a result."""

    def fails(text: str, instruction: str) -> str:
        raise StopIteration("not a result")

    with pytest.raises(RuntimeError):
        entry_point(run, arun, guarded(), fails)


def test_a_reply_without_text_is_a_summary_error(entry_point: EntryPoint) -> None:
    with pytest.raises(SummaryError, match="returned a int, not text"):
        entry_point(run, arun, one_question(), gives(7))


def test_a_summariser_that_hangs_is_given_up(entry_point: EntryPoint) -> None:
    """One stuck provider must not hold a conversation for ever."""
    release = threading.Event()

    def hangs(text: str, instruction: str) -> str:
        release.wait(60)
        return "too late"

    try:
        with pytest.raises(SummaryError, match=r"no answer within 0\.05 s"):
            entry_point(run, arun, one_question(), hangs, timeout=0.05)
    finally:
        release.set()


def test_an_async_summariser_that_hangs_is_cancelled() -> None:
    """Behind the async entry point nothing is left running."""
    ended: list[str] = []

    async def hangs(text: str, instruction: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "too late"

    with pytest.raises(SummaryError):
        asyncio.run(arun(one_question(), hangs, timeout=0.05))
    assert ended == ["cancelled"]


def test_the_summarisers_own_timeout_error_stays_what_it_is(entry_point: EntryPoint) -> None:
    """Ours says `raise timeout`; a network timeout needs another remedy."""

    def fails(text: str, instruction: str) -> str:
        raise TimeoutError("socket")

    with pytest.raises(TimeoutError, match="socket"):
        entry_point(run, arun, one_question(), fails, timeout=30)


def test_cancellation_passes_through_and_closes_the_policy() -> None:
    """A cancelled request must not be taken for a failed summary and go on."""
    closed: list[bool] = []

    def policy() -> Flow[str]:
        try:
            return (yield request())
        except Exception:  # noqa: BLE001 - the point: cancellation is not one
            return "went on"
        finally:
            closed.append(True)

    async def hangs(text: str, instruction: str) -> str:
        await asyncio.sleep(60)
        return ""

    async def main() -> None:
        task = asyncio.create_task(arun(policy(), hangs))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert closed == [True]


def test_a_plain_summariser_does_not_block_the_loop() -> None:
    """Other requests of a server go on while a blocking client waits for its model."""
    release = threading.Event()

    def waits(text: str, instruction: str) -> str:
        assert release.wait(30)
        return "done"

    async def main() -> str:
        async def others() -> None:
            release.set()

        answer, _ = await asyncio.gather(arun(one_question(), waits), others())
        return answer

    assert asyncio.run(main()) == "done"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "NoneType"),
        (7, "int"),
        (without_instruction, "cannot be"),
        (with_a_question, "cannot be"),
    ],
)
def test_what_cannot_summarise_is_refused_when_it_is_given(given: Any, says: str) -> None:
    """Not at the first summary, which may come hours later."""
    with pytest.raises(ConfigurationError, match=says):
        summarizer_of(given)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_timeout_must_be_positive(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        summarizer_of(first_six, timeout=timeout)
