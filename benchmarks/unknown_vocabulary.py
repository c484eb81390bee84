"""How many prompts overrun the window of a model whose vocabulary muntin does not know.

Real questions with their passages become chat prompts for windows of 512, 1,024 and 2,048 tokens,
once counted by the counter of an unknown model name (the estimate with its margin and framing),
once by the estimate alone, once by the model's own tokenizer. The prompts are then counted with
that tokenizer and a ChatML template: 32k SentencePiece pieces and the 131k Tekken vocabulary, both
shipped in the wheel of `mistral-common`.

    pip install mistral-common sentencepiece
    python -m benchmarks.unknown_vocabulary
"""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._data import json_lines
from muntin import (
    CallableSource,
    Candidate,
    ContextBuilder,
    ContextConfig,
    ContextWindowExceeded,
    counter_for,
)
from muntin.counting import EstimateCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WINDOWS = (512, 1024, 2048)
RESERVE = 0.25
"""Share of the window for the answer."""
FRAMING = 5
"""Tokens that ChatML adds to a message."""
REPLY = 3
SYSTEM = "Answer the question from the passages."


def vocabularies() -> Iterator[tuple[str, Callable[[str], int]]]:
    """Yield the names and counters of vocabularies that are neither o200k nor cl100k."""
    import mistral_common
    import sentencepiece
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    data = Path(mistral_common.__file__).parent / "data"
    model = str(data / "mistral_instruct_tokenizer_240323.model.v3")
    pieces: Any = sentencepiece.SentencePieceProcessor(model_file=model)
    yield "32k pieces", lru_cache(100_000)(lambda text: len(pieces.encode(text)))
    tekken: Any = Tekkenizer.from_file(str(data / "tekken_240911.json"))
    yield (
        "131k Tekken",
        lru_cache(100_000)(lambda text: len(tekken.encode(text, bos=False, eos=False))),
    )


def prompts(
    records: list[dict[str, Any]], counter: Any, framing: int, window: int
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each record with the texts of the two messages of its prompt."""
    budget = window - int(RESERVE * window) - 2 * framing - REPLY - counter(SYSTEM)
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1), token_counter=counter)
    for record in records:
        found = [
            Candidate(one["text"], 1 / one["rank"], id=one["id"]) for one in record["passages"]
        ]
        source = CallableSource("rag", lambda _query, _found=found: _found)
        try:
            text = builder.build_block(record["question"], sources=[source], budget=budget)
        except ContextWindowExceeded:
            continue
        yield record, [SYSTEM, text]


def measure() -> None:
    """Print a row for each vocabulary, window and counter."""
    records = list(json_lines("retrieval.dev.jsonl.gz"))
    records = records[int(sys.argv[1]) :: 2] if len(sys.argv) > 1 else records
    unknown = counter_for("our-own-model-7b")
    print(f"{len(records)} questions\n")
    print("| vocabulary | counter | window | over the window | answer in the block |")
    print("|---|---|---|---|---|")
    for name, real in vocabularies():
        counters = {
            "unknown name": (unknown, 6),
            "estimate alone": (EstimateCounter(), 4),
            "its own": (real, FRAMING),
        }
        for window in WINDOWS:
            for called, (counter, framing) in counters.items():
                over = held = total = 0
                limit = window - int(RESERVE * window)
                for record, texts in prompts(records, counter, framing, window):
                    total += 1
                    tokens = sum(real(text) + FRAMING for text in texts) + REPLY
                    over += tokens > limit
                    held += any(one.lower() in texts[1].lower() for one in record["answers"])
                print(
                    f"| {name} | {called} | {window} | {over / total:.1%} | {held / total:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measure()
