"""Run the parts and write `results.md` and `results.json`.

A part is a module `bench_<name>` (how fast) or `quality_<name>` (how good) in this folder with a
function `run() -> list[Table]`. Named parts replace their own results and leave the others alone.

    python -m benchmarks                 all parts
    python -m benchmarks selection       bench_selection and quality_selection
    python -m benchmarks --list
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import TypedDict

from benchmarks import make_figures
from benchmarks._harness import Table, machine, versions

HERE = Path(__file__).resolve().parent
KINDS = ("bench_", "quality_")


class Result(TypedDict):
    """What `results.json` holds for each part."""

    tables: list[dict[str, object]]
    markdown: str
    missed: int
    """How many goals were not reached."""
    seconds: float
    """How long the part took."""
    versions: dict[str, str]
    machine: dict[str, object]


def parts() -> list[str]:
    """Return the names of all parts, quality after speed."""
    return sorted(path.stem for kind in KINDS for path in HERE.glob(f"{kind}*.py"))


def chosen(names: list[str]) -> list[str]:
    """Return the parts that the names on the command line mean."""
    known = parts()
    if not names:
        return known
    wanted: list[str] = []
    for name in names:
        hits = [part for part in known if part == name or part.partition("_")[2] == name]
        if not hits:
            raise SystemExit(f"no part is called {name!r}; there are: {', '.join(known)}")
        wanted += hits
    return wanted


def measure(part: str) -> Result:
    """Run one part and return its results with what they depend on."""
    begun = time.perf_counter()
    tables: list[Table] = importlib.import_module(f"benchmarks.{part}").run()
    taken = time.perf_counter() - begun
    for table in tables:
        print(table.markdown(), flush=True)
    return {
        "tables": [table.to_dict() for table in tables],
        "markdown": "\n".join(table.markdown() for table in tables),
        "missed": sum(len(table.missed) for table in tables),
        "seconds": round(taken, 1),
        "versions": versions(),
        "machine": machine(),
    }


def write(results: dict[str, Result]) -> None:
    """Write both files from the results of all parts, old and new."""
    ordered = {part: results[part] for part in sorted(results)}
    (HERE / "results.json").write_text(
        json.dumps(ordered, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )
    lines = [
        "# Results",
        "",
        "Written by `make bench`; speeds are ratios of two things timed in turns.",
        "",
    ]
    for part, result in ordered.items():
        lines += [f"## {part}", "", result["markdown"], _surroundings(result), ""]
    (HERE / "results.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    make_figures.write(ordered)


def _surroundings(result: Result) -> str:
    host = result["machine"]
    named = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"<sub>{host['processor']}, {host['cores']} cores, {host['system']}; {named}</sub>"


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit code is 1 when a goal was missed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure muntin and its peers.")
    parser.add_argument("parts", nargs="*", help="names of parts; all when none is given")
    parser.add_argument("--list", action="store_true", help="show the parts and stop")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(parts()))
        return 0

    path = HERE / "results.json"
    kept: dict[str, Result] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results = {
        part: result for part, result in kept.items() if part in parts() or part == "real_model"
    }
    missed = 0
    for part in chosen(options.parts):
        print(f"== {part}", flush=True)
        results[part] = measure(part)
        missed += results[part]["missed"]
        write(results)
    print(f"{missed} goals missed" if missed else "every goal reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
