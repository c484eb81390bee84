"""What every test shares: profiles, the offline vocabulary, both entry points, hostile counters.

Time, randomness and the network do not exist here. Sockets are shut in `pyproject.toml`, warnings
are errors, and the quick hypothesis profile draws the same examples on every machine.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings

from counters import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

P = ParamSpec("P")
T = TypeVar("T")

# A busy machine draws slowly, and that is no defect of the code: `too_slow` would make red runs
# out of load.
settings.register_profile(
    "quick",
    max_examples=30,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "full",
    max_examples=300,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("MUNTIN_PROFILE", "quick"))


def _bundled_vocabularies() -> Path | None:
    """Find the vocabularies that llama-index-core carries in its wheel, without importing it."""
    spec = importlib.util.find_spec("llama_index")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "core" / "_static" / "tiktoken_cache"
        if folder.is_dir():
            return folder
    return None


_vocabularies = _bundled_vocabularies()
if _vocabularies is not None:
    # Tests that compare with tiktoken itself must find a vocabulary with the network shut.
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(_vocabularies))


class EntryPoint:
    """One way into the library: through the plain function or through its async twin.

    A test takes the `entry_point` fixture, is written once, and runs through both.
    """

    def __init__(self, name: Literal["sync", "async"]) -> None:
        self.name = name

    def __call__(
        self,
        plain: Callable[P, T],
        twin: Callable[P, Coroutine[object, object, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call `plain`, or run `twin` to its end, with the same arguments."""
        if self.name == "sync":
            return plain(*args, **kwargs)
        return asyncio.run(twin(*args, **kwargs))

    def call(self, owner: object, name: str, /, *args: object, **kwargs: object) -> object:
        """Call `owner.name`, or run `owner.aname`: the naming both ecosystems use."""
        if self.name == "sync":
            return getattr(owner, name)(*args, **kwargs)
        return asyncio.run(getattr(owner, f"a{name}")(*args, **kwargs))


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Lend the test an event loop and close it.

    LlamaIndex asks for the current loop in sync code, gets a new one, and never closes it.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(params=["sync", "async"])
def entry_point(request: pytest.FixtureRequest) -> EntryPoint:
    """Both entry points, one after the other."""
    return EntryPoint(cast("Literal['sync', 'async']", request.param))


@pytest.fixture(params=sorted(COUNTERS))
def counter(request: pytest.FixtureRequest) -> Callable[[str], int]:
    """Every counter a promise has to hold under, the nasty ones included."""
    return COUNTERS[cast("str", request.param)]()
