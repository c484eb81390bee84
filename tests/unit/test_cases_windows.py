"""Cases: a window that is wrong, unknown or eaten up, and a limit that never or always fires.

All of it is arithmetic done once, at construction, or a guess where nobody knew. The property is
`test_the_ledger_adds_up_or_is_refused`: a ledger that exists has room, and its parts add up to it.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_messages import ENTRY_POINTS, A, S, T, U, saying, steps, talk, trimmed
from muntin.config import CompactionConfig, ContextConfig, WindowBudgetConfig
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.counting.anchored import AnchoredCounter
from muntin.counting.charges.tool_schemas import count_tools
from muntin.counting.counters import CounterWarning, counter_for
from muntin.counting.message_counts import MessageCounts, count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.testing import ScriptedLLM, check_request
from muntin.window import Window, WindowBudget, resolve_window


def ledger(window: int, max_output: int | None = None, **knobs: Any) -> WindowBudget:
    """Make the ledger of a model that says its window and, perhaps, its longest answer."""
    made = WindowBudget.for_run(
        llm=ScriptedLLM(context_window=window, max_output_tokens=max_output),
        cfg=WindowBudgetConfig(**knobs),
    )
    assert made is not None
    return made


# --- the reserve ---------------------------------------------------------------------------------

WINDOWS: dict[str, tuple[int, int | None, dict[str, Any], int]] = {
    "no output limit on a small window": (16_384, None, {"desired_output_tokens": 32_000}, 8_192),
    "an output limit of the whole window": (8_000, 8_000, {"desired_output_tokens": 8_000}, 4_000),
    "an output limit of fifty windows": (8_000, 400_000, {"desired_output_tokens": 400_000}, 4_000),
    "a reserve over the window": (256_000, None, {"desired_output_tokens": 262_144}, 128_000),
    "an output of half the window": (131_072, 65_536, {"desired_output_tokens": 65_536}, 65_536),
    "a window of a million": (1_000_000, None, {}, 4_096),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_the_reserve_leaves_room_in_any_window(name: str) -> None:
    """A flat reserve of 32,000 leaves nothing of a window of 16,000: it is compacted each step."""
    window, max_output, knobs, reserve = WINDOWS[name]
    made = ledger(window, max_output, **knobs)
    assert made.output_reserve == reserve
    assert made.spendable == window - reserve > 0


@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_fitted_leaves_the_reserve_free(name: str) -> None:
    """A server takes the answer out of the same window: a limit on the whole of it fires late."""
    window, max_output, knobs, reserve = WINDOWS[name]
    made = ledger(window, max_output, **knobs)
    history = [S, *steps(60, text="row " * 3_000), A(), U("so?")]
    fitted = fit_messages(
        history, budget=made.trajectory_budget(rag_in_scope=True), counter=count_tokens
    )
    assert check_request(fitted.messages, window=window, max_output=reserve) <= window - reserve
    assert fitted.changed is (count_messages(history) > window - reserve)


@pytest.mark.parametrize(
    ("window", "reserve"), [(8_000, 8_000), (8_000, 400_000), (256_000, 262_144)]
)
def test_a_reserve_that_leaves_nothing_is_refused_at_construction(
    window: int, reserve: int
) -> None:
    """With a budget of 0, "must be compacted" is always true and "is small enough" never."""
    with pytest.raises(ConfigurationError, match="leaves nothing"):
        WindowBudget(window=window, output_reserve=reserve)
    with pytest.raises(ConfigurationError, match="leaves nothing"):
        WindowBudget.for_run(
            llm=Window(tokens=window),
            cfg=WindowBudgetConfig(desired_output_tokens=reserve, max_output_fraction=1.0),
        )


def test_overhead_over_the_window_is_none_left_and_not_no_limit() -> None:
    """An underflow that becomes `None` is read as "no limit" by everybody."""
    made = WindowBudget(window=8_000, output_reserve=4_000, system_tokens=3_000, tool_tokens=9_000)
    assert made.spendable == made.rag_budget == 0
    assert made.trajectory_budget(rag_in_scope=True) == 0
    with pytest.raises(ConfigurationError, match="budget must be a positive int"):
        fit_messages(
            [S, U()], budget=made.trajectory_budget(rag_in_scope=True), counter=count_tokens
        )


@given(
    window=st.integers(1, 2_000_000),
    max_output=st.none() | st.integers(0, 2_000_000),
    desired=st.integers(0, 2_000_000),
    fraction=st.floats(0.01, 1.0),
    fixed=st.tuples(st.integers(0, 300_000), st.integers(0, 300_000)),
    ratio=st.floats(0, 1),
)
def test_the_ledger_adds_up_or_is_refused(
    window: int,
    max_output: int | None,
    desired: int,
    fraction: float,
    fixed: tuple[int, int],
    ratio: float,
) -> None:
    """The kind's property: no arithmetic gives None, a negative, or more than there is."""
    try:
        made = WindowBudget.for_run(
            llm=Window(tokens=window, max_output=max_output or None),
            cfg=WindowBudgetConfig(desired_output_tokens=desired, max_output_fraction=fraction),
            system_tokens=fixed[0],
            tool_tokens=fixed[1],
            rag_ratio=ratio,
        )
    except ConfigurationError:
        assert min(desired, int(window * fraction), max_output or desired) >= window
        return
    assert made is not None
    assert 0 <= made.output_reserve < window
    rest = made.trajectory_budget(rag_in_scope=False)
    parts = made.output_reserve + made.rag_budget + rest
    assert min(made.rag_budget, rest) >= 0
    assert parts == max(window - made.fixed, made.output_reserve)


