"""Which models bind reasoning, and what becomes of it when the model changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from muntin import ContextWindowExceeded, count_messages, estimate_tokens, fit_messages
from muntin.adapting import Keeper, drive
from muntin.messages import (
    binds,
    bound_places,
    checks_prefix,
    holds_bound,
    reads,
    unreadable_places,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("rule", "model", "expected"),
    [
        ("signed", "claude-opus-5-5", True),
        ("signed", "claude-sonnet-5-5-20260901", True),
        ("signed", "us.anthropic.claude-haiku-5-5-v1:0", True),
        ("signed", "claude-fable-5.1", True),
        ("signed", "anthropic/claude-mythos-5-2", True),
        ("signed", "claude-fable-5", False),
        ("signed", "claude-opus-4-8", False),
        ("signed", "claude-sonnet-4-5-20250929", False),
        ("signed", "claude-3-7-sonnet-latest", False),
        ("signed", "gemini-3.1-pro", False),
        ("signed", "my-gateway-alias", True),
        ("signed", None, True),
        ("items", "gpt-6.2-sol", True),
        ("items", "openai/gpt-7", True),
        ("items", "gpt-6.1", False),
        ("items", "gpt-5.5-pro", False),
        ("items", "o4-mini", False),
        ("items", None, True),
    ],
)
def test_models_that_bind_are_known_by_name(rule: Any, model: str | None, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    """Taking reasoning from a model that does not check it makes its answers worse."""
    assert binds(rule, model) is expected
    if model != "my-gateway-alias" and model is not None and not model.startswith("gemini"):
        assert checks_prefix(model) is expected


@pytest.mark.parametrize(
    ("model", "wrote", "expected"),
    [
        ("claude-opus-5-5", "claude-opus-5-5-20260901", True),
        ("claude-opus-5-5", "claude-sonnet-5-5", False),
        ("claude-opus-5-5", "claude-haiku-5-5", True),
        ("claude-fable-5-1", "claude-opus-5", True),
        ("claude-opus-5", "claude-fable-5-1", False),
        ("claude-opus-4-1", "claude-sonnet-4-5", True),
        ("gpt-6.1", "gpt-6.2-sol", False),
        ("gpt-6.2-sol", "gpt-6.1", True),
        ("claude-opus-5-5", None, True),
        (None, "claude-opus-5-5", True),
    ],
)
def test_a_model_reads_its_own_reasoning_and_that_of_few_others(
    model: str | None,
    wrote: str | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Reasoning that is dropped by the provider is paid for and holds space."""
    assert reads(model, wrote) is expected


def answer(at: int, model: str) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": f"Thought {at}. " * 20, "signature": f"s{at}"}
    text = {"type": "text", "text": f"Parcel {at} is in Rome."}
    return {"role": "assistant", "model": model, "content": [block, text]}


def test_reasoning_of_another_model_is_left_out_while_it_is_asked() -> None:
    """A router that alternates models pays for reasoning that no model reads."""
    thread: list[dict[str, Any]] = []
    for at, model in enumerate(("claude-opus-5-5", "claude-sonnet-5-5") * 3):
        thread += [{"role": "user", "content": f"Where is {at}?"}, answer(at, model)]
    thread += [{"role": "user", "content": "And now?"}]

    class Model:
        name = "claude-opus-5-5"

        def schemas(self, tools: Any = ()) -> tuple[Any, ...]:
            return ()

        def division(self, given: Any, config: Any, settings: Any = None) -> None:
            return None

        def counter(self) -> Any:
            return estimate_tokens

    keeper = Keeper(budget=9000, counter=estimate_tokens)
    sent = drive(keeper.policy(keeper.facts(Model()), thread, None))  # pyright: ignore[reportArgumentType]
    assert unreadable_places(thread, "claude-opus-5-5") == (3, 7, 11)
    assert [at for at, one in enumerate(sent.messages) if holds_bound(one)] == [1, 5, 9]
    assert any("3 blocks of reasoning left out" in note for note in sent.notes)
    assert [holds_bound(one) for one in thread].count("signed") == 6
    fitted = fit_messages(thread, budget=420, model="claude-opus-5-5", counter=estimate_tokens)
    assert not unreadable_places(fitted.messages, "claude-opus-5-5")


