"""Keep processor-heavy work off the event loop, above a size below which a thread costs more."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from muntin.runtime import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.passages import Gathered

__all__ = ("LARGE", "characters_of", "off_loop")

ResultT = TypeVar("ResultT")

LARGE = 20_000
"""Characters from which work is done in a thread: about a millisecond of counting."""


async def off_loop(work: Callable[[], ResultT], *, size: int) -> ResultT:
    """Do work without blocking the event loop.

    Args:
        work: What to do. It runs with the context variables of the caller.
        size: Characters it reads; below `LARGE` it runs at once, on the loop.
    """
    if size < LARGE:
        return work()
    import asyncio

    return await asyncio.wrap_future(in_thread(work, name="muntin-work"))


def characters_of(gathered: Gathered) -> int:
    """Count the characters of gathered passages."""
    return sum(
        len(candidate.content)
        for candidates in gathered.candidates.values()
        for candidate in candidates
    )
