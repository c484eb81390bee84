"""Where the real data lies that is too large to commit.

The folder is `$MUNTIN_SHARED`, or `shared` beside the checkout. A test that wants it is decorated
with `needs_data`, which skips with the reason when the folder is absent.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("SHARED", "data_path", "json_lines", "needs_data")

SHARED = Path(
    os.environ.get("MUNTIN_SHARED") or Path(__file__).resolve().parents[2] / "shared"
).resolve()
"""The folder that holds `data/`; it need not exist."""

needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(),
    reason="the real data is not here: set MUNTIN_SHARED to the folder that holds data/",
)
"""Decorator for tests on real data."""


def data_path(name: str) -> Path:
    """Return the path of one file of the real data."""
    return SHARED / "data" / name


def json_lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a `.jsonl` or `.jsonl.gz` file of the real data."""
    path = data_path(name)
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
