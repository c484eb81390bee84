"""Write the table of provider clients: at how many of 24 budgets a fitted conversation is accepted.

Every conversation of `tests/wire` is fitted at 24 budgets and sent through the real client package
to a server on the loopback address that refuses what the provider refuses.

    python benchmarks/wire_clients.py            print the table
    python benchmarks/wire_clients.py --write    put it into docs/reference/providers.md
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "providers.md"
START, END = "<!-- clients: start -->", "<!-- clients: end -->"


def table() -> str:
    """Return the table in Markdown."""
    sys.path.insert(0, str(ROOT / "tests"))
    import conftest  # noqa: F401 - names the folder of the vocabularies
    from wire.clients import CLIENTS, outcomes
    from wire.conversations import CONVERSATIONS

    names = list(CONVERSATIONS)
    lines = [
        f"| client | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for client in CLIENTS:
        cells: list[str] = []
        for name in names:
            found = outcomes(client, name)
            cells.append(f"{found.accepted} + {found.errors} / {len(found.refused)}")
        lines.append(f"| {client} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table into the docs")
    write = parser.parse_args().write
    warnings.simplefilter("ignore")
    made = table()
    if not write:
        print(made)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(START)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
