"""A memory saved and read back: JSON, pickle, copies, the context of a workflow."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import (
    Context,
    JsonPickleSerializer,
    JsonSerializer,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)

from llama_doubles import (
    LossyStore,
    calling,
    memory_of,
    recap_of,
    result,
    said,
    talk,
)
from llama_index_muntin import (
    CompactingMemory,
    WindowLedger,
)
from llama_index_muntin._memory import living
from llama_index_muntin.testing import StrictLLM
from muntin import (
    StateCorruptError,
)

pytestmark = pytest.mark.usefixtures("own_loop")


def _full() -> CompactingMemory:
    memory = memory_of(700, summarizer=recap_of("They agreed."), max_summary_tokens=90)
    memory.put(said("system", "Be brief."))
    memory.put_messages(
        [*talk(30), said("user", "go"), calling("c1", part=1), result("c1", "ok {x}"),
         calling("c2", form="openai"), result("c2", "fine")]
    )  # fmt: skip
    memory.get()
    return memory


def test_a_memory_survives_json() -> None:
    """A server that restarts goes on with the same conversation."""
    memory = _full()
    restored = CompactingMemory.from_dict(json.loads(memory.to_json()))

    assert restored.get_all() == memory.get_all()
    assert restored.get() == memory.get()
    assert restored.to_json() == memory.to_json()
    assert json.loads(memory.to_json())["log"]["version"] == "muntin.memory/1"


def test_a_memory_survives_pickle_and_copies() -> None:
    """`Memory` comes back from pickle empty."""
    memory = memory_of(700)
    memory.put_messages(talk(30))
    for other in (pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory)):
        assert other.get_all() == memory.get_all()
        assert other.get() == memory.get()
        other.put(said("user", "only here"))
        assert len(memory.get_all()) == 30


def test_a_memory_that_was_tampered_with_is_refused() -> None:
    """A saved memory that contradicts itself must not send a wrong history."""
    saved = json.loads(_full().to_json())
    saved["log"]["folded"] = 999
    with pytest.raises(StateCorruptError, match="999 are folded"):
        CompactingMemory.from_dict(saved)


class _Keeper(Workflow):
    @step
    async def keep(self, ctx: Context, ev: StartEvent) -> StopEvent:
        if ev.get("memory", None) is not None:
            await ctx.store.set("memory", ev.memory)
        return StopEvent(result=await ctx.store.get("memory"))


@pytest.mark.parametrize("serializer", [JsonSerializer, JsonPickleSerializer])
def test_a_memory_survives_the_context_of_a_workflow(serializer: Any) -> None:
    """Core drops the key `memory` when it cannot be written, and the conversation with it."""

    async def run() -> tuple[CompactingMemory, CompactingMemory]:
        workflow = _Keeper()
        memory = _full() if serializer is JsonSerializer else memory_of(500)
        memory.put(said("user", "last words"))
        ctx = Context(workflow)
        await workflow.run(ctx=ctx, memory=memory)
        saved = json.loads(json.dumps(ctx.to_dict(serializer=serializer())))
        living._names.clear()  # pyright: ignore[reportPrivateUsage] - another process knows none
        restored = Context.from_dict(workflow, saved, serializer=serializer())
        return memory, await restored.store.get("memory")

    memory, restored = asyncio.run(run())

    assert type(restored) is CompactingMemory
    assert restored is not memory
    assert restored.get_all() == memory.get_all()
    assert restored.get() == memory.get()


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("attached", ["nothing", "store", "ledger", "summarizer", "counter"])
def test_a_context_that_is_used_again_goes_on_with_the_very_memory(
    attached: str,
    again: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """From the second run on a copy took the messages, without store, ledger and counter."""
    store = LossyStore()
    parts: dict[str, Any] = {
        "nothing": {},
        "store": {"chat_store": store},
        "ledger": {"ledger": WindowLedger(window=4000, output_reserve=500)},
        "summarizer": {"summarizer": recap_of()},
        "counter": {"token_counter": len},
    }
    memory = memory_of(3000, **parts[attached])

    async def run() -> bool:
        agent: Any = FunctionAgent(llm=StrictLLM(["one", "two", "three"], window=8000))
        ctx = Context(agent)
        for at, asked in enumerate(("first", "second", "third")):
            given: dict[str, Any] = {"memory": memory} if again or not at else {}
            await agent.run(user_msg=asked, ctx=ctx, **given)
        return await ctx.store.get("memory") is memory

    assert asyncio.run(run())
    said_all = ["first", "one", "second", "two", "third", "three"]
    assert [message.content for message in memory.get_all()] == said_all
    if attached == "store":
        assert [m.content for m in asyncio.run(store.get_messages("chat_history"))] == said_all


def test_a_saved_form_is_the_memory_once_and_only_while_it_says_the_same() -> None:
    """Whoever goes back to what was saved, or branches off it, means a copy."""
    memory = memory_of()
    memory.put_messages(talk(4))
    saved = json.loads(json.dumps(memory.to_dict()))
    assert memory.to_dict() == saved
    assert CompactingMemory.from_dict(saved) is memory
    branch = CompactingMemory.from_dict(saved)
    assert branch is not memory
    assert branch.get_all() == memory.get_all()

    for other in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert CompactingMemory.from_dict(other.to_dict()) is other
    before = memory.to_dict()
    memory.put(said("user", "too much"))
    assert len(CompactingMemory.from_dict(before).get_all()) == 4
