"""Sources are asked at once, and none of them can hurt the caller or each other."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from muntin import CallableSource, Candidate, SourceError
from muntin.errors import register_control_flow
from muntin.passages.sources import GivenSource, agather, gather

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import EntryPoint
    from muntin.passages.sources import OnError

_FOUND = [Candidate("Meals are capped at 80.", 0.9)]


def _slow(answered: threading.Event, release: threading.Event) -> CallableSource:
    def fetch(query: str) -> list[Candidate]:
        release.wait(10)
        answered.set()
        return _FOUND

    return CallableSource("slow", fetch)


def test_nobody_minds_an_answer_that_comes_after_the_caller_gave_up() -> None:
    """A request that is cancelled must not leave a traceback from a thread behind."""
    answered, release = threading.Event(), threading.Event()

    async def give_up() -> None:
        asking = asyncio.create_task(agather([_slow(answered, release)], "meals?"))
        while not any(thread.name == "muntin-source" for thread in threading.enumerate()):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        release.set()

    asyncio.run(give_up())
    assert answered.wait(10)
    for thread in threading.enumerate():
        if thread.name == "muntin-source":
            thread.join(10)  # what it raises, pytest turns into a failure of this test


def test_what_stands_behind_a_source_is_asked_through_both_entry_points_and_read_alike() -> None:
    """A client has a sync and an async method and answers in its own words at both."""

    async def later(query: str) -> dict[str, str]:
        return {"text": f"{query} (later)"}

    def read(found: dict[str, str]) -> list[Candidate]:
        return [Candidate(found["text"], 0.5)]

    source = CallableSource("rag", lambda query: {"text": query}, afetch=later, read=read)

    assert [one.content for one in source.fetch("meals?")] == ["meals?"]
    assert [one.content for one in asyncio.run(source.afetch("meals?"))] == ["meals? (later)"]


def test_a_slow_generator_is_run_through_off_the_loop() -> None:
    """A source that yields its candidates one by one must not hold up everybody else."""
    threads: list[threading.Thread] = []

    def drip(query: str) -> Iterator[str]:
        threads.append(threading.current_thread())
        yield query

    found = asyncio.run(CallableSource("rag", drip).afetch("meals?"))

    assert [one.content for one in found] == ["meals?"]
    assert threads != [threading.current_thread()]


def test_candidates_that_are_there_are_a_source() -> None:
    """What was found beforehand goes through the same budget as what has to be fetched."""
    source = GivenSource("rag", _FOUND)
    plain = gather([source, source], "meals?")
    awaited = asyncio.run(agather([source], "meals?"))

    assert [one.content for one in plain.candidates["rag"]] == ["Meals are capped at 80."]
    assert plain.candidates == awaited.candidates


def test_a_failing_source_is_named_through_both_entry_points() -> None:
    """Of four sources it matters which one is down."""

    def broken(query: str) -> list[Candidate]:
        raise ConnectionError("no route")

    sources = [CallableSource("rag", lambda query: _FOUND), CallableSource("memory", broken)]

    with pytest.raises(SourceError, match="'memory'") as plain:
        gather(sources, "meals?")
    with pytest.raises(SourceError, match="'memory'") as awaited:
        asyncio.run(agather(sources, "meals?"))

    assert str(plain.value) == str(awaited.value)
    assert isinstance(plain.value.__cause__, ConnectionError)


class _Paused(Exception):  # noqa: N818 - it is no error
    pass


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("beside", ["nobody", "a failure"])
def test_what_steers_a_framework_is_no_failure_of_the_source(
    entry_point: EntryPoint, on_error: OnError, beside: str
) -> None:
    """A pause that is taken for a failure leaves the source out, and nobody is ever asked."""
    register_control_flow(lambda: (_Paused,))

    def pause(query: str) -> list[str]:
        raise _Paused

    def fail(query: str) -> list[str]:
        raise RuntimeError("no index")

    sources = [CallableSource("rag", pause, on_error=on_error)]
    if beside == "a failure":
        sources.append(CallableSource("web", fail, on_error="skip"))
    with pytest.raises(_Paused):
        entry_point(gather, agather, sources, "meals?")
