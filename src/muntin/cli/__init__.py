"""The command line: `muntin count`, `assemble`, `trim`, `compact`, `explain`, `diff`, `demo`.

Each command is a file of `commands`: it reads files, calls public functions of the library, and
writes the results. Exit codes are in `failures`. typer and rich come with the extra `cli`; without
them `main` writes one line that names the extra.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("main",)

_NEEDED = ("typer", "rich")
_MISSING = (
    'muntin: the command line needs the extra "cli": pip install "muntin[cli]"; '
    'without installing: uvx --from "muntin[cli]" muntin {}'
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: The words after `muntin`; None takes them from the process.
    """
    try:
        from muntin.cli.app import run

        return run(arguments)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _NEEDED:
            raise
        import shlex

        asked = sys.argv[1:] if arguments is None else arguments
        sys.stderr.write(f"{_MISSING.format(shlex.join(asked)).rstrip()}\n")
        return 2
    except KeyboardInterrupt:  # so early that no command has begun
        sys.stderr.write("muntin: interrupted; nothing was left half-written\n")
        return 130
