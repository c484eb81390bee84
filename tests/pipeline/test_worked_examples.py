"""The worked examples of the reference system, numbered as they were recorded.

Where the recorded value is a defect, ours is the better one and the test says which.
"""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from muntin import (
    CallableSource,
    Candidate,
    ConfigurationError,
    ContextBuilder,
    ContextConfig,
    Scope,
    WindowBudget,
    WindowBudgetConfig,
    count_tokens,
    mmr_select,
    tokens_of,
)
from muntin.passages.placing import allocate
from muntin.passages.planning import plan_block
from muntin.passages.selecting.selection import relevance_of
from muntin.testing import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


# --- 1-18: the rule of thumb ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("hello world", 3),
        ("中", 1),
        ("中a", 2),
        ("中abcd", 2),
        ("中abcde", 3),
        ("日本語テスト", 6),
        ("안녕하세요", 5),
        ("こんにちは、世界。", 8),
        ("a" * 4000, 1000),
        ("中" * 1000, 1000),
        ("😀", 1),
        ("𠀀𠀁𠀂𠀃", 4),  # recorded as 1: these are Chinese characters like any other
        (None, 0),
    ],
)
def test_1_to_17_the_rule_counts(text: str | None, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_18_bytes_are_no_text() -> None:
    with pytest.raises(TypeError):
        count_tokens(cast("str", b"abc"))


# --- 19-39: selection ----------------------------------------------------------------------------


def of(name: str, score: float, embedding: Sequence[float] | None = None) -> Candidate:
    return Candidate(name, score, embedding=embedding)


A, B, C = of("A", 0.9, [1, 0]), of("B", 0.8, [0.99, 0.01]), of("C", 0.6, [0, 1])


@pytest.mark.parametrize(
    ("candidates", "knobs", "expected"),
    [
        pytest.param([A, B, C], {"top_k": 2}, "AC", id="19"),
        pytest.param([A, B, C], {"dedup_threshold": 1.01}, "ACB", id="20"),
        pytest.param([A, B, C], {"lambda_": 1, "dedup_threshold": 1.01}, "ABC", id="21"),
        pytest.param([A, B, C], {"lambda_": 0, "dedup_threshold": 1.01}, "ACB", id="22"),
        pytest.param([A, B, C], {"top_k": 0}, "", id="23"),
        pytest.param([of("a", 1), of("b", 3), of("c", 2)], {}, "bca", id="26"),
        pytest.param([of("p", 1), of("q", 1), of("r", 1)], {}, "pqr", id="27"),
        pytest.param([of("r", 1), of("q", 1), of("p", 1)], {}, "rqp", id="27-reversed"),
        pytest.param([of("a", 1, [1, 0]), of("b", 1, [1, 0, 0])], {}, "ab", id="28"),
        pytest.param([of("a", 1, [0, 0]), of("b", 1, [0, 0])], {}, "ab", id="29-zero"),
        pytest.param([of("a", 1, []), of("b", 1, [])], {}, "ab", id="29-empty"),
        pytest.param([of("a", -3), of("b", -1), of("c", -2)], {}, "bca", id="30"),
        pytest.param(
            [of("a", 1, [1, 0]), of("b", 0.9, [0.95, (1 - 0.95**2) ** 0.5])], {}, "a", id="34"
        ),
        pytest.param(
            [of("a", 1.0, [1, 0]), of("b", 0.9, [0, 1]), of("c", 0.8, [-1, 0])],
            {"lambda_": 0.5},
            "acb",
            id="35",
        ),
        pytest.param(
            [of("a", 0, [1, 0]), of("b", 0, [0.9, 0.1]), of("c", 0, [0, 1])],
            {"dedup_threshold": 1.01},
            "acb",
            id="36",
        ),
        pytest.param([of("x", 1), of("x", 1), of("y", 0.5)], {"top_k": 2}, "xy", id="37"),
        pytest.param([A, B, C], {"dedup_threshold": 0}, "A", id="38-keeps-the-first"),
        pytest.param(
            [
                of("a", 0.9, [float("nan"), 1]),
                of("b", 0.8, [1, 0]),
                of("c", 0.7, [0, 1]),
                of("d", 0.1),
            ],
            {},
            "abcd",
            id="39-not-finite-is-no-embedding",
        ),
    ],
)
def test_19_to_39_selection(
    candidates: list[Candidate], knobs: dict[str, Any], expected: str
) -> None:
    assert "".join(c.content for c in mmr_select(candidates, **knobs)) == expected


@pytest.mark.parametrize(
    "knobs",
    [
        {"top_k": -1},
        {"lambda_": 1.1},
        {"lambda_": float("nan")},
        {"dedup_threshold": -0.1},
        {"dedup_threshold": float("nan")},
    ],
)
def test_23_and_38_arguments_out_of_range_are_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        mmr_select([A], **knobs)


def test_24_the_best_copy_stays() -> None:
    copies = [of("dup", 0.2), of("z", 0.7), of("dup", 0.9), of("dup", 0.5)]
    assert [(c.content, c.score) for c in mmr_select(copies)] == [("dup", 0.9), ("z", 0.7)]


def test_25_of_equal_copies_the_first_stays() -> None:
    first, second = of("dup", 0.5), of("dup", 0.5)
    assert mmr_select([first, second])[0] is first


@pytest.mark.parametrize(
    ("scores", "relevance"),
    [
        ([-1, 0, 3], [0, 0.25, 1]),
        ([0.9, 0.8, 0.6], [1, 0.8889, 0.6667]),
        ([0, 0], [1, 1]),
        ([2], [1]),
        ([-5], [1]),
    ],
)
def test_31_to_33_relevance(scores: list[float], relevance: list[float]) -> None:
    found = relevance_of([of(str(i), score) for i, score in enumerate(scores)])
    assert np.allclose(found, relevance, atol=1e-4)


# --- 40-45: configuration ------------------------------------------------------------------------


def test_40_and_41_the_smallest_budget_whose_quotas_hold_an_item() -> None:
    ContextConfig(max_tokens=534).validate()
    with pytest.raises(ConfigurationError, match=r"'tool' has a quota of 63 tokens"):
        ContextConfig(max_tokens=533).validate()
    ContextBuilder(ContextConfig.reference(max_tokens=542))
    with pytest.raises(ConfigurationError, match="'tool'"):
        ContextBuilder(ContextConfig.reference(max_tokens=541))


@pytest.mark.parametrize(
    ("window", "fallback", "expected"),
    [
        (200_000, None, 100_000),
        (1_000_000, None, 500_000),
        (None, 8000, 4000),
        (4097, None, 2048),
        (None, None, None),
        (0, 8000, 4000),
    ],
)
def test_42_the_budget_of_a_window(
    window: int | None, fallback: int | None, expected: int | None
) -> None:
    assert ContextConfig.for_window(window, fallback_window=fallback).max_tokens == expected


@pytest.mark.parametrize(
    "knobs",
    [
        {"max_tokens": 0},
        {"max_tokens": -5},
        {"max_tokens": True},
        {"max_tokens": 8000.0},
        {"output_reserve_ratio": 1.0},
        {"output_reserve_ratio": -0.1},
        {"output_reserve_ratio": float("nan")},
        {"source_ratios": {}},
        {"source_ratios": {"rag": -1, "memory": 2}},
        {"source_ratios": {"rag": float("nan")}},
        {"source_ratios": {"rag": "abc"}},
    ],
)
def test_43_to_45_values_out_of_range_are_refused_at_construction(knobs: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ContextConfig(**knobs)


def test_45_numerals_are_numbers_and_a_ratio_of_zero_is_legal() -> None:
    assert ContextConfig(source_ratios=cast("Any", {"rag": "0.5"})).source_ratios == {"rag": 0.5}
    ContextConfig(max_tokens=100, source_ratios={"rag": 1, "memory": 0}).validate()


# --- 46-49: what things cost ---------------------------------------------------------------------


def returning(*contents: str, score: float | None = 0.5) -> Callable[[str], list[Candidate]]:
    return lambda _query: [Candidate(content, score) for content in contents]


def test_46_and_47_an_item_and_the_headings() -> None:
    assert tokens_of("- hello\n") == 2
    headings = ["[Memory]\n", "[Knowledge]\n", "[Conversation history]\n", "[Tool results]\n"]
    assert [count_tokens(heading) for heading in headings] == [3, 3, 6, 4]


def test_48_what_is_left_for_candidates() -> None:
    """System 25 tokens, question 10: build divides 753, a block 783, a block of 300 has 293."""
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    sources = [CallableSource(name, returning("x")) for name in ("rag", "memory")]
    question = "q" * 40
    build = builder.assemble(question, sources=sources, system_prompt="s" * 100).report
    assert sum(source.quota or 0 for source in build.sources) == 753
    rendering = builder._rendering  # pyright: ignore[reportPrivateUsage] - the block returns no report
    plan = plan_block(question, sources, None, builder.config, rendering)
    assert plan.frame.region == 783
    plan = plan_block(question, sources, 300, builder.config, rendering)
    assert plan.frame.region == 293


def test_49_the_smallest_block_that_says_hi() -> None:
    builder = ContextBuilder()
    source = CallableSource("rag", returning("hi"))
    blocks = [builder.build_block("q", sources=[source], budget=budget) for budget in range(8)]
    assert [bool(block) for block in blocks] == [False] * 5 + [True] * 3


# --- 50-59: allocation ---------------------------------------------------------------------------


def placed(
    region: int, costs: Mapping[str, list[int]], ratios: Mapping[str, float], **knobs: Any
) -> dict[str, int]:
    shares = allocate(costs, region=region, ratios=ratios, **knobs).shares
    return {name: len(share.placed) for name, share in shares.items()}


FOUR = {"memory": 0.2, "rag": 0.3, "history": 0.35, "tool": 0.15}
EVEN = {"memory": 1.0, "rag": 1.0, "tool": 1.0}


@pytest.mark.parametrize(
    ("region", "costs", "ratios", "reference", "ours"),
    [
        pytest.param(
            100,
            {"memory": [10], "rag": [30] * 3},
            EVEN,
            {"memory": 1, "rag": 3},
            {"memory": 1, "rag": 3},
            id="50",
        ),
        pytest.param(100, {"rag": [200, 10, 10]}, EVEN, {"rag": 0}, {"rag": 2}, id="52"),
        pytest.param(
            300,
            {"memory": [], "rag": [50] * 4, "tool": [50] * 8},
            EVEN,
            {"memory": 0, "rag": 2, "tool": 3},
            {"memory": 0, "rag": 3, "tool": 3},
            id="53",
        ),
        pytest.param(
            100,
            {"memory": [60], "rag": [60]},
            EVEN,
            {"memory": 0, "rag": 0},
            {"memory": 1, "rag": 0},
            id="54",
        ),
        pytest.param(
            100,
            {"rag": [40], "memory": [20, 20]},
            {"rag": 1, "memory": 0},
            {"rag": 1, "memory": 2},
            {"rag": 1, "memory": 2},
            id="55",
        ),
        pytest.param(
            100,
            {"rag": [60, 2], "memory": [40, 2]},
            FOUR,
            {"rag": 1, "memory": 1},
            {"rag": 1, "memory": 1},
            id="56",
        ),
        pytest.param(
            100,
            {"memory": [34], "rag": [34], "tool": [34]},
            EVEN,
            {"memory": 0, "rag": 0, "tool": 0},
            {"memory": 1, "rag": 1, "tool": 0},
            id="57",
        ),
        pytest.param(100, {"tool": [20]}, {"tool": 0}, {"tool": 0}, {"tool": 1}, id="58"),
        pytest.param(
            300,
            {"memory": [], "rag": [10_000], "tool": [50] * 4},
            EVEN,
            {"memory": 0, "rag": 0, "tool": 2},
            {"memory": 0, "rag": 0, "tool": 4},
            id="59",
        ),
    ],
)
def test_50_to_59_allocation(
    region: int,
    costs: dict[str, list[int]],
    ratios: dict[str, float],
    reference: dict[str, int],
    ours: dict[str, int],
) -> None:
    """The reference's own rounds stay available; ours leave nothing idle that somebody wants."""
    assert placed(region, costs, ratios, fill=False) == reference
    assert placed(region, costs, ratios) == ours


def test_51_nothing_is_lent_without_leave() -> None:
    costs = {"memory": [10], "rag": [30] * 3}
    assert placed(100, costs, EVEN, allow_borrow=False) == {"memory": 1, "rag": 1}
    assert placed(100, costs, EVEN, allow_borrow=False, fill=False) == {"memory": 1, "rag": 1}


# --- 60-67: layout -------------------------------------------------------------------------------


def test_60_the_order_of_the_sections() -> None:
    names = ("zed", "tool", "history", "rag", "memory", "abc")
    config = ContextConfig(max_tokens=4000, source_ratios=dict.fromkeys(names, 1.0))
    contents = {name: (f"{name[0]}1",) for name in names} | {"rag": ("r1", "r2")}
    sources = [CallableSource(name, returning(*contents[name])) for name in names]
    assert ContextBuilder(config).build("Q?", sources=sources, system_prompt="SYS") == (
        "SYS\n\n[Memory]\n- m1\n\n[Knowledge]\n- r1\n- r2\n\n[Conversation history]\n- h1\n\n"
        "[Tool results]\n- t1\n\n[zed]\n- z1\n\n[abc]\n- a1\n\n[Current question]\nQ?"
    )


def test_61_the_question_alone() -> None:
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    assert builder.build("Q?", sources=[]) == "[Current question]\nQ?"


def test_62_further_lines_of_an_item_are_indented() -> None:
    """Recorded verbatim: then a passage could write a heading of its own."""
    source = CallableSource("rag", returning("line1\nline2\n- nested"))
    block = ContextBuilder().build_block("q", sources=[source], budget=100)
    assert block == "[Knowledge]\n- line1\n  line2\n  - nested"


def test_63_nothing_found_is_no_block() -> None:
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    assert builder.build_block("q", sources=[CallableSource("rag", returning())]) == ""


def test_66_braces_in_a_question_are_text() -> None:
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    assert builder.build("{query} {x}", sources=[]).endswith("\n{query} {x}")


@pytest.mark.parametrize("budget", [0, -50])
def test_67_no_budget_is_no_block(budget: int) -> None:
    source = CallableSource("rag", returning("r"))
    assert ContextBuilder().build_block("q", sources=[source], budget=budget) == ""


# --- 68: scope -----------------------------------------------------------------------------------


class Store:
    """A store with a method that takes the scope in second place."""

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def search(self, query: str, scope: Scope | None = None) -> list[Candidate]:
        self.seen.append(scope)
        return []


def test_68_how_a_scope_reaches_a_function() -> None:
    seen: list[object] = []
    run = Scope(user="ada")

    def second(query: str, s: object) -> None:
        seen.append(s)

    def keyword_only(query: str, *, scope: object = "its own") -> None:
        seen.append(scope)

    def any_number(*args: object) -> None:
        seen.append(args[1:])

    def with_k(query: str, s: object, k: int) -> None:
        seen.append((s, k))

    def with_default(query: str, top_k: int = 5) -> None:
        seen.append(top_k)

    sources = [
        CallableSource("rag", second),
        CallableSource("rag", keyword_only),
        CallableSource("rag", keyword_only, pass_scope=True),
        CallableSource("rag", lambda q, s=None: seen.append(s), pass_scope=False),
        CallableSource("rag", Store(seen).search),
        CallableSource("rag", any_number),
        CallableSource("rag", partial(with_k, k=3)),
        CallableSource("rag", with_default),
    ]
    for source in sources:
        source.fetch("q", run)
    assert seen == [run, "its own", run, None, run, (), (run, 3), 5]


# --- 69-76: the window ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "cap", "system", "tool", "ratio", "expected"),
    [
        (200_000, None, 800, 1200, None, (4096, 193_904, 67_866, 194_704, 126_038)),
        (8000, None, 0, 0, None, (4000, 4000, 1400, 4000, 2600)),
        (4000, None, 0, 0, None, (2000, 2000, 700, 2000, 1300)),
        (1_000_000, 2000, 0, 0, None, (2000, 998_000, 349_300, 998_000, 648_700)),
        (128_000, 16_384, 500, 500, 0.0, (4096, 122_904, 0, 123_404, 122_904)),
        (8000, None, 9000, 0, None, (4000, 0, 0, 4000, 0)),
        (6001, 0, 0, 0, None, (3000, 3001, 1050, 3001, 1951)),
    ],
)
def test_69_to_76_the_ledger(
    window: int,
    cap: int | None,
    system: int,
    tool: int,
    ratio: float | None,
    expected: tuple[int, int, int, int, int],
) -> None:
    ledger = WindowBudget.for_run(
        llm=ScriptedLLM(context_window=window, max_output_tokens=cap),
        cfg=WindowBudgetConfig(),
        system_tokens=system,
        tool_tokens=tool,
        rag_ratio=ratio,
    )
    assert ledger is not None
    assert expected == (
        ledger.output_reserve,
        ledger.spendable,
        ledger.rag_budget,
        ledger.trajectory_budget(rag_in_scope=True),
        ledger.trajectory_budget(rag_in_scope=False),
    )


@pytest.mark.parametrize("window", [None, 0])
def test_75_an_unknown_window_has_no_ledger(window: int | None) -> None:
    llm = ScriptedLLM(context_window=window)
    assert WindowBudget.for_run(llm=llm, cfg=WindowBudgetConfig()) is None


# --- defects of the reference that ours must not have --------------------------------------------


def test_a_configuration_can_be_pickled_copied_and_taken_apart() -> None:
    """D-37: a configuration that cannot leave its process cannot be shared with workers."""
    import dataclasses

    config = ContextConfig(max_tokens=1000, source_ratios={"rag": 1.0})
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config
    assert dataclasses.asdict(cast("Any", config))["source_ratios"] == {"rag": 1.0}
    assert hash(config) == hash(copy.deepcopy(config))