def items(at: int) -> list[dict[str, Any]]:
    text = f"Parcel {at} is in Rome. " * 12
    return [
        {"role": "user", "content": f"Where is {at}? " * 12},
        {"type": "reasoning", "id": f"rs_{at}", "encrypted_content": "x", "summary": [
            {"type": "summary_text", "text": f"I look for {at}."}]},
        {"type": "message", "role": "assistant", "id": f"msg_{at}", "content": [
            {"type": "output_text", "text": text}]},
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["gpt-6.2-sol", None])
def test_no_reasoning_item_follows_the_first_change(model: str | None) -> None:
    """OpenAI drops such items in silence; they hold space that messages could have."""
    thread = [one for at in range(8) for one in items(at)] + [{"role": "user", "content": "So?"}]
    whole = count_messages(thread, counter=estimate_tokens)
    cut = 0
    for budget in range(60, whole, whole // 20):
        try:
            fitted = fit_messages(thread, budget=budget, model=model, counter=estimate_tokens)
        except ContextWindowExceeded:
            continue
        ids = [one["id"] for one in fitted.messages if one.get("type") == "reasoning"]
        assert ids == [f"rs_{at}" for at in range(len(ids))]
        change = next(
            at for at, one in enumerate(fitted.messages) if at >= len(thread) or one != thread[at]
        )
        behind = fitted.messages[change:]
        assert not any(one.get("type") == "reasoning" for one in behind)
        kept = {f"msg_{at}" for at in range(len(ids))}
        assert all(one.get("id") in kept or "id" not in one for one in behind)
        assert any("left out" in note for note in fitted.report.notes)
        cut += 1
    assert cut > 10


def test_reasoning_of_models_that_do_not_check_stays() -> None:
    """Older models use their reasoning behind any prefix."""
    thread = [one for at in range(8) for one in items(at)] + [{"role": "user", "content": "So?"}]
    fitted = fit_messages(thread, budget=400, model="gpt-5.5", counter=estimate_tokens)

    assert any(one.get("type") == "reasoning" for one in fitted.messages)
    assert bound_places(fitted.messages, "gpt-5.5") == ()


@pytest.mark.parametrize("thought", ["I look it up. " * 8, ""])
def test_plain_reasoning_of_tool_rounds_goes_back(thought: str) -> None:
    """DeepSeek and Kimi refuse a call whose reasoning is missing, also when it was empty."""
    thread: list[dict[str, Any]] = [{"role": "user", "content": "Find all parcels. " * 10}]
    for at in range(12):
        function = {"name": "look", "arguments": f'{{"key": {at}}}'}
        call = {"id": f"c{at}", "type": "function", "function": function}
        thread += [
            {"role": "assistant", "content": "", "reasoning_content": thought,
             "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": f"Parcel {at} is in Rome. " * 9},
        ]  # fmt: skip
    whole = count_messages(thread, counter=estimate_tokens)
    calls = 0
    for budget in range(90, whole, whole // 30):
        try:
            fitted = fit_messages(thread, budget=budget, counter=estimate_tokens, repair=True)
        except ContextWindowExceeded:
            continue
        for message in fitted.messages:
            if message.get("tool_calls"):
                calls += 1
                assert message["reasoning_content"] == thought
    assert calls > 30


def test_every_row_of_the_guide_names_a_test_that_exists() -> None:
    """A rule without a test is a promise that the next change breaks."""
    page = (ROOT / "docs" / "guide" / "current-models.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > 10
    for row in rows:
        found = re.search(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert found, row
        source = (ROOT / found[1]).read_text(encoding="utf-8")
        assert f"def {found[2]}(" in source, row
    untested = [line for line in page.splitlines() if line.startswith("| ") and "::" not in line]
    assert untested == ["| provider | rule | what muntin does | test |"]
