"""Where the real data and the yardsticks lie, which are too large or too foreign to commit.

The folder is `$MUNTIN_SHARED`, or `shared` beside the checkout; it holds `data/` and `eval/`.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ("SHARED", "data_path", "json_lines", "yardstick")

SHARED = Path(
    os.environ.get("MUNTIN_SHARED") or Path(__file__).resolve().parents[2] / "shared"
).resolve()
"""The folder that holds `data/` and `eval/`; it need not exist."""


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


def yardstick(name: str) -> ModuleType:
    """Import one of the measuring scripts, e.g. `eval_retr`; they import each other by name.

    Raises:
        ModuleNotFoundError: The folder is not here.
    """
    folder = str(SHARED / "eval")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)
