"""Context, history and answer share one window, in whichever order they are asked for."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import pickle
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms import types
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine

from llama_doubles import EXACT, FixedRetriever, rules, said, sentence, talk_of
from llama_index_muntin import BudgetPostprocessor, CompactingMemory, WindowLedger
from llama_index_muntin.testing import StrictLLM
from muntin import ConfigurationError, ContextWindowExceeded, count_messages

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("own_loop")

ENGINES = (ContextChatEngine, CondensePlusContextChatEngine)
QUESTION = "What is the cap in rule 7?"


def ledger_of(**more: Any) -> WindowLedger:
    """Make a ledger that counts exactly."""
    return WindowLedger(
        **{"window": 8192, "output_reserve": 1024, "fixed_tokens": 168, "counter": EXACT, **more}
    )


# --- the account ---------------------------------------------------------------------------------


def test_the_account_adds_up_to_the_window() -> None:
    """A ledger whose parts do not sum to the window hides where tokens went."""
    ledger = ledger_of()
    ledger.charge_context(QUESTION, 1000)
    ledger.charge_history(QUESTION, 2000)
    account = ledger.to_dict()

    parts = ("output_reserve", "fixed", "question", "context", "history", "idle")
    assert sum(account[part] for part in parts) == account["window"] == 8192


def test_who_comes_second_takes_what_is_left() -> None:
    """No order may overrun the window."""
    rng = random.Random(3)
    for _ in range(300):
        ledger = ledger_of(window=rng.randint(2000, 9000), rag_ratio=rng.random())
        ledger.expect_history(rng.randint(0, 9000))
        question = sentence(rng.randint(0, 50))
        taken = 0
        for party in rng.sample(("context", "history"), 2):
            if party == "context":
                room = ledger.context_room(question)
                used = rng.randint(0, room)
                ledger.charge_context(question, used)
            else:
                room = ledger.history_room(question)
                used = rng.randint(0, room)
                ledger.charge_history(question, used)
            taken += used
        asked = EXACT(question) + 4
        assert taken + asked <= ledger.spendable


def test_a_turn_that_failed_costs_room_but_never_the_window() -> None:
    """An engine that raises half-way leaves charges behind; nobody tells the ledger."""
    rng = random.Random(5)
    for _ in range(300):
        ledger = ledger_of(window=4000)
        for turn in range(6):
            order = rng.choice((("context", "history"), ("history", "context")))
            fails_after = rng.choice((0, 1, 2, 2))
            used = {"context": 0, "history": 0}
            for party in order[:fails_after]:
                room = getattr(ledger, f"{party}_room")(f"q{turn}")
                used[party] = rng.randint(0, room)
                getattr(ledger, f"charge_{party}")(f"q{turn}", used[party])
            if fails_after == 2:
                assert sum(used.values()) + EXACT(f"q{turn}") + 4 <= ledger.spendable
                if rng.random() < 0.7:
                    ledger.close_turn()


@pytest.mark.parametrize("order", [("context", "history"), ("history", "context")])
@pytest.mark.parametrize("condensed", [False, True])
def test_an_answer_that_comes_late_closes_its_own_turn(
    order: tuple[str, str],
    condensed: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """A user asks on before the answer was read; the next prompt would be put together anew."""
    rng = random.Random(7)
    for late in range(5):
        for _ in range(60):
            ledger = ledger_of(window=4000)
            ledger.expect_history(rng.randint(0, 9000))
            for turn in range(3):
                asked = {"history": f"q{turn}", "context": f"{'about ' * condensed}q{turn}"}
                used = {"context": 0, "history": 0}
                for at, party in enumerate(order):
                    if turn and late == 2 * at:
                        ledger.close_turn()
                    room = getattr(ledger, f"{party}_room")(asked[party])
                    if turn and late == 2 * at + 1:
                        ledger.close_turn()
                    used[party] = rng.choice((room, rng.randint(0, room)))
                    getattr(ledger, f"charge_{party}")(asked[party], used[party])
                if turn and late == 4:
                    ledger.close_turn()
                assert sum(used.values()) + EXACT(asked["history"]) + 4 <= ledger.spendable


@pytest.mark.parametrize("party", ["context", "history"])
def test_a_question_of_before_takes_nothing_from_the_next(party: str) -> None:
    """A giant question that failed left the next one without any context."""
    ledger = ledger_of()
    before = ledger.context_room(QUESTION)
    getattr(ledger, f"{party}_room")("giant " * 9000)
    getattr(ledger, f"charge_{party}")("giant " * 9000, 0)
    ledger.close_turn()
    ledger.context_room("giant " * 9000)
    ledger.charge_context("giant " * 9000, 0)

    assert ledger.context_room(QUESTION) == before


def test_a_postprocessor_of_its_own_carries_nothing_from_query_to_query() -> None:
    """One query engine serves many questions, some of them at the same time."""
    asked = ["Meals?", "word " * 800] * 6
    processor = BudgetPostprocessor(llm=StrictLLM(window=3000))
    alone: list[list[str]] = []
    for question in asked[:2]:
        fresh = BudgetPostprocessor(llm=StrictLLM(window=3000))
        kept = fresh.postprocess_nodes(rules(40), query_str=question)
        alone.append([node.node_id for node in kept])

    async def together() -> list[Any]:
        jobs = [processor.apostprocess_nodes(rules(40), query_str=one) for one in asked]
        return await asyncio.gather(*jobs)

    one_by_one = [processor.postprocess_nodes(rules(40), query_str=one) for one in asked]
    for kept in (one_by_one, asyncio.run(together())):
        assert [[node.node_id for node in nodes] for nodes in kept] == alone * 6


def test_what_history_has_no_use_for_goes_to_the_context() -> None:
    """In a fresh chat a quota for history would leave two thirds of the window empty."""
    ledger = ledger_of()
    idle = ledger.context_room(QUESTION)
    ledger.expect_history(100_000)

    assert ledger.context_room(QUESTION) < 0.4 * idle


def test_a_closed_turn_is_forgotten() -> None:
    """Last turn's context is not in this turn's prompt."""
    ledger = ledger_of()
    before = ledger.history_room(QUESTION)
    ledger.charge_context(QUESTION, 2000)
    assert ledger.history_room(QUESTION) < ledger.spendable - 2000
    ledger.close_turn()

    assert ledger.history_room(QUESTION) == before


def test_more_than_there_is_cannot_be_charged() -> None:
    """A charge that is let through becomes a prompt that is too long."""
    ledger = ledger_of()
    with pytest.raises(ContextWindowExceeded):
        ledger.charge_context(QUESTION, 100_000)
    assert ledger.to_dict()["context"] == 0


@pytest.mark.parametrize(
    "wrong",
    [{"output_reserve": 8192}, {"output_reserve": -1}, {"rag_ratio": 1.5}, {"fixed_tokens": 9000},
     {"fixed_tokens": -1}, {"window": 0}, {"window": None}],
)  # fmt: skip
def test_numbers_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    """A window of which nothing is left must be found before the first question."""
    with pytest.raises(ConfigurationError):
        ledger_of(**wrong)


def test_what_is_fixed_can_be_added_later() -> None:
    """A tool or a prompt may come in after the ledger was made."""
    ledger = ledger_of()
    before = ledger.spendable
    ledger.charge_fixed(["Be brief and kind."], tokens=100)

    assert ledger.spendable == before - 100 - EXACT("Be brief and kind.")
    with pytest.raises(ConfigurationError):
        ledger.charge_fixed(tokens=100_000)


def test_a_model_that_reports_its_window_as_its_output_leaves_half() -> None:
    """Some integrations set both numbers to the same."""
    assert WindowLedger(StrictLLM(window=8192, num_output=8192)).output_reserve == 4096


def test_it_survives_pickle_and_stays_one_when_its_owner_is_copied() -> None:
    """A copied memory still speaks of the same window."""
    import copy

    ledger = ledger_of()
    ledger.charge_context(QUESTION, 500)

    assert copy.deepcopy(ledger) is ledger
    assert pickle.loads(pickle.dumps(ledger)).to_dict() == ledger.to_dict()


def test_threads_do_not_tear_the_account() -> None:
    """Streaming engines write the answer from another thread."""
    ledger = ledger_of()

    def work() -> None:
        for _ in range(200):
            ledger.charge_history(None, 10)
            ledger.charge_context("q", 10)
            ledger.close_turn()
            assert ledger.to_dict()["idle"] <= ledger.spendable

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- in chat engines -----------------------------------------------------------------------------


def engine_of(kind: Any, history: int, **more: Any) -> tuple[Any, StrictLLM, BudgetPostprocessor]:
    """Make a chat engine over forty nodes, with so many tokens of history, sharing one ledger."""
    llm = StrictLLM(lambda _: "An answer.", **{"window": 8192, "num_output": 1024, **more})
    ledger = WindowLedger(llm, system_prompt="Be kind.")
    memory = CompactingMemory.from_defaults(chat_history=talk_of(history), ledger=ledger)
    processor = BudgetPostprocessor(ledger=ledger)
    engine = kind.from_defaults(
        retriever=FixedRetriever(rules(40)),
        llm=llm,
        memory=memory,
        node_postprocessors=[processor],
        system_prompt="Be kind.",
    )
    return engine, llm, processor


def _chat(engine: Any) -> str:
    return str(engine.chat(QUESTION))


def _achat(engine: Any) -> str:
    return str(asyncio.run(engine.achat(QUESTION)))


def _stream(engine: Any) -> str:
    streamed = engine.stream_chat(QUESTION)
    text = "".join(streamed.response_gen)
    writer = getattr(streamed, "write_response_to_history_thread", None)
    if writer is not None:
        writer.join()
    return text


def _astream(engine: Any) -> str:
    async def run() -> str:
        streamed = await engine.astream_chat(QUESTION)
        return "".join([piece async for piece in streamed.async_response_gen()])

    return asyncio.run(run())


ENTRY_POINTS: dict[str, Callable[[Any], str]] = {
    "chat": _chat, "achat": _achat, "stream": _stream, "astream": _astream,
}  # fmt: skip


@pytest.mark.parametrize("entry_point", sorted(ENTRY_POINTS))
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("history", [0, 7200])
def test_an_engine_answers_with_one_call_however_long_the_history_is(
    kind: Any, history: int, entry_point: str
) -> None:
    """7.2k tokens of history in an 8k window end in "Chunk size -145 is not positive"."""
    engine, llm, processor = engine_of(kind, history)

    assert ENTRY_POINTS[entry_point](engine).strip() == "An answer."
    condensed = kind is CondensePlusContextChatEngine and history > 0
    assert llm.calls == 1 + condensed
    assert max(llm.tokens) <= 8192 - 1024
    assert processor.last_report is not None
    assert processor.last_report.used > 1500


def test_the_best_passages_are_the_ones_that_stay() -> None:
    """Forty passages and room for twenty: a repack cuts in the middle of one."""
    engine, llm, _ = engine_of(ContextChatEngine, 7200)
    response = engine.chat(QUESTION)
    sent = str(llm.requests[-1][0].content)

    assert 10 < len(response.source_nodes) < 40
    for one in response.source_nodes:
        assert one.node.get_content() in sent


@pytest.mark.parametrize("kind", ENGINES)
def test_a_long_conversation_stays_inside_the_window_turn_after_turn(kind: Any) -> None:
    """Each turn reads, retrieves, answers and writes; none may overrun."""
    engine, llm, _ = engine_of(kind, 3000, window=3000, num_output=300)
    for at in range(12):
        engine.chat(f"{QUESTION} {sentence(at)}")

    assert max(llm.tokens) <= 3000 - 300
    assert llm.calls == (12 if kind is ContextChatEngine else 24)


def test_an_engine_goes_on_after_a_model_that_failed() -> None:
    """What was charged for the failed turn must neither stay for ever nor overrun the next."""
    engine, llm, _ = engine_of(ContextChatEngine, 7200)
    replies: list[Any] = [RuntimeError("down"), RuntimeError("down"), "Back."]
    llm._script = lambda _: replies.pop(0)  # pyright: ignore[reportPrivateUsage] - our own double
    for _ in range(2):
        with pytest.raises(RuntimeError, match="down"):
            engine.chat(QUESTION)

    assert str(engine.chat(QUESTION)) == "Back."
    assert max(llm.tokens) <= 8192 - 1024


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_can_be_asked_before_its_last_answer_was_read(kind: Any) -> None:
    """The answer was put into memory by its own thread while the next prompt was being made."""
    engine, llm, _ = engine_of(kind, 0, window=3000, num_output=100)
    streams = [engine.stream_chat(f"question {at}? " * 60) for at in range(6)]
    for stream in streams:
        stream.write_response_to_history_thread.join()

    assert max(llm.tokens) <= 3000 - 100


@pytest.mark.parametrize("kind", ENGINES)
def test_chats_at_the_same_time_raise_nothing(kind: Any) -> None:
    """They should have a ledger each, but must not fail at random where they share one."""
    engine, _, _ = engine_of(kind, 1200, window=3000, num_output=400)

    async def together() -> list[Any]:
        asked = [f"q{at} " * (200 if at % 2 else 3) for at in range(6)]
        return await asyncio.gather(*(engine.achat(one) for one in asked))

    assert [str(one) for one in asyncio.run(together())] == ["An answer."] * 6


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_goes_on_after_a_question_that_was_too_large(kind: Any) -> None:
    """The next turn answered "Empty Response"."""
    engine, _, processor = engine_of(kind, 0, window=2000, num_output=200)
    with pytest.raises(ContextWindowExceeded):
        engine.chat("giant " * 3000)

    assert str(engine.chat("What is the cap?")) == "An answer."
    assert processor.last_report is not None
    assert processor.last_report.used > 100


def test_an_answer_reserve_of_half_the_window_holds_as_the_chat_grows() -> None:
    """With 4096 of 8192 reserved, LlamaIndex says "available context size -263"."""
    engine, llm, _ = engine_of(ContextChatEngine, 5600, num_output=4096)

    assert str(engine.chat(QUESTION)) == "An answer."
    assert llm.tokens[0] <= 4096


@pytest.mark.skipif(
    not hasattr(types.TextBlock, "format_vars"),
    reason="this core fills in braces itself, whatever a block says",
)
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "text", ["What is {context_str}?", '{"a": 1, "query_str": "{query_str}"}', "{{x}} {0} {}"]
)
def test_braces_in_the_history_stay_as_they_were_typed(kind: Any, text: str) -> None:
    """The history is put into a template: `{context_str}` came out as the retrieved documents."""
    engine, llm, _ = engine_of(kind, 0)
    engine._memory.put(said("user", text))
    engine._memory.put(said("assistant", f"You wrote {text}"))
    engine.chat(QUESTION)

    contents = [message.content for message in llm.requests[-1]]
    assert text in contents
    assert f"You wrote {text}" in contents


def test_the_question_is_counted_once_where_memory_holds_it_already() -> None:
    """Agents put the question first and name it again when they read."""
    ledger = ledger_of()
    memory = CompactingMemory.from_defaults(ledger=ledger)
    memory.put(said("user", QUESTION))
    memory.get(input=QUESTION)

    assert ledger.to_dict()["question"] == 0
    assert ledger.to_dict()["history"] == count_messages(memory.get(), counter=EXACT)


def test_a_chat_message_as_input_reaches_whoever_reads_it() -> None:
    """A ChatMessage was ignored where only a string was expected."""
    ledger = ledger_of()
    memory = CompactingMemory.from_defaults(ledger=ledger)
    memory.get(input=said("user", QUESTION))

    assert ledger.to_dict()["question"] == EXACT(QUESTION) + 4
