"""Write `docs/figures.md`, its charts and the appendix from what `make bench` measured.

python -m benchmarks.make_figures         write the pages
python -m benchmarks.make_figures --check write nothing; exit 1 when a file is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.charts import THEMES, chart, shown
from benchmarks.claims import CLAIMS, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.claims import Claim, Series

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "figures.md"
APPENDIX = ROOT / "docs" / "figures-tables.md"
CHARTS = ROOT / "docs" / "images" / "figures"

TITLES = {
    "bench_build": "Building a context",
    "bench_cli": "Command line",
    "bench_selection": "Selection",
    "bench_fitting": "Fitting conversations",
    "bench_compaction": "Compaction",
    "bench_counting": "Counting",
    "bench_langchain_agents": "LangChain agents",
    "bench_llama_index": "LlamaIndex",
    "bench_scaling": "Scaling",
    "quality_battery": "Conversations that break trimmers",
    "quality_histories": "Recall in long conversations",
    "quality_multihop": "Two-step questions",
    "quality_needs": "What the running task needs",
    "quality_retrieval": "What a budget keeps of the answers",
    "quality_summaries": "Summaries without a model",
    "quality_trajectories": "What agents need next",
    "real_model": "A real model",
}
_OPENING = """# Figures

Each section has one claim, a chart, a table with its unit, and the command that measures it.
The data is in the repository (`benchmarks/data`), so a clone is all that the commands need.
Contenders run in the same process on the same data with the same counter.
[All tables](figures-tables.md) has every row, with the goals that were reached and missed.

The settings of selection and fitting were chosen with both halves of the data on screen.
These are not held-out results."""
_APPENDIX_OPENING = """# All tables

Every table that `make bench` wrote, with goals reached and missed.
Speeds are ratios of two things timed in turns, because seconds are those of one machine.
[Figures](figures.md) explains the main ones."""


def page(results: Mapping[str, Any]) -> str:
    """Return the page of claims."""
    read_claims = [(claim, read(claim, results)) for claim in CLAIMS]
    present = [(claim, series) for claim, series in read_claims if series]
    lines = [_OPENING]
    for claim, series in present:
        lines += ["", *_section(claim, series)]
    lines += ["", "## Where a peer is better", ""]
    lines += _better_peers(present) or ["In no row above."]
    lines += ["", *_missed(results), "", "## Versions", "", *_versions(results)]
    return "\n".join(lines) + "\n"


def appendix(results: Mapping[str, Any]) -> str:
    """Return the page of all tables: the goals in one table, then every part."""
    parts = _ordered(results)
    lines = [_APPENDIX_OPENING, "", "## Goals", ""]
    lines += ["| part | goals reached | missed |", "|---|--:|--:|"]
    for part in parts:
        goals = [goal for table in results[part]["tables"] for goal in _goals(table)]
        reached = sum(bool(goal["reached"]) for goal in goals)
        anchor = _title(part).lower().replace(" ", "-")
        lines.append(f"| [{_title(part)}](#{anchor}) | {reached} | {len(goals) - reached or '–'} |")
    for part in parts:
        lines += ["", f"## {_title(part)}", "", results[part]["markdown"].strip()]
        odd = _other_versions(results, part)
        if odd:
            lines += ["", f"Measured with other versions than the rest: {odd}."]
    return "\n".join(lines) + "\n"


def charts(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by file name."""
    return {
        f"{claim.key}-{theme}.svg": chart(claim, series, theme)
        for claim in CLAIMS
        if (series := read(claim, results))
        for theme in THEMES
    }


def _section(claim: Claim, series: Sequence[Series]) -> Iterator[str]:
    yield f"## {claim.title}"
    yield ""
    yield claim.text
    yield ""
    for theme in THEMES:
        address = f"images/figures/{claim.key}-{theme}.svg#gh-{theme}-mode-only"
        yield f"![{claim.title}, as a chart of the table below]({address})"
    yield ""
    yield f"| {claim.unit} | " + " | ".join(claim.cases) + " |"
    yield "|---|" + "--:|" * len(claim.cases)
    for one in series:
        name = f"**{one.name}**" if one.is_ours else one.name
        yield f"| {name} | " + " | ".join(map(shown, one.values)) + " |"
    yield ""
    part = claim.part.partition("_")[2]
    command = "make real-model" if claim.part == "real_model" else f"make bench PART={part}"
    yield f"`{command}`"


