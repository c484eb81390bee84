"""Run both parts and write their tables into `results.json` and the pages of figures.

python -m benchmarks.real_model [--minutes 8] [--questions 200] [--only answers|frameworks]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

from benchmarks import make_figures
from benchmarks._harness import machine, versions
from benchmarks.real_model import answers, frameworks

if TYPE_CHECKING:
    from benchmarks._harness import Table


def main() -> int:
    """Run what the command line asks for; the exit code is 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description="Run a small real model through muntin.")
    parser.add_argument("--minutes", type=float, default=30, help="time for the answers")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", choices=("answers", "frameworks"))
    options = parser.parse_args()
    begun = time.perf_counter()
    results = json.loads(make_figures.RESULTS.read_text(encoding="utf-8"))
    kept = results.get("real_model", {}).get("by_part", {})
    if options.only != "answers":
        kept["frameworks"] = _written(frameworks.run())
    if options.only != "frameworks":
        answers.measure(options.minutes, questions=options.questions)
        kept["answers"] = _written(answers.tables())
    written = [one for part in ("answers", "frameworks") for one in kept.get(part, ())]
    missed = sum(one["missed"] for one in written)
    results["real_model"] = {
        "by_part": kept,
        "tables": [one["table"] for one in written],
        "markdown": "\n".join(one["markdown"] for one in written),
        "missed": missed,
        "seconds": round(time.perf_counter() - begun, 1),
        "versions": versions(),
        "machine": machine(),
    }
    make_figures.RESULTS.write_text(
        json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )
    make_figures.write(results)
    print(results["real_model"]["markdown"])
    return int(missed > 0)


def _written(tables: list[Table]) -> list[dict[str, object]]:
    return [
        {"table": one.to_dict(), "markdown": one.markdown(), "missed": len(one.missed)}
        for one in tables
    ]


if __name__ == "__main__":
    raise SystemExit(main())
