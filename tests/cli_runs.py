"""What a run of the command line came to, for the tests in `tests/cli`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("Ended", "Muntin")


class Ended(NamedTuple):
    """What a run came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed with `--json`."""
        return json.loads(self.out)


class Muntin(Protocol):
    """Run the command line in this process."""

    def __call__(self, *arguments: str | Path, stdin: str | bytes | None = None) -> Ended: ...
