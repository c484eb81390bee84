"""Are the strings still there that the compression scenarios of Gemini CLI ask for?

A function under test takes a history of Gemini contents, a budget and the question (None if it is
not known), and returns a history. Strings that are nowhere in the history are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks._data import json_lines
from benchmarks.measures.tokens import count

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("kept",)

_LEAST_BUDGET = 60


def _flat(history: Any) -> str:
    return json.dumps(history, ensure_ascii=False).lower()


def kept(
    fit: Callable[[list[dict[str, Any]], int, str | None], list[dict[str, Any]]],
    share: float,
    *,
    known: bool,
) -> tuple[float, int]:
    """Return the share of strings kept at a share of the size, and the number of strings."""
    found: list[bool] = []
    for record in json_lines("gemini_compression.dev.jsonl.gz"):
        history = _flat(record["history"])
        budget = max(int(count(history) * share), _LEAST_BUDGET)
        for question in record["questions"]:
            wanted = question["expected"].lower()
            if wanted in history:
                asked = question["prompt"] if known else None
                try:
                    found.append(wanted in _flat(fit(record["history"], budget, asked)))
                except Exception:  # noqa: BLE001 - a refusal keeps nothing
                    found.append(False)
    return sum(found) / len(found), len(found)
