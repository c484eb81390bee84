"""The real data behind the figures: `benchmarks/data`, or the folder that `MUNTIN_DATA` names.

`data/README.md` lists the files with their sources and licences. The distributions do not contain
them; a clone does.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("DATA", "data_path", "has_data", "json_lines")

DATA = Path(os.environ.get("MUNTIN_DATA") or Path(__file__).resolve().parent / "data").resolve()
"""The folder of the data files."""


def has_data() -> bool:
    """Return whether the data is there; a source distribution has none."""
    return data_path("trajectories.dev.jsonl.gz").exists()


def data_path(name: str) -> Path:
    """Return the path of a data file."""
    return DATA / name


def json_lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a `.jsonl` or `.jsonl.gz` file."""
    path = data_path(name)
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
