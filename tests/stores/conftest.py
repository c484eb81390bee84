"""Real servers for the tests of stores, one of each per session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import services

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server on the loopback address."""
    try:
        with services.postgres() as url:
            yield url
    except services.NotInstalledError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a Redis server on the loopback address."""
    try:
        with services.redis() as url:
            yield url
    except services.NotInstalledError as missing:
        pytest.skip(str(missing))
