"""A workflow whose steps share one ledger, saved in one process and resumed in another."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core")

from llama_index_muntin import CompactingMemory, WindowLedger
from muntin import ConfigurationError, StateCorruptError

PAGE = Path(__file__).parents[2] / "docs" / "recipes" / "llama-index-workflow.md"

FIRST = """
async def main():
    flow = Support()
    questions = [f"How long are receipts of trip {n} kept?" for n in range(30)]
    ctx = await talk(flow, Context(flow), questions)
    return json.dumps(ctx.to_dict())


print(asyncio.run(main()))
"""

SECOND = """
import sys


async def main():
    flow = Support()
    ctx = Context.from_dict(flow, json.loads(sys.stdin.read()))
    await talk(flow, ctx, ["And of trip 3?"])
    memory = await ctx.store.get("memory")
    sent = [str(message.content) for message in flow.llm.requests[0]]
    ledger = WindowLedger.from_state(await ctx.store.get("ledger"))
    return {
        "messages": len(memory.get_all()),
        "tokens": flow.llm.tokens[0],
        "recalled": any("trip 3 kept" in text for text in sent),
        "parts": ledger.to_dict(),
    }


print(json.dumps(asyncio.run(main())))
"""


def run(script: str, given: str = "") -> str:
    """Run the workflow of the page in a process of its own."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)\nasync def main", text, re.DOTALL)
    assert found is not None
    done = subprocess.run(
        [sys.executable, "-c", found[1] + script],
        input=given, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_conversation_goes_on_in_another_process() -> None:
    """A server that restarts must find window, history and recap as they were."""
    saved = run(FIRST)
    again = json.loads(run(SECOND, saved))

    assert again["messages"] == 62
    assert again["tokens"] <= 3600
    assert again["recalled"]
    parts = again["parts"]
    assert parts["window"] == 4000
    sizes = ("output_reserve", "fixed", "question", "context", "history", "idle")
    assert sum(parts[name] for name in sizes) == 4000


def test_the_state_of_a_ledger_is_the_ledger() -> None:
    """What was granted and charged decides what the next step may take."""
    ledger = WindowLedger(window=8192, output_reserve=1024, fixed_tokens=168)
    ledger.expect_history(9000)
    ledger.context_room("where?")
    ledger.charge_context("where?", 1000)
    again = WindowLedger.from_state(json.loads(json.dumps(ledger.state())))

    assert again.to_dict() == ledger.to_dict()
    assert again.state() == ledger.state()
    assert again.history_room("where?") == ledger.history_room("where?")
    memory = CompactingMemory.from_defaults(ledger=again)
    assert memory.token_limit == again.history_quota


@pytest.mark.parametrize("broken", [{}, {"version": "muntin.ledger/0"}, {"window": 9}])
def test_a_state_that_is_none_is_refused(broken: dict[str, object]) -> None:
    """Half a ledger would divide a window that is not there."""
    with pytest.raises(StateCorruptError, match="saved ledger"):
        WindowLedger.from_state(broken)
    state = WindowLedger(window=8192).state()
    with pytest.raises(StateCorruptError, match="queries"):
        WindowLedger.from_state({key: state[key] for key in state if key != "queries"})


def test_a_ledger_with_a_counter_of_ones_own_needs_it_again() -> None:
    """Counted by another rule, the parts would no longer add up to the window."""
    state = WindowLedger(window=8192, counter=len).state()

    with pytest.raises(ConfigurationError, match="token_counter="):
        WindowLedger.from_state(state)
    assert WindowLedger.from_state(state, counter=len).counter("abc") == 3
