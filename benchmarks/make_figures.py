"""Write `docs/figures.md` from what `make bench` measured: every figure, reached or missed.

python -m benchmarks.make_figures         write the page
python -m benchmarks.make_figures --check write nothing; exit 1 when the page is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "figures.md"

TITLES = {
    "bench_build": "Building a context",
    "bench_selection": "Selection",
    "bench_fitting": "Fitting conversations",
    "bench_compaction": "Compaction",
    "bench_counting": "Counting",
    "bench_llama_index": "LlamaIndex",
    "quality_battery": "Conversations that break trimmers",
    "quality_histories": "Recall in long conversations",
    "quality_retrieval": "What a budget keeps of the answers",
    "quality_summaries": "Summaries without a model",
    "quality_trajectories": "What agents need next",
}
_OPENING = """# Figures

What `make bench` measured, against what people use today, in the same run and on the same data.
Speeds are ratios of two things timed in turns, because seconds are those of one machine;
a goal that was missed says so.
`make bench` writes this page, and so does `python -m benchmarks.make_figures`.
"""


def page(results: Mapping[str, Any]) -> str:
    """Return the page: the goals in one table, then every part with its machine and versions."""
    known = [name for name in TITLES if name in results]
    parts = known + sorted(set(results) - set(known))
    lines = [_OPENING, "## At a glance", "", "| part | goals reached | missed |", "|---|--:|--:|"]
    for part in parts:
        goals = [goal for table in results[part]["tables"] for goal in _goals(table)]
        reached = sum(bool(goal["reached"]) for goal in goals)
        title = _title(part)
        anchor = title.lower().replace(" ", "-")
        lines.append(f"| [{title}](#{anchor}) | {reached} | {len(goals) - reached or '–'} |")
    for part in parts:
        body = results[part]["markdown"].strip()
        lines += ["", f"## {_title(part)}", "", body, "", _surroundings(results[part])]
    return "\n".join(lines) + "\n"


def _title(part: str) -> str:
    return TITLES.get(part, part.partition("_")[2].replace("_", " ").capitalize() or part)


def _goals(table: dict[str, Any]) -> list[dict[str, Any]]:
    cells = [cell for row in table["rows"] for cell in row]
    return [cell for cell in cells if isinstance(cell, dict) and "reached" in cell]


def _surroundings(result: dict[str, Any]) -> str:
    machine, versions = result["machine"], result["versions"]
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"<small>{machine['processor']}, {machine['cores']} cores; {names}.</small>"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if not RESULTS.exists():
        sys.stderr.write("benchmarks/results.json is not there: run `make bench` first\n")
        return 1
    text = page(json.loads(RESULTS.read_text(encoding="utf-8")))
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
