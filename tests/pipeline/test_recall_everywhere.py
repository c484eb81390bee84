"""Recall by the newest user message at every entry point that fits a conversation.

A user asked again about something that was answered long ago. One entry point sent the answer and
all others sent the newest messages, so the model had to say that it does not know.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any, Literal

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - partly typed there
from langchain_core.messages import BaseMessage, convert_to_messages
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from typer.testing import CliRunner

from langchain_muntin import (
    ContextAssembler,
    ContextWindowMiddleware,
    compact_messages,
    context_window_node,
)
from langchain_muntin.testing import StrictChatModel
from llama_index_muntin import CompactingMemory, MuntinMemoryBlock, with_window
from llama_index_muntin.testing import StrictLLM
from muntin import NEWEST, afit_messages, count_tokens, fit_messages
from muntin.cli.app import app
from muntin.messages import view
from muntin.scaling import fit_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Sent = Sequence[str]
    Recall = Literal["on", "off"]
    EntryPoint = Callable[[list[dict[str, Any]], int, Recall], Sent]

pytestmark = pytest.mark.usefixtures("own_loop")

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "lantern")
_ASKED = range(3, 93, 5)
_LEAST = {200: 0.95, 400: 1.0, 800: 1.0}


def _depots() -> list[str]:
    draw = random.Random(3)
    return [f"depot {draw.choice(_WORDS)}-{draw.randint(10, 99)}" for _ in range(100)]


_DEPOTS = _depots()


def _conversation(asked: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You know the depots."}]
    for at, depot in enumerate(_DEPOTS):
        messages += [
            {"role": "user", "content": f"Where is parcel P-{1000 + at}?"},
            {"role": "assistant", "content": f"Parcel P-{1000 + at} is in {depot}."},
        ]
    question = f"In which depot was P-{1000 + asked} again?"
    return [*messages, {"role": "user", "content": question}]


def _texts(messages: Sequence[Any]) -> Sent:
    """Return the texts of the messages before the question."""
    return [view(one).text for one in messages[:-1]]


def _switch(recall: Recall) -> dict[str, Any]:
    """Return the arguments that switch recall off; on is the default."""
    return {} if recall == "on" else {"question": None}


# --- entry points ------------------------------------------------------------------------------


def by_fit(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    return _texts(fit_messages(given, budget=budget, **_switch(recall)).messages)


def by_afit(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    return _texts(asyncio.run(afit_messages(given, budget=budget, **_switch(recall))).messages)


def by_row(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    row = fit_row({"messages": given}, budget=budget, **_switch(recall))
    assert row["error"] == ""
    return _texts(json.loads(row["messages"]))


def by_command(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    switch = [] if recall == "on" else ["--no-recall"]
    arguments = ["trim", "-", "--budget", str(budget), "--quiet", *switch]
    done = CliRunner().invoke(app, arguments, input=json.dumps(given))
    assert done.exit_code == 0, done.output
    return _texts(json.loads(done.stdout))


def by_compact_messages(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    said: list[BaseMessage] = convert_to_messages(given)
    return _texts(compact_messages(said, budget=budget, counter=count_tokens, **_switch(recall)))


def by_runnable(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    fit: Any = compact_messages
    step = fit(budget=budget, counter=count_tokens, **_switch(recall))
    return _texts(asyncio.run(step.ainvoke(convert_to_messages(given))))


def by_node(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    node = context_window_node(budget=budget, counter=count_tokens, **_switch(recall))
    return _texts(node.invoke({"messages": convert_to_messages(given)})["llm_input_messages"])


def by_middleware(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    model = StrictChatModel(window=8000)
    window = ContextWindowMiddleware(
        budget=budget, counter=count_tokens, read_back=False, **_switch(recall)
    )
    agent: Any = create_agent(
        model, tools=[], middleware=[window], system_prompt=given[0]["content"]
    )
    agent.invoke({"messages": given[1:]})
    (request,) = model.sent
    return _texts(request.messages)


def by_assembler(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    switch: dict[str, Any] = {} if recall == "on" else {"recall": False}
    assembler = ContextAssembler(budget=budget, counter=count_tokens, **switch)
    asked = {"history": given[:-1], "question": given[-1]["content"]}
    return _texts(assembler.invoke(asked).to_messages())


def _hours(_question: str) -> list[str]:
    return ["Depots open at seven."]


def by_assembler_with_passages(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    switch: dict[str, Any] = {} if recall == "on" else {"recall": False}
    assembler = ContextAssembler(
        budget=budget,
        counter=count_tokens,
        place="question",
        sources={"rag": _hours},
        **switch,
    )
    asked = {"history": given[:-1], "question": given[-1]["content"]}
    return _texts(asyncio.run(assembler.ainvoke(asked)).to_messages())


def _spoken(given: list[dict[str, Any]]) -> list[ChatMessage]:
    return [ChatMessage(role=one["role"], content=one["content"]) for one in given]


def by_memory(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    memory = CompactingMemory.from_defaults(
        token_limit=budget, token_counter=count_tokens, **_switch(recall)
    )
    memory.put_messages(_spoken(given))
    return _texts(memory.get())


def by_memory_as_engines_read_it(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    memory = CompactingMemory.from_defaults(
        token_limit=budget, token_counter=count_tokens, **_switch(recall)
    )
    memory.put_messages(_spoken(given[:-1]))
    sent = asyncio.run(memory.aget(input=given[-1]["content"]))
    return [*_texts(sent), view(sent[-1]).text]


def by_block(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    block = MuntinMemoryBlock(
        name="earlier", max_tokens=budget, token_counter=count_tokens, **_switch(recall)
    )
    *before, question = _spoken(given)

    async def read() -> str:
        await block.aput(before)
        return await block.aget([question])

    return [asyncio.run(read())]


def by_agent(given: list[dict[str, Any]], budget: int, recall: Recall) -> Sent:
    llm = StrictLLM(["It is there."], window=2 * budget, num_output=budget)
    agent: Any = with_window(
        FunctionAgent(llm=llm, tools=[], system_prompt=given[0]["content"]),
        window=2 * budget,
        output_reserve=budget,
        **_switch(recall),
    )
    buffer: Any = ChatMemoryBuffer
    memory = buffer.from_defaults(_spoken(given[1:-1]), token_limit=100_000)

    async def ask() -> None:
        await agent.run(user_msg=given[-1]["content"], memory=memory)

    asyncio.run(ask())
    (request,) = llm.requests
    return _texts(request)


ENTRY_POINTS: dict[str, EntryPoint] = {
    "fit_messages": by_fit,
    "afit_messages": by_afit,
    "fit_row": by_row,
    "muntin trim": by_command,
    "compact_messages": by_compact_messages,
    "compact_messages as a runnable": by_runnable,
    "context_window_node": by_node,
    "ContextWindowMiddleware": by_middleware,
    "ContextAssembler": by_assembler,
    "ContextAssembler with passages": by_assembler_with_passages,
    "CompactingMemory": by_memory,
    "CompactingMemory.aget(input)": by_memory_as_engines_read_it,
    "MuntinMemoryBlock": by_block,
    "with_window": by_agent,
}
every_entry_point = pytest.mark.parametrize("name", list(ENTRY_POINTS))


def _answers(sent: Sent, asked: int) -> bool:
    return any(_DEPOTS[asked] in text and f"P-{1000 + asked}" in text for text in sent)


# --- tests -------------------------------------------------------------------------------------


@every_entry_point
@pytest.mark.parametrize("budget", list(_LEAST))
def test_the_newest_message_brings_an_old_answer_back(name: str, budget: int) -> None:
    """The answer was in the history, and the model could not see it."""
    for asked in (3, 48):
        sent = ENTRY_POINTS[name](_conversation(asked), budget, "on")
        assert _answers(sent, asked)


@every_entry_point
def test_recall_can_be_switched_off(name: str) -> None:
    """A prompt that must depend on nothing but the newest messages depended on the question."""
    for asked in (3, 48):
        sent = ENTRY_POINTS[name](_conversation(asked), 400, "off")
        assert f"Parcel P-{1000 + asked} is in {_DEPOTS[asked]}." not in "\n".join(sent)


@pytest.mark.slow
@every_entry_point
@pytest.mark.parametrize("budget", list(_LEAST))
def test_eighteen_old_answers_come_back(name: str, budget: int) -> None:
    """A sample of two questions does not tell how many of them are answered."""
    found = [
        _answers(ENTRY_POINTS[name](_conversation(asked), budget, "on"), asked) for asked in _ASKED
    ]
    assert sum(found) / len(found) >= _LEAST[budget]


def test_newest_is_what_is_asked_by_default() -> None:
    """A caller who passes a question on has a value for the default one."""
    given = _conversation(3)
    explicit = fit_messages(given, budget=400, question=NEWEST)
    assert explicit.messages == fit_messages(given, budget=400).messages


def test_a_memory_remembers_the_switch_when_it_is_saved() -> None:
    """A memory that was read again recalled although that had been switched off."""
    for question in (NEWEST, None):
        memory = CompactingMemory.from_defaults(token_limit=400, question=question)
        assert CompactingMemory.from_string(memory.to_string()).question is question


def test_the_command_refuses_a_question_beside_no_recall(tmp_path: Path) -> None:
    """One of two options that contradict each other was ignored without a word."""
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(_conversation(3)))
    arguments = ["trim", str(file), "--budget", "400", "--no-recall", "--question", "P-1003"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert "--no-recall" in done.stderr
