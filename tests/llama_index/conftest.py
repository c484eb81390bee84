"""What every test of the LlamaIndex adapter needs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_loop(own_loop: None) -> None:
    """Close the loop that LlamaIndex would leave open."""
