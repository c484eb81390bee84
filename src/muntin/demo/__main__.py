"""Assemble one context from real documentation and show where every token went."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from muntin.config import ContextConfig
from muntin.counting.counters import counter_for
from muntin.demo import QUESTION
from muntin.demo.corpus import Passages
from muntin.errors import ContextError
from muntin.passages.builder import ContextBuilder
from muntin.passages.candidates import Candidate
from muntin.passages.sources import CallableSource
from muntin.text.lexical import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting.counters import NamedCounter
    from muntin.passages.assembled import AssembledContext
    from muntin.passages.sources import ContextSource

_SYSTEM = "You answer questions about Python. Use only what stands below, and say where it is from."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; the exit code is 0, or 3 where the fixed parts do not fit."""
    asked = _parser().parse_args(arguments)
    passages = Passages(_bar if sys.stderr.isatty() else None)
    try:
        context = assemble(asked.question, passages, asked.window, _counter(asked.count))
    except ContextError as error:
        sys.stderr.write(f"muntin: {error}\n")
        return 3
    page = Path(asked.html)
    context.report.to_html(page, what_if=[asked.window // 2, asked.window, asked.window * 2])
    sys.stdout.write(
        f"{context.text}\n\n{'=' * 96}\n{len(passages)} passages of documentation were searched.\n"
        f"{context.report}\nThe same as a page: {page}\n"
    )
    return 0


def assemble(
    question: str, passages: Passages, window: int, counter: NamedCounter
) -> AssembledContext:
    """Assemble a context for a question out of documentation, memory and a tool result."""
    sources: list[ContextSource] = [
        CallableSource("rag", passages.search),
        CallableSource("memory", _ranked(_shipped("memory.md").splitlines())),
        CallableSource("tool", _ranked([_shipped("tool_result.txt").rstrip()])),
    ]
    config = ContextConfig.for_window(
        window,
        use_ratio=1.0,
        source_ratios={"rag": 0.6, "memory": 0.2, "tool": 0.2},
        min_chunk_tokens=0,
        shorten=True,
    )
    builder = ContextBuilder(config, token_counter=counter)
    return builder.assemble(question, sources=sources, system_prompt=_SYSTEM)


def _ranked(texts: Sequence[str]) -> Callable[[str], list[Candidate]]:
    """Make a source of a few texts, scored by the words they share with the question."""

    def fetch(question: str) -> list[Candidate]:
        scores = bm25_scores(question, texts)
        top = max(float(scores.max()), 1e-9)
        found = [Candidate(text, float(score) / top) for text, score in zip(texts, scores)]  # noqa: B905 - one score a text
        return sorted(found, key=lambda candidate: -(candidate.score or 0.0))

    return fetch


def _shipped(name: str) -> str:
    return files("muntin.demo").joinpath(name).read_text(encoding="utf-8")


def _counter(kind: str) -> NamedCounter:
    return counter_for("gpt-4o") if kind == "exact" else counter_for(None)


def _bar(share: float) -> None:
    done = int(share * 40)
    end = "\r" + " " * 70 + "\r" if share >= 1 else ""
    sys.stderr.write(f"\rreading documentation [{'#' * done}{'.' * (40 - done)}] {share:4.0%}{end}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m muntin.demo",
        description="Assemble a context for a question out of the documentation on this machine, "
        "a small memory and a recorded tool result, inside a token window.",
    )
    parser.add_argument("question", nargs="?", default=QUESTION, help="default: %(default)s")
    parser.add_argument(
        "--window", type=_tokens, default=2000, metavar="TOKENS", help="default: %(default)s"
    )
    parser.add_argument(
        "--count",
        choices=("estimate", "exact"),
        default="estimate",
        help="estimate needs nothing; exact needs a vocabulary (default: %(default)s)",
    )
    parser.add_argument(
        "--html", default="muntin-report.html", metavar="FILE", help="default: %(default)s"
    )
    return parser


def _tokens(text: str) -> int:
    """Read a number of tokens: 8000, 8_000 or 8k."""
    number = text.lower().removesuffix("k")
    try:
        tokens = int(number) * (1000 if text.lower().endswith("k") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of tokens: try 8000 or 8k"
        ) from None
    if tokens <= 0:
        raise argparse.ArgumentTypeError("a window has more than 0 tokens")
    return tokens


if __name__ == "__main__":
    raise SystemExit(main())