def _better_peers(present: Sequence[tuple[Claim, Sequence[Series]]]) -> list[str]:
    lines: list[str] = []
    for claim, series in present:
        for at, case in enumerate(claim.cases):
            for peer in series:
                own = [
                    one.values[at]
                    for one in series
                    if one.is_ours and one.needs == peer.needs and one.values[at] is not None
                ]
                value = peer.values[at]
                if peer.is_ours or value is None or not own:
                    continue
                best = min(own) if claim.least_is_best else max(own)
                if value < best if claim.least_is_best else value > best:
                    lines.append(
                        f"| {claim.title} | {case} | {peer.name} | {shown(value)} | {shown(best)} |"
                    )
    if not lines:
        return []
    return ["| claim | case | peer | peer's | muntin's |", "|---|---|---|--:|--:|", *lines]


def _missed(results: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for part in _ordered(results):
        for table in results[part]["tables"]:
            for row in table["rows"]:
                lines += [
                    f"* {_title(part)}, {table['title']}, {row[0]}: "
                    f"{shown(goal['value'])}{goal['unit']}, the goal was {_limit(goal)}."
                    for goal in row
                    if isinstance(goal, dict) and not goal.get("reached", True)
                ]
    return ["## Goals that were missed", "", *(lines or ["None."])]


def _limit(goal: Mapping[str, Any]) -> str:
    bound = "at_least" if "at_least" in goal else "at_most"
    return f"{'≥' if bound == 'at_least' else '≤'} {shown(goal[bound])}{goal['unit']}"


def _versions(results: Mapping[str, Any]) -> Iterator[str]:
    machines = {
        f"{one['machine']['processor']}, {one['machine']['cores']} cores"
        for one in results.values()
    }
    yield f"{' and '.join(sorted(machines))}."
    yield ""
    yield "| package | version |"
    yield "|---|---|"
    for name, version in _common(results).items():
        yield f"| {name} | {version} |"


def _common(results: Mapping[str, Any]) -> dict[str, str]:
    """Return for each package the version that most parts were measured with."""
    found: dict[str, list[str]] = {}
    for result in results.values():
        for name, version in result["versions"].items():
            found.setdefault(name, []).append(version)
    return {
        name: max(sorted(set(versions)), key=versions.count)
        for name, versions in sorted(found.items())
    }


def _other_versions(results: Mapping[str, Any], part: str) -> str:
    common = _common(results)
    own = results[part]["versions"]
    return ", ".join(f"{name} {own[name]}" for name in sorted(own) if own[name] != common[name])


def _ordered(results: Mapping[str, Any]) -> list[str]:
    known = [name for name in TITLES if name in results]
    return known + sorted(set(results) - set(known))


def _title(part: str) -> str:
    return TITLES.get(part, part.partition("_")[2].replace("_", " ").capitalize() or part)


def _goals(table: dict[str, Any]) -> list[dict[str, Any]]:
    cells = [cell for row in table["rows"] for cell in row]
    return [cell for cell in cells if isinstance(cell, dict) and "reached" in cell]


def files(results: Mapping[str, Any]) -> dict[Path, str]:
    """Return every file that is written, with its text."""
    drawn = {CHARTS / name: text for name, text in charts(results).items()}
    return {PAGE: page(results), APPENDIX: appendix(results), **drawn}


def write(results: Mapping[str, Any]) -> None:
    """Write the pages and the charts."""
    CHARTS.mkdir(parents=True, exist_ok=True)
    for path, text in files(results).items():
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    if not RESULTS.exists():
        sys.stderr.write("benchmarks/results.json is not there: run `make bench` first\n")
        return 1
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    if "--check" in arguments:
        return int(
            any(
                not path.exists() or path.read_text(encoding="utf-8") != text
                for path, text in files(results).items()
            )
        )
    write(results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