# --- where the number comes from -----------------------------------------------------------------


def test_a_window_comes_from_one_place_that_says_where_from() -> None:
    """A hard-coded 128,000 cuts a model that reads a million and overruns one of 32,000."""
    asked = {
        "profile": SimpleNamespace(profile={"max_input_tokens": 1_000_000}),
        "metadata": SimpleNamespace(metadata=SimpleNamespace(context_window=1_000_000)),
        "attribute": ScriptedLLM(context_window=1_000_000),
    }
    for llm in asked.values():
        assert resolve_window(llm, fallback=4_096).tokens == 1_000_000
        assert resolve_window(llm, fallback=4_096).provenance == "profile"
        made = WindowBudget.for_run(llm=llm, cfg=WindowBudgetConfig())
        assert made is not None
        assert made.window == 1_000_000
    assert resolve_window(1_000_000).provenance == "declared"
    assert resolve_window(ScriptedLLM(), fallback=4_096).provenance == "fallback"


@pytest.mark.parametrize("llm", [None, ScriptedLLM(), SimpleNamespace(profile={}), "my-model"])
def test_an_unknown_window_is_an_error_or_a_stated_fallback(llm: Any) -> None:
    """A guess of 170,000 never fires where 64,000 are there; the history grew to 1.4 million."""
    with pytest.raises(ConfigurationError, match="unknown"):
        resolve_window(llm)
    assert resolve_window(llm, fallback=64_000) == Window(tokens=64_000, provenance="fallback")
    assert WindowBudget.for_run(llm=llm, cfg=WindowBudgetConfig()) is None
    with pytest.raises(ConfigurationError, match="budget, or the window"):
        fit_messages([S, U()], counter=count_tokens)
    with pytest.raises(ConfigurationError, match="max_tokens is not set"):
        ContextConfig.for_window(None).validate()


def test_a_model_nobody_knows_is_cut_all_the_same() -> None:
    """An unknown name returned a million characters untouched and said nothing."""
    history = [S, *talk(2, words=60_000), U("so?")]
    with pytest.warns(CounterWarning, match="my-unknown-model"):
        counter = counter_for("my-unknown-model-of-the-window-cases")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fit_messages(history, budget=8_000, counter=counter)
    assert fitted.report.used <= 8_000
    assert fitted.report.exact is False
    assert fitted.report.counter.startswith("estimate")


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_short_messages_are_not_cut_for_their_number(entry_point: str) -> None:
    """A cap of twenty messages dropped the first one at 12 of 100 thousand tokens."""
    messages = [S, *talk(10, words=3), U("the twenty-first")]
    assert trimmed(entry_point, messages, 100_000) is messages
    assert HistoryCompactor.from_config(None, CompactionConfig()).compact(messages) is messages


# --- what is used --------------------------------------------------------------------------------


def test_two_numbers_for_what_is_used_become_one() -> None:
    """It fired at 16 %, or showed 100 % and never fired: one number was local, one the provider's.

    The anchored counter keeps to the provider's scale, the report names it, and both numbers and
    the one that is used can be read.
    """
    counter = AnchoredCounter(count_tokens)
    history = [S, *talk(30), U("so?")]
    local = count_messages(history, counter=count_tokens)
    counter.observe(local, 3 * local)
    counts = MessageCounts(counter)
    fitted = fit_messages(history, budget=2 * local, counts=counts)
    assert fitted.changed
    assert fitted.report.counter == "anchored:count_tokens"
    assert fitted.report.used <= 2 * local
    assert count_messages(fitted.messages, counter=counter) == fitted.report.used
    assert (counter.ratio, counter.scaled(100)) == (3.0, 300)
    # A number that cannot be right does not throw the scale away.
    counter.observe(40_000, 4_000_000)
    assert counter.ratio <= AnchoredCounter.HIGHEST


def test_schemas_are_part_of_what_is_used() -> None:
    """160 tools were shown as 0 and cost 67,000; what never shrinks must not loop but be said."""
    tools = [{"name": f"tool_{at}", "description": "does things " * 20} for at in range(40)]
    size = count_tools(tools, counter=count_tokens)
    assert size > 1_000
    with pytest.raises(ContextWindowExceeded) as caught:
        fit_messages([S, *talk(5), U()], budget=1_000, tools=tools, counter=count_tokens)
    assert caught.value.parts["tools and framing"] > 1_000
    fitted = fit_messages([S, *talk(20), U()], budget=size + 400, tools=tools, counter=count_tokens)
    assert fitted.changed
    assert fitted.report.fixed["tools"] == size
    assert fitted.report.used == count_messages(fitted.messages, tools) <= size + 400


def test_everything_that_is_sent_is_counted_once() -> None:
    """Only text was counted: the results of tools, the system message and the schemas were not."""
    tools = [{"name": f"tool_{at}", "description": "does things " * 100} for at in range(60)]
    system = {"role": "system", "content": "rule " * 4_000}
    result = "value " * 33_000
    history = [system, U(), A("1"), T("1", result), A(), U("so?")]
    used = fit_messages(history, budget=200_000, tools=tools, counter=count_tokens).report.used
    parts = (
        count_tokens(result)
        + count_tokens("rule " * 4_000)
        + count_tools(tools, counter=count_tokens)
    )
    assert parts <= used <= parts + 120
    compactor = HistoryCompactor(saying("One value."), keep_recent=2, trigger_tokens=30_000)
    compactor.compact(history)
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.reason == "compacted"
    assert compactor.last_outcome.tokens_before >= count_tokens(result)
