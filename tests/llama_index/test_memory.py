"""A memory that keeps everything, sends what fits, and never loses a message."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import BaseMemory
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_index.core.workflow import (
    Context,
    JsonPickleSerializer,
    JsonSerializer,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from pydantic import PrivateAttr

from llama_doubles import EXACT, calling, result, said, sentence, talk
from llama_index_muntin import (
    CompactingMemory,
    CompactionWarning,
    WindowLedger,
    _living,  # pyright: ignore[reportPrivateUsage] - to forget who lives
)
from llama_index_muntin._log import ConversationLog
from llama_index_muntin.testing import StrictLLM
from muntin import (
    ConfigurationError,
    ContextWindowExceeded,
    HistoryCompactor,
    StateCorruptError,
    SummaryError,
    ToolResultStore,
    count_messages,
)
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems

if TYPE_CHECKING:
    from conftest import Door

pytestmark = pytest.mark.usefixtures("own_loop")


def memory_of(limit: int = 1000, **more: Any) -> CompactingMemory:
    """Make a memory that counts exactly."""
    return CompactingMemory.from_defaults(**{"token_limit": limit, "token_counter": EXACT, **more})


def size(messages: list[ChatMessage]) -> int:
    """Count messages as they are sent."""
    return count_messages(messages, counter=EXACT)


def recap_of(text: str = "They spoke of travel rules.") -> Any:
    """Make a summariser that always says the same."""
    return lambda _text, _instruction: text


# --- the verbs -----------------------------------------------------------------------------------


def test_what_is_put_is_what_is_got(door: Door) -> None:
    """Under the limit a memory is a list."""
    memory = memory_of()
    messages = talk(6)
    for message in messages:
        door.call(memory, "put", message)

    assert door.call(memory, "get") == messages
    assert door.call(memory, "get_all") == messages


def test_set_replaces_and_reset_empties(door: Door) -> None:
    """Engines set the history a caller gives them."""
    memory = memory_of()
    door.call(memory, "put_messages", talk(4))
    door.call(memory, "set", talk(2))
    assert door.call(memory, "get_all") == talk(2)

    door.call(memory, "reset")
    assert door.call(memory, "get") == door.call(memory, "get_all") == []


def test_it_is_a_memory_that_is_never_falsy() -> None:
    """Core tests `memory or Memory.from_defaults(...)`: an empty one would be replaced."""
    memory = memory_of()

    assert isinstance(memory, BaseMemory)
    assert bool(memory)
    assert not hasattr(memory, "__len__")


def test_messages_go_in_and_come_out_as_copies(door: Door) -> None:
    """Agents rewrite the text of the last message they get."""
    memory = memory_of()
    message = said("user", "hello", deep={"list": [1]})
    door.call(memory, "put", message)
    block = message.blocks[0]
    assert isinstance(block, TextBlock)
    block.text = "changed outside"
    for verb in ("get", "get_all"):
        taken: Any = door.call(memory, verb)
        taken[0].blocks[0].text = "rewritten"
        taken[0].additional_kwargs["deep"]["list"].append(2)

    assert door.call(memory, "get") == [said("user", "hello", deep={"list": [1]})]


def test_reading_changes_nothing(door: Door) -> None:
    """Agents read (steps + 2) times a turn."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return "They spoke."

    memory = memory_of(600, summarizer=summarize)
    door.call(memory, "put_messages", talk(40))
    before, calls = memory.to_json(), len(asked)
    first = door.call(memory, "get")

    assert [door.call(memory, "get") for _ in range(3)] == [first] * 3
    assert (memory.to_json(), len(asked)) == (before, calls)


def test_unknown_arguments_change_nothing(door: Door) -> None:
    """Engines pass what other memories know."""
    memory = memory_of()
    door.call(memory, "put", said("user", "hi"))

    assert door.call(memory, "get", input="x", initial_token_count=0, anything=1) == [
        said("user", "hi")
    ]


