"""`ContextConfig.reference()` selects and allocates as agentmaker 0.2.0 does.

The selection and the allocation are written again here, as plainly as possible, from a description
of that system's behaviour; the builder has to place the same items in the same order.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, count_tokens

HEADINGS = {
    "memory": "[Memory]",
    "rag": "[Knowledge]",
    "history": "[Conversation history]",
    "tool": "[Tool results]",
}
BUILDS = 400
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")


def cosine(a: Any, b: Any) -> float:
    if a is None or b is None or len(a) != len(b):
        return 0.0
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def selected(pool: list[Candidate]) -> list[Candidate]:
    """MMR of one source, lambda .7, duplicates from .95 on."""
    best: dict[str, Candidate] = {}
    for one in pool:
        if one.content not in best or (one.score or 0) > (best[one.content].score or 0):
            best[one.content] = one
    rest, chosen = list(best.values()), list[Candidate]()
    scores = [one.score or 0.0 for one in rest]
    if not scores:
        return []
    low, high = min(scores), max(scores)
    relevance = {
        id(one): 1.0
        if low == high
        else (score / high if low >= 0 else (score - low) / (high - low))
        for one, score in zip(rest, scores, strict=True)
    }
    while rest:
        like = {
            id(one): max((cosine(one.embedding, c.embedding) for c in chosen), default=0.0)
            for one in rest
        }
        rest = [one for one in rest if not chosen or like[id(one)] < 0.95]
        if not rest:
            break
        pick = max(rest, key=lambda one: 0.7 * relevance[id(one)] - 0.3 * like[id(one)])
        chosen.append(pick)
        rest.remove(pick)
    return chosen


def expected(found: dict[str, list[Candidate]], config: ContextConfig, budget: int) -> str:
    """Two rounds: quota with a stop at the first item that does not fit, then one loan."""
    region = budget - sum(count_tokens(HEADINGS[name] + "\n") for name in found)
    region = max(region - count_tokens("\n\n") * (len(found) - 1), 0)
    lines = {name: selected(pool) for name, pool in found.items()}
    whole = sum(config.source_ratios[name] for name in found) or 1.0
    quotas = {name: int(region * config.source_ratios[name] / whole) for name in found}
    placed: dict[str, list[Candidate]] = {name: [] for name in found}
    used = dict.fromkeys(found, 0)

    def cost(one: Candidate) -> int:
        return count_tokens(f"- {one.content}\n")

    def place(name: str, room: int) -> None:
        while lines[name] and cost(lines[name][0]) <= room:
            one = lines[name].pop(0)
            placed[name].append(one)
            room -= cost(one)
            used[name] += cost(one)

    for name in found:
        place(name, quotas[name])
    if config.allow_borrow:
        free = sum(quotas.values()) - sum(used.values())
        wants = {name: sum(map(cost, line)) for name, line in lines.items()}
        total = sum(wants.values())
        for name, want in wants.items():
            place(name, int(free * want / total) if total else 0)
    return "\n\n".join(
        "\n".join([HEADINGS[name], *(f"- {one.content}" for one in placed[name])])
        for name in HEADINGS
        if placed.get(name)
    )


def draw(seed: int) -> tuple[dict[str, list[Candidate]], ContextConfig, int]:
    dice = random.Random(seed)
    found: dict[str, list[Candidate]] = {}
    for name in dice.sample(list(HEADINGS), dice.randint(1, 4)):
        found[name] = [
            Candidate(
                " ".join(dice.choices(WORDS, k=dice.randint(1, 30))),
                round(dice.uniform(-1, 1) if dice.random() < 0.2 else dice.random(), 3),
                id=f"{name}{n}",
                embedding=[dice.uniform(-1, 1) for _ in range(2)] if dice.random() < 0.8 else None,
            )
            for n in range(dice.randint(0, 9))
        ]
    config = ContextConfig.reference(allow_borrow=dice.random() < 0.8)
    return found, config, dice.randint(0, 400)


@pytest.mark.parametrize("part", range(4))
def test_random_builds_equal_those_of_the_reference_system(part: int) -> None:
    """Users who migrate compare prompts byte by byte; one of four hundred differed."""
    for seed in range(part * BUILDS // 4, (part + 1) * BUILDS // 4):
        found, config, budget = draw(seed)
        sources = [CallableSource(name, lambda _q, c=c: c) for name, c in found.items()]
        built = ContextBuilder(config).build_block("q", sources=sources, budget=budget)
        assert built == expected(found, config, budget), seed


def test_the_best_of_a_source_comes_before_its_second() -> None:
    """A bonus for diversity lifted the second pick over the first when sources were merged."""
    found = {
        "memory": [Candidate("a note", 0.5)],
        "tool": [
            Candidate("the best result", 1.0, embedding=[1.0, 0.0]),
            Candidate("the second result", 0.9, embedding=[-1.0, 0.05]),
        ],
    }
    config = ContextConfig(mmr_lambda=0.7, dedup_across_sources=False, min_chunk_tokens=1)
    sources = [CallableSource(name, lambda _q, c=c: c) for name, c in found.items()]
    for budget in range(10, 40):
        built = ContextBuilder(config).build_block("q", sources=sources, budget=budget)
        assert "the second" not in built or "the best" in built
