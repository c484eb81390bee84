"""How probable is the right answer after each block? A small model, real questions, pairs.

For each question and each way to make a block of 256 tokens, the mean log-probability of the tokens
of the right answer is measured after the prompt in the model's own chat template. Ways are compared
by question; intervals are from 2,000 bootstrap draws. Scores are appended to `answers.jsonl`, and a
run continues where the last one stopped, because the model reads 200 tokens a second.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._harness import Table
from benchmarks.measures import blocks
from benchmarks.measures.tokens import count, interval, mean
from benchmarks.real_model.server import WINDOW, weights, without_extra_buffers
from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks._harness import Cell

__all__ = ("measure", "tables")

BUDGET = 256
SCORES = Path(__file__).resolve().parent / "answers.jsonl"
_PROMPT = (
    "<|im_start|>system\nAnswer the question from the passages in a few words.<|im_end|>\n"
    "<|im_start|>user\n{block}\n\nQuestion: {question}?<|im_end|>\n"
    "<|im_start|>assistant\n"
)
"""The chat template of SmolLM2."""


def _muntin(
    question: str, found: dict[str, list[blocks.Offer]], budget: int, *, vector: bool
) -> list[str]:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1), token_counter=count)

    def source(name: str, offered: list[blocks.Offer]) -> CallableSource:
        made = [
            Candidate(one.text, float(one.score), id=one.id, embedding=one.vector)
            for one in offered
        ]
        return CallableSource(name, lambda _query: made)

    context = builder.assemble(
        question,
        sources=[source(name, some) for name, some in found.items()],
        budget=budget + count(f"\n\n[Current question]\n{question}"),
        query_embedding=blocks.question_vector(question) if vector else None,
    )
    return [placed.content for placed in context.candidates]


def _ways(question: str, found: dict[str, list[blocks.Offer]]) -> dict[str, str]:
    """Return the block of each way."""
    ours = _muntin(question, found, BUDGET, vector=False)
    aware = _muntin(question, found, BUDGET, vector=True)
    return {
        "naive top-k": blocks.greedy(question, found, BUDGET)[0],
        "LangChain MMR": blocks.mmr(0.7, 40)(question, found, BUDGET)[0],
        "muntin": "\n\n".join(ours),
        "muntin, question's vector": "\n\n".join(aware),
        "muntin, question's vector, best last": "\n\n".join(aware[::-1]),
    }


class _Model:
    """The model, and the log-probability of a text after a prompt."""

    def __init__(self) -> None:
        self.cpp: Any = without_extra_buffers()
        threads = {"n_threads": 1, "n_threads_batch": 1}  # two wait for each other when others run
        self.llama: Any = self.cpp.Llama(
            str(weights()), n_ctx=WINDOW, n_batch=512, verbose=False, **threads
        )

    def per_token(self, prompt: str, answer: str) -> float:
        """Return the mean log-probability of the tokens of the answer."""
        tokens = self.llama.tokenize(prompt.encode(), add_bos=False, special=True)
        wanted = self.llama.tokenize(answer.encode(), add_bos=False, special=False)
        self.llama.reset()
        self.llama.eval(tokens)
        total = 0.0
        for token in wanted:
            total += self._next()[token]
            self.llama.eval([token])
        return total / len(wanted)

    def _next(self) -> Any:
        pointer = self.cpp.llama_get_logits_ith(self.llama.ctx, -1)
        logits = np.ctypeslib.as_array(pointer, shape=(self.llama.n_vocab(),)).astype(np.float64)
        top = logits.max()
        return logits - top - np.log(np.exp(logits - top).sum())


def measure(minutes: float, *, questions: int = 200) -> None:
    """Measure questions until the time is over or all are measured."""
    end = time.monotonic() + 60 * minutes
    done = {one["id"] for one in _scores()}
    waiting = [one for one in blocks.questions()[:questions] if one["id"] not in done]
    if not waiting:
        return
    model = _Model()
    for record in waiting:
        if time.monotonic() > end:
            return
        found = blocks.offers(record, "dup")
        ways = _ways(record["question"], found)
        measured = {
            block: model.per_token(
                _PROMPT.format(block=block, question=record["question"]), record["answers"][0]
            )
            for block in dict.fromkeys(ways.values())
        }
        scores = {name: measured[block] for name, block in ways.items()}
        with SCORES.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": record["id"], "scores": scores}) + "\n")


def _scores() -> list[dict[str, Any]]:
    if not SCORES.exists():
        return []
    return [json.loads(line) for line in SCORES.read_text("utf-8").splitlines()]


def tables() -> list[Table]:
    """Return the scores with the differences by question."""
    scores = [one["scores"] for one in _scores()]
    if not scores:
        return []
    against: tuple[Callable[[dict[str, float]], float], ...] = (
        lambda one: one["naive top-k"],
        lambda one: one["LangChain MMR"],
    )
    rows: list[tuple[Cell, ...]] = []
    for name in scores[0]:
        cells: list[Cell] = [name, round(mean(one[name] for one in scores), 3)]
        for other in against:
            differences = [one[name] - other(one) for one in scores]
            low, high = interval(differences)
            middle = mean(differences)
            shown = f"{middle:+.3f} ({low:+.3f} to {high:+.3f})" if any(differences) else "–"
            cells.append(shown)
        rows.append(tuple(cells))
    return [
        Table(
            title=f"Log-probability per token of the right answer after {BUDGET} tokens of context",
            columns=("block", "mean", "against naive top-k", "against LangChain MMR"),
            rows=tuple(rows),
            notes=(
                f"{len(scores)} questions with near-duplicates, paired; 95 % bootstrap intervals. "
                "SmolLM2 135M Instruct, 4 bits. Higher is better.",
            ),
        )
    ]