# --- the limit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [200, 500, 2000, 3000, 5000])
def test_a_long_chat_uses_most_of_its_limit_and_never_more(limit: int) -> None:
    """`Memory` falls to 1 % of a limit of 3000 after each flush."""
    memory = memory_of(limit, summarizer=recap_of())
    shares: list[float] = []
    for at, message in enumerate(talk(220)):
        memory.put(message)
        if at % 3:
            continue
        used = size(memory.get())
        assert used <= limit
        if sum(size([one]) for one in talk(3)) * at / 3 > 2 * limit:
            shares.append(used / limit)

    assert len(memory.get_all()) == 220
    assert min(shares, default=1.0) >= (0.7 if limit >= 2000 else 0.4)


def test_system_messages_and_the_newest_question_stay_word_for_word(door: Door) -> None:
    """Buffers drop the system message first."""
    memory = memory_of(400)
    door.call(memory, "put", said("system", "Never book without asking."))
    door.call(memory, "put_messages", talk(60))
    question = said("user", "May I book now? " + sentence(3))
    door.call(memory, "put", question)
    sent: Any = door.call(memory, "get")

    assert sent[0] == said("system", "Never book without asking.")
    assert sent[-1] == question


def test_a_system_message_put_later_is_not_folded_away() -> None:
    """`Memory` archives it with the turn it stands in."""
    memory = memory_of(400, summarizer=recap_of())
    memory.put_messages([*talk(6), said("system", "From now on answer in verse."), *talk(50)])

    assert "From now on answer in verse." in [message.content for message in memory.get()]


def test_what_must_stay_and_does_not_fit_is_an_error_that_says_so(door: Door) -> None:
    """Cut in silence, or sent over the limit, it would be somebody else's error."""
    memory = memory_of(50)
    door.call(memory, "put", said("user", "word " * 200))
    with pytest.raises(ContextWindowExceeded) as refused:
        door.call(memory, "get")

    assert refused.value.needed > refused.value.available
    assert len(memory.get_all()) == 1


def test_a_history_without_a_user_does_not_become_empty() -> None:
    """`Memory` empties its queue when nobody of the user's is in it."""
    memory = memory_of(200)
    memory.put_messages([calling("c1"), result("c1", "part of it " * 400)])
    sent = memory.get()

    assert sent
    assert size(sent) <= 200
    assert pairing_problems([view(message) for message in sent]) == ()


def test_a_prefix_is_deducted(door: Door) -> None:
    """SimpleChatEngine says how large its prefix is."""
    memory = memory_of(600)
    door.call(memory, "put_messages", talk(10))
    sent: Any = door.call(memory, "get", initial_token_count=250)

    assert size(sent) <= 350


def test_a_prefix_over_the_limit_is_an_error_with_the_parts(door: Door) -> None:
    """Another memory says "Initial token count exceeds token limit" and no number."""
    memory = memory_of(100)
    with pytest.raises(ContextWindowExceeded) as refused:
        door.call(memory, "get", initial_token_count=101)

    assert refused.value.parts == {"initial_token_count": 101, "token_limit": 100}


