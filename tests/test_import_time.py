"""Importing muntin costs what its two array-and-validation dependencies cost, and no more.

A command-line tool pays for its imports at every start, a serverless function at every cold one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

import pytest

HEAVY = (
    "anthropic",
    "asyncio.base_events",
    "asyncio.streams",
    "concurrent.futures.thread",
    "http.server",
    "langchain",
    "langchain_core",
    "langgraph",
    "llama_index",
    "openai",
    "regex",
    "sqlite3",
    "tiktoken",
)

LIMIT = 1.25
"""Most that `import muntin` may cost, as a multiple of `import numpy, pydantic`."""


def _output(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _seconds(statement: str) -> float:
    # Processor time of the process: a busy machine stretches the clock on the wall, not this one.
    return float(
        _output(
            "import time; begun = time.process_time()\n"
            f"{statement}\n"
            "print(time.process_time() - begun)"
        )
    )


def test_import_costs_little_more_than_numpy_and_pydantic() -> None:
    """A slow import is felt by every user at every start, and creeps in one line at a time."""
    ratios: list[float] = []
    for _ in range(3):  # more rounds only for a machine too restless for the first ones
        ratios += [_seconds("import muntin") / _seconds("import numpy, pydantic") for _ in range(4)]
        if statistics.median(ratios) <= LIMIT:
            break

    assert statistics.median(ratios) <= LIMIT, sorted(ratios)


@pytest.mark.parametrize("module", HEAVY)
def test_import_leaves_heavy_modules_alone(module: str) -> None:
    """What only some calls need is imported by those calls."""
    assert module not in _loaded("import muntin")


def test_the_builder_needs_no_framework_and_no_vocabulary() -> None:
    """Assembling with the default counter must work where nothing else is installed."""
    loaded = _loaded("from muntin import ContextBuilder, HistoryCompactor, fit_messages")

    assert loaded.isdisjoint(
        {"langchain", "langchain_core", "langgraph", "llama_index", "tiktoken"}
    )


_seen: dict[str, set[str]] = {}


def _loaded(statement: str) -> set[str]:
    if statement not in _seen:
        _seen[statement] = set(
            _output(f"import sys\n{statement}\nprint(*sorted(sys.modules))").split()
        )
    return _seen[statement]


@pytest.mark.parametrize(
    ("own", "message", "other"),
    [
        ("langchain_core", "langchain_core.messages.HumanMessage('hi')", "llama_index"),
        (
            "llama_index",
            "llama_index.core.base.llms.types.ChatMessage(role='user', content='hi')",
            "langchain_core",
        ),
    ],
)
def test_a_message_of_one_framework_does_not_load_the_other(
    own: str, message: str, other: str
) -> None:
    """With both adapters installed, the first message would wait seconds for the wrong one."""
    module = message.partition("(")[0].rpartition(".")[0]
    loaded = _output(
        f"import sys, {module}; from muntin import count_message; count_message({message})\n"
        f"print({own!r} in sys.modules, {other!r} in sys.modules)"
    )
    assert loaded == "True False"