@pytest.mark.parametrize("shared", [True, False])
def test_a_question_that_was_not_put_makes_room_for_itself(
    door: Door,
    shared: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """History filled the limit to the brim, and the question came on top."""
    ledger = WindowLedger(window=2000, output_reserve=200) if shared else None
    memory = memory_of(500, ledger=ledger)
    door.call(memory, "put_messages", talk(60))
    question = "word " * 300
    for asked in (question, said("user", question)):
        sent: Any = door.call(memory, "get", input=asked)
        assert size([*sent, said("user", question)]) <= 500
    with pytest.raises(ContextWindowExceeded) as refused:
        door.call(memory, "get", input="word " * 600)

    assert refused.value.parts["question"] > 500


@pytest.mark.parametrize("put", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_what_is_asked_for_is_recalled_put_or_not(
    door: Door,
    put: bool,  # noqa: FBT001 - pytest's own way
    shared: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """Engines ask before they put; older messages came back for the question of before."""
    fact = "The violin of Aunt Petronella is kept in the cellar of the bakery."
    asked = "Where is the violin of Aunt Petronella kept?"
    ledger = WindowLedger(window=1600, output_reserve=200, fixed_tokens=50) if shared else None
    memory = memory_of(8000, ledger=ledger)
    history = [*talk(40), said("user", fact), said("assistant", "Good to know."), *talk(60)]
    door.call(memory, "put_messages", history)
    more: dict[str, Any] = {} if shared else {"initial_token_count": 6800}
    if put:
        door.call(memory, "put", said("user", asked))
    sent: Any = door.call(memory, "get", input=asked, **more)

    assert fact in [message.content for message in sent]


@pytest.mark.parametrize("limit", [300, 900, None])
def test_a_limit_holds_beside_a_ledger(door: Door, limit: int | None) -> None:
    """A limit somebody wrote down was ignored where a ledger was given, too."""
    ledger = WindowLedger(window=8000, output_reserve=500, fixed_tokens=50)
    memory = CompactingMemory.from_defaults(
        token_limit=limit, ledger=ledger, token_counter=EXACT, chat_history=talk(300)
    )
    sent: Any = door.call(memory, "get")

    assert size(sent) <= (limit or ledger.spendable)
    assert size(sent) > 0.4 * (limit or ledger.history_quota)
    memory.token_limit = 200
    sent = door.call(memory, "get")
    assert size(sent) <= 200


def test_engines_can_size_their_prefix() -> None:
    """Without a `tokenizer_fn` an engine says that its prefix is empty."""
    memory = memory_of()

    assert len(memory.tokenizer_fn("hello world")) == EXACT("hello world") == 2
    assert len(memory.tokenizer_fn("<|endoftext|>")) == EXACT("<|endoftext|>")


def test_a_giant_tool_result_is_shortened_with_its_call_intact() -> None:
    """`Memory` returns it whole, twenty times over the limit."""
    store = ToolResultStore.in_memory()
    memory = memory_of(1000, results=store)
    giant = " ".join(f"entry-{n}" for n in range(8000))
    memory.put_messages(
        [said("user", "read"), calling("c1"), result("c1", giant), said("assistant", "Done.")]
    )
    sent = memory.get()

    assert [message.role.value for message in sent] == ["user", "assistant", "tool", "assistant"]
    assert size(sent) <= 1000
    assert "id=tr_" in str(sent[2].content)
    assert memory.get_all()[2].content == giant


@pytest.mark.parametrize("form", ["block", "openai", "anthropic", "selection"])
def test_no_limit_parts_a_call_from_its_results(form: str) -> None:
    """A buffer that cuts by messages begins with a tool result one time in five."""
    messages = [said("system", "Be brief.")]
    for at in range(9):
        messages += [
            said("user", f"Question {at}?"),
            calling(f"c{at}", form=form, part=at),
            result(f"c{at}", f"found {at} " * 40),
            said("assistant", f"Answer {at}."),
        ]
    for limit in (120, 260, 700):
        memory = memory_of(limit, summarizer=recap_of("Earlier."))
        for message in messages:
            memory.put(message)
            sent = memory.get()
            assert pairing_problems([view(one) for one in sent]) == ()
            assert size(sent) <= limit
        restored = CompactingMemory.from_json(memory.to_json())
        assert restored.get() == memory.get()


# --- the recap -----------------------------------------------------------------------------------


def test_the_recap_stands_for_what_is_folded(door: Door) -> None:
    """The model reads it in front of what is kept word for word."""
    memory = memory_of(600, summarizer=recap_of("They agreed on 80 euros."))
    door.call(memory, "put", said("system", "Be brief."))
    door.call(memory, "put_messages", talk(60))
    sent: Any = door.call(memory, "get")

    assert sent[0] == said("system", "Be brief.")
    assert sent[1].role is MessageRole.USER
    assert sent[1].content == "[Recap] They agreed on 80 euros."
    assert sent[2:] == talk(60)[-len(sent) + 2 :]


def test_a_model_is_asked_now_and_then_not_every_turn(door: Door) -> None:
    """`ChatSummaryMemoryBuffer` asks in 90 of 90 turns once it is over its limit."""
    llm = StrictLLM(lambda _: "They spoke of travel rules.", window=32_000)
    memory = memory_of(2000, summarizer=llm)
    for message in talk(300):
        door.call(memory, "put", message)

    assert 1 <= llm.calls <= 25
    assert len(memory.get_all()) == 300


def test_a_call_that_is_folded_is_told_to_the_summariser() -> None:
    """The content of a message that only calls is None, and was skipped."""
    texts: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        texts.append(text)
        return "They booked."

    memory = memory_of(400, summarizer=summarize)
    memory.put_messages(
        [said("user", "book"), calling("c1", "book_flight", flight="HAT136"), result("c1", "ok"),
         *talk(40)]
    )  # fmt: skip

    assert "book_flight" in texts[0]
    assert "HAT136" in texts[0]


@pytest.mark.parametrize("reply", [SummaryError("down"), RuntimeError("no key"), "", "  \n"])
def test_a_summariser_that_fails_loses_nothing(door: Door, reply: Any) -> None:
    """20 messages before, 16 after: the newest are gone with `ChatSummaryMemoryBuffer`."""

    def summarize(text: str, instruction: str) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    memory = memory_of(400, summarizer=summarize)
    messages = talk(20)
    with pytest.warns(CompactionWarning, match="all messages are kept"):
        door.call(memory, "put_messages", messages)

    sent: Any = door.call(memory, "get")
    assert door.call(memory, "get_all") == messages
    assert size(sent) <= 400
    assert messages[-2] in sent


def test_a_recap_outlives_a_summariser_that_fails_later() -> None:
    """An empty reply must not wipe what was summarised before."""
    replies = ["They agreed on 80 euros.", *[""] * 40]
    memory = memory_of(500, summarizer=lambda _text, _instruction: replies.pop(0))
    memory.put_messages(talk(20))
    with pytest.warns(CompactionWarning):
        memory.put_messages(talk(30))

    assert "[Recap] They agreed on 80 euros." in [one.content for one in memory.get()]


def _put_one_by_one(memory: CompactingMemory, messages: list[ChatMessage]) -> None:
    for message in messages:
        memory.put(message)


def test_a_summariser_that_fails_is_not_asked_at_every_turn() -> None:
    """A model that is down must not be paid for at every message."""
    calls: list[int] = []

    def summarize(text: str, instruction: str) -> str:
        calls.append(1)
        raise SummaryError("down")

    memory = memory_of(1000, summarizer=summarize)
    with pytest.warns(CompactionWarning):
        _put_one_by_one(memory, talk(60))

    assert len(calls) <= 20


def test_a_slow_summary_neither_loses_nor_covers_what_arrives_meanwhile() -> None:
    """A user writes on while the model summarises."""

    async def summarize(text: str, instruction: str) -> str:
        await asyncio.sleep(0.05)
        return "They spoke."

    async def chat() -> CompactingMemory:
        memory = memory_of(500, summarizer=summarize)
        await memory.aput_messages(talk(11))
        first = asyncio.create_task(memory.aput(said("user", sentence(50))))
        await asyncio.sleep(0.01)
        await memory.aput(said("assistant", "arrived meanwhile"))
        await first
        return memory

    memory = asyncio.run(chat())

    assert len(memory.get_all()) == 13
    assert memory.get()[-1] == said("assistant", "arrived meanwhile")
    assert memory.log.recap


def test_a_fold_without_a_model_is_not_made_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences of a long chat were weighed for half a second while nobody else could go on."""
    where: list[threading.Thread] = []
    fold = HistoryCompactor.fold

    def noted(self: HistoryCompactor, history: Any) -> Any:
        where.append(threading.current_thread())
        return fold(self, history)

    monkeypatch.setattr(HistoryCompactor, "fold", noted)
    memory = memory_of(500)
    asyncio.run(memory.aput_messages(talk(40)))

    assert memory.log.recap
    assert where
    assert threading.main_thread() not in where


def test_a_cancelled_put_leaves_the_message_and_lets_others_fold() -> None:
    """A client that goes away in the middle must not lock the memory."""

    async def summarize(text: str, instruction: str) -> str:
        await asyncio.sleep(0.2)
        return "They spoke."

    async def chat() -> CompactingMemory:
        memory = memory_of(500, summarizer=summarize)
        task = asyncio.create_task(memory.aput_messages(talk(30)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await memory.aput(said("user", "still here?"))
        return memory

    memory = asyncio.run(chat())

    assert len(memory.get_all()) == 31
    assert memory.log.recap


# --- braces, concurrency, cost -------------------------------------------------------------------


def test_sixty_puts_at_once_store_sixty_in_order() -> None:
    """`Memory` stores 4 of 60 and raises nothing."""

    async def chat() -> CompactingMemory:
        memory = memory_of(100_000)
        await memory.aput(said("user", "warm-up"))
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        return memory

    stored = [message.content for message in asyncio.run(chat()).get_all()]

    assert stored == ["warm-up", *(f"m{at}" for at in range(60))]


def test_twenty_first_puts_at_once_store_twenty() -> None:
    """The first use of a fresh `Memory` by 20 tasks raises 20 times."""

    async def chat() -> CompactingMemory:
        memory = memory_of(300, summarizer=recap_of())
        await asyncio.gather(*(memory.aput(said("user", sentence(at))) for at in range(20)))
        return memory

    assert len(asyncio.run(chat()).get_all()) == 20


def test_threads_that_put_at_once_lose_nothing() -> None:
    """Streaming engines write the answer from a thread of their own."""
    memory = memory_of(800, summarizer=recap_of())

    def work(name: int) -> None:
        for at in range(25):
            memory.put(said("user", f"{name}-{at} {sentence(at)}"))
            memory.get()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contents = [str(message.content) for message in memory.get_all()]

    assert len(contents) == 150
    for name in range(6):
        mine = [text for text in contents if text.startswith(f"{name}-")]
        assert mine == sorted(mine, key=lambda text: int(text.split()[0].split("-")[1]))


def test_a_sync_verb_works_inside_a_running_loop() -> None:
    """Core calls `get` from coroutines."""

    async def chat() -> int:
        memory = memory_of(400, summarizer=recap_of())
        memory.put_messages(talk(30))
        return len(memory.get())

    assert asyncio.run(chat()) > 1


def test_a_turn_costs_the_same_however_long_the_chat_is() -> None:
    """Each `get` of a buffer reads and counts everything again."""

    def turns(memory: CompactingMemory, count: int) -> float:
        begun = time.perf_counter()
        for at in range(count):
            memory.put(said("user", sentence(at)))
            memory.get()
        return (time.perf_counter() - begun) / count

    memory = memory_of(1500, summarizer=recap_of())
    memory.put_messages(talk(100))
    turns(memory, 40)
    early = min(turns(memory, 50) for _ in range(3))
    for message in talk(700):
        memory.put(message)
    late = min(turns(memory, 50) for _ in range(3))

    assert late < 4 * early


@pytest.mark.slow
def test_a_read_of_two_thousand_messages_takes_no_time() -> None:
    """It was reported as a minute, and is quadratic still."""
    memory = memory_of(2000, summarizer=recap_of())
    for message in talk(2000):
        memory.put(message)
    begun = time.perf_counter()
    memory.get()

    assert time.perf_counter() - begun < 0.05


# --- saved and read back -------------------------------------------------------------------------


def _full() -> CompactingMemory:
    memory = memory_of(700, summarizer=recap_of("They agreed."), max_summary_tokens=90)
    memory.put(said("system", "Be brief."))
    memory.put_messages(
        [*talk(30), said("user", "go"), calling("c1", part=1), result("c1", "ok {x}"),
         calling("c2", form="openai"), result("c2", "fine")]
    )  # fmt: skip
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
        _living._names.clear()  # pyright: ignore[reportPrivateUsage] - another process knows none
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
    store = SlowStore()
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


# --- settings ------------------------------------------------------------------------------------


def test_what_is_set_later_counts() -> None:
    """A store or a ledger that is assigned and ignored loses a conversation in silence."""
    ledger, store = WindowLedger(window=3000, output_reserve=500), SlowStore()
    memory = memory_of(600)
    memory.put_messages(talk(2))
    memory.ledger, memory.chat_store, memory.summarizer = ledger, store, recap_of("Set later.")
    memory.put_messages(talk(60))

    assert len(asyncio.run(store.get_messages("chat_history"))) == 62
    assert "Set later." in memory.log.recap
    memory.get()
    assert ledger.to_dict()["history"] > 0


@pytest.mark.parametrize(
    "wrong", [{"ledger": "mine"}, {"chat_store": SimpleChatStore()}, {"max_sumary_tokens": 90}]
)
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, Any]) -> None:
    """They were accepted, and failed at the first message or never."""
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name):
        memory_of(500, **wrong)
    memory = memory_of(500)
    if name in CompactingMemory.model_fields:
        with pytest.raises(ConfigurationError, match=name):
            setattr(memory, name, wrong[name])
        assert getattr(memory, name) is None


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("verb", ["put", "put_messages", "set"])
def test_what_is_no_message_is_refused_and_nothing_is_kept(
    door: Door,
    verb: str,
    stored: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """It was an AttributeError, at the door or when it was sent."""
    memory = memory_of(500, chat_store=SlowStore() if stored else None)
    with pytest.raises(ConfigurationError, match="str"):
        door.call(memory, verb, "text" if verb == "put" else [said("user", "hi"), "text"])

    assert door.call(memory, "get_all") == []


@pytest.mark.parametrize("way", ["put", "set", "store", "log"])
def test_half_characters_never_leave_a_memory(door: Door, way: str) -> None:
    """No provider and no database takes a lone surrogate."""
    broken = [said("user", "half \ud83d", note="\udc00"), calling("c1", part="\ud800")]
    broken.append(result("c1", "half \ud83d"))
    store = SlowStore()
    if way == "store":
        asyncio.run(store.set_messages("chat_history", broken))
    log = ConversationLog(messages=broken) if way == "log" else ConversationLog()
    memory = CompactingMemory(
        token_limit=500, log=log, chat_store=store if way in ("put", "store") else None
    )
    if way in ("put", "set"):
        door.call(memory, "set" if way == "set" else "put_messages", broken)

    for verb in ("get", "get_all"):
        taken: Any = door.call(memory, verb)
        assert len(taken) == 3
        for message in taken:
            json.dumps(message.model_dump(mode="json"), ensure_ascii=False).encode()
    if way == "put":
        for message in asyncio.run(store.get_messages("chat_history")):
            str(message.content).encode()


# --- stores --------------------------------------------------------------------------------------


class SlowStore(AsyncDBChatStore):
    """Keep messages in a dict, and lose those that are written while another write is going on."""

    _rows: dict[str, list[ChatMessage]] = PrivateAttr(default_factory=dict)

    async def get_messages(
        self, key: str, status: Any = None, limit: Any = None, offset: Any = None
    ) -> list[ChatMessage]:
        return list(self._rows.get(key, []))

    async def count_messages(self, key: str, status: Any = None) -> int:
        return len(self._rows.get(key, []))

    async def add_message(
        self, key: str, message: ChatMessage, status: Any = MessageStatus.ACTIVE
    ) -> None:
        await self.add_messages(key, [message])

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
    ) -> None:
        read = list(self._rows.get(key, []))
        await asyncio.sleep(0.001)
        self._rows[key] = [*read, *messages]

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
    ) -> None:
        self._rows[key] = list(messages)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        return self._rows[key].pop(idx)

    async def delete_messages(self, key: str, status: Any = None) -> None:
        self._rows.pop(key, None)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        return [self._rows[key].pop(0) for _ in range(n)]

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        return []

    async def get_keys(self) -> list[str]:
        return list(self._rows)


def test_a_store_is_written_through_and_read_back(door: Door) -> None:
    """A conversation lives as long as its store."""
    store = SlowStore()
    memory = memory_of(500, chat_store=store, session_id="ada")
    door.call(memory, "put_messages", talk(20))
    door.call(memory, "put", said("user", "and now?"))
    other = memory_of(500, chat_store=store, session_id="ada")

    assert door.call(other, "get_all") == [*talk(20), said("user", "and now?")]
    assert size(door.call(other, "get")) <= 500  # pyright: ignore[reportArgumentType] - messages


def test_making_a_memory_erases_nothing(door: Door) -> None:
    """Creating a summary buffer over a stored history emptied it."""
    store = SlowStore()
    asyncio.run(store.set_messages("ada", talk(5)))
    memory = memory_of(500, chat_store=store, session_id="ada")

    assert len(asyncio.run(store.get_messages("ada"))) == 5
    assert door.call(memory, "get_all") == talk(5)


def test_one_session_does_not_see_another(door: Door) -> None:
    """One store, many users."""
    store = SlowStore()
    ada, bob = (memory_of(500, chat_store=store, session_id=name) for name in ("ada", "bob"))
    door.call(ada, "put", said("user", "alpha"))
    door.call(bob, "put", said("user", "beta"))

    assert door.call(bob, "get") == [said("user", "beta")]


def test_what_another_process_writes_is_seen(door: Door) -> None:
    """Two servers may serve one conversation."""
    store = SlowStore()
    one, other = (memory_of(500, chat_store=store, session_id="ada") for _ in range(2))
    door.call(one, "put", said("user", "first"))
    door.call(other, "put", said("assistant", "second"))

    assert door.call(one, "get") == [said("user", "first"), said("assistant", "second")]


def test_set_and_reset_reach_the_store(door: Door) -> None:
    """A store that keeps what was reset brings it back after a restart."""
    store = SlowStore()
    memory = memory_of(500, chat_store=store, session_id="ada")
    door.call(memory, "set", talk(4))
    assert len(asyncio.run(store.get_messages("ada"))) == 4
    door.call(memory, "reset")

    assert asyncio.run(store.get_messages("ada")) == []


def test_a_read_that_is_cancelled_locks_nobody_out() -> None:
    """A client that gave up while another thread wrote left the memory locked for ever."""
    entered, done = threading.Event(), threading.Event()

    class Held(SlowStore):
        async def add_messages(
            self, key: str, messages: list[ChatMessage], status: Any = MessageStatus.ACTIVE
        ) -> None:
            entered.set()
            await asyncio.to_thread(done.wait, 20)
            await super().add_messages(key, messages)

    memory = memory_of(500, chat_store=Held())

    async def give_up() -> None:
        reading = asyncio.create_task(memory.aget())
        await asyncio.sleep(0.02)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    writer = threading.Thread(target=memory.put, args=(said("user", "hi"),), daemon=True)
    writer.start()
    assert entered.wait(20)
    asyncio.run(give_up())
    done.set()
    writer.join(20)
    reader = threading.Thread(target=memory.get, daemon=True)
    reader.start()
    reader.join(20)

    assert not reader.is_alive()
    assert not writer.is_alive()


def test_a_store_that_holds_the_same_is_not_read_again() -> None:
    """Each put and each get copied the whole conversation."""
    reads: list[int] = []

    class Counting(SlowStore):
        async def get_messages(
            self, key: str, status: Any = None, limit: Any = None, offset: Any = None
        ) -> list[ChatMessage]:
            reads.append(1)
            return await super().get_messages(key)

    memory = memory_of(3000, chat_store=Counting())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConversationLog, "all", lambda _: pytest.fail("copied as a whole"))
        for message in talk(20):
            memory.put(message)
            memory.get()

    assert len(reads) == 1


def test_sixty_puts_at_once_all_reach_a_store_that_loses_parallel_writes() -> None:
    """Silent loss is the store's, but whoever writes to it one by one does not suffer it."""

    async def chat() -> tuple[list[ChatMessage], list[ChatMessage]]:
        store = SlowStore()
        memory = memory_of(100_000, chat_store=store, session_id="ada")
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        return await store.get_messages("ada"), await memory.aget_all()

    stored, seen = asyncio.run(chat())

    assert [message.content for message in stored] == [f"m{at}" for at in range(60)]
    assert seen == stored


def test_sixty_puts_at_once_all_reach_the_default_store_of_llamaindex() -> None:
    """The same 60 puts leave 4 messages behind when `Memory` makes them."""

    async def chat() -> int:
        store = SQLAlchemyChatStore(table_name="t")
        memory = memory_of(100_000, chat_store=store, session_id="ada")
        await asyncio.gather(*(memory.aput(said("user", f"m{at}")) for at in range(60)))
        count = await store.count_messages("ada", None)
        await store._async_engine.dispose()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess] - it has no other way to close
        return count

    assert asyncio.run(chat()) == 60


def test_threads_and_loops_take_turns_at_a_store() -> None:
    """A sync put inside a loop runs in a loop of its own."""
    store = SlowStore()
    memory = memory_of(100_000, chat_store=store, session_id="ada")
    threads = [
        threading.Thread(
            target=_put_one_by_one,
            args=(memory, [said("user", f"{n}-{at}") for at in range(8)]),
        )
        for n in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(asyncio.run(store.get_messages("ada"))) == len(memory.get_all()) == 32


# --- where the limit comes from ------------------------------------------------------------------


def test_the_limit_comes_from_the_model() -> None:
    """What the model writes is not for history, and neither is all of the rest."""
    small = CompactingMemory.from_defaults(llm=StrictLLM(window=8192, num_output=4096))
    large = CompactingMemory.from_defaults(llm=StrictLLM(window=8000, num_output=256))

    assert small.token_limit == 3072
    assert large.token_limit == 5808


def test_a_model_that_reports_nonsense_gets_a_reserve_that_leaves_room() -> None:
    """Some integrations report the window as the output, or the output as the window."""
    memory = CompactingMemory.from_defaults(llm=StrictLLM(window=8192, num_output=8192))

    assert memory.token_limit == 3072


def test_no_limit_is_an_error_not_a_guess() -> None:
    """A default of 3000 or 30,000 is somebody's guess."""
    with pytest.raises(ConfigurationError, match="token_limit, llm or ledger"):
        CompactingMemory.from_defaults()


def test_engines_can_make_one_themselves() -> None:
    """`memory_cls` is called with a history and a limit."""
    llm = StrictLLM(["Hello."], window=2000)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory_cls=CompactingMemory)

    assert str(engine.chat("Hi")) == "Hello."


def test_the_prefix_of_a_simple_engine_and_its_history_fit_the_window() -> None:
    """The engine tells its prefix, so that both together stay inside."""
    llm = StrictLLM(lambda _: "An answer. " * 10, window=2000, num_output=200)
    memory = CompactingMemory.from_defaults(llm=llm, token_limit=1700, summarizer=recap_of())
    engine = SimpleChatEngine.from_defaults(
        llm=llm, memory=memory, system_prompt="Be brief. " * 100
    )
    for at in range(40):
        engine.chat(sentence(at))

    assert llm.calls == 40
    assert max(llm.tokens) <= 1800


def test_a_tokenizer_like_those_of_other_memories_is_taken() -> None:
    """People bring the one they have."""
    memory = CompactingMemory.from_defaults(token_limit=50, tokenizer_fn=str.split)

    assert len(memory.tokenizer_fn("three small words")) == 3


def test_a_ledger_of_another_kind_is_refused() -> None:
    """A mistaken object must be found at construction."""
    with pytest.raises(ValueError, match="WindowLedger"):
        CompactingMemory(token_limit=5, ledger="mine")


def test_a_restored_memory_can_be_given_its_ledger_again() -> None:
    """Shared objects are not saved; the budget is, as a number."""
    ledger = WindowLedger(window=4000, output_reserve=500)
    memory = CompactingMemory.from_defaults(ledger=ledger)
    saved = memory.to_dict()

    assert saved["token_limit"] == ledger.history_quota
    assert CompactingMemory.from_dict(saved, ledger=ledger).ledger is ledger
    assert copy.deepcopy(memory).ledger is ledger
