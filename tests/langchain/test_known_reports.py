# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""What users of this ecosystem have reported of its tools, by kind, held against this entry point.

Each test names the symptom. Those that other files test in full are not repeated here: disorder,
giants, system and tools, overflow, streaming of recaps, unknown windows, usage.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_agents import (
    TASK,
    call,
    calls,
    fact,
    prose,
    result,
    rounds,
    says_task,
    shared_prefix,
    tool,
)
from langchain_muntin import (
    AssembledRetriever,
    ContextAssembler,
    ContextWindowMiddleware,
    compact_messages,
)
from langchain_muntin._values import models
from langchain_muntin.testing import StrictChatModel
from muntin import (
    ContextWindowExceeded,
    TiktokenCounter,
    count_messages,
    count_tokens,
    counter_for,
)
from muntin.counting.counters import CounterWarning
from muntin.testing import check_request

if TYPE_CHECKING:
    from conftest import EntryPoint

ROOT = Path(__file__).resolve().parents[2]
COUNT = counter_for(None)


def budgets(messages: list[BaseMessage]) -> range:
    whole = count_messages(messages, counter=COUNT)
    return range(whole // 3, whole + 1)


GO, END = HumanMessage("Go."), HumanMessage(TASK)
DONE = AIMessage("So.")


@pytest.mark.parametrize(
    "history",
    [
        [GO, call("a"), result("a", prose(90)), DONE, END],
        [END, call("a"), call("b"), result("a", prose(90)), result("b", prose(90, 1))],
        [GO, calls("a", "b"), result("a", prose(150)), result("b", "1"), DONE, END],
        [END, calls(*"abcdef"), *(result(one, prose(24, ord(one))) for one in "abcdef")],
    ],
    ids=["result kept, call cut", "mixed calls", "parallel results split", "six parallel"],
)
def test_calls_and_results_stay_together_at_every_budget(history: list[BaseMessage]) -> None:
    """A kept result whose call was cut, half of a parallel batch: the provider's error 400."""
    sendable = 0
    for budget in budgets(history):
        kept: list[BaseMessage] | None = None
        with contextlib.suppress(ContextWindowExceeded):
            kept = compact_messages(history, budget=budget)
        if kept is None:
            continue
        sendable += 1
        assert check_request(kept, counter=COUNT) <= budget
        ids = [id(message) for message in kept]
        assert len(ids) == len(set(ids))
        assert says_task(kept)
    assert sendable > len(budgets(history)) / 2


def test_a_task_followed_by_tool_rounds_alone_is_summarised_and_stays(
    entry_point: EntryPoint,
) -> None:
    """With one human message at the start, the recap was never written and the task was gone."""
    read: list[str] = []

    def recap(text: str, instruction: str) -> str:
        read.append(text)
        return "Thirty payments were looked at."

    history: list[BaseMessage] = [HumanMessage(TASK)]
    for at in range(30):
        history += [call(f"c{at}"), result(f"c{at}", f"{prose(60, at)}\n{fact(at)}")]
    step = compact_messages(budget=1500, summarizer=recap)
    kept: list[BaseMessage] = entry_point(step.invoke, step.ainvoke, history)

    assert says_task(kept)
    assert len(read) == 1
    assert fact(0) in read[0]
    assert "Thirty payments were looked at." in "".join(message.text for message in kept)


def test_facts_of_the_folded_part_survive_without_a_model() -> None:
    """A recap limited to its newest 4,000 tokens saw 3 of 100 facts."""
    history: list[BaseMessage] = [HumanMessage(TASK)]
    for at in range(60):
        history += [call(f"c{at}"), result(f"c{at}", f"{prose(300, at)}\n{fact(at)}")]
    kept = compact_messages(history, budget=6000)
    text = "".join(message.text for message in kept)

    assert sum(fact(at).partition(": ")[2] in text for at in range(60)) >= 40


def test_a_recap_is_given_content_only() -> None:
    """Response metadata in the summary prompt made it overflow."""
    read: list[str] = []

    def recap(text: str, instruction: str) -> str:
        read.append(text)
        return "Done."

    history: list[BaseMessage] = []
    for at in range(30):
        answer = AIMessage(prose(40, at), response_metadata={"logprobs": "LOGPROBS " * 500})
        history += [HumanMessage(f"And {at}?"), answer]
    compact_messages([*history, HumanMessage(TASK)], budget=900, summarizer=recap)

    assert len(read) == 1
    assert "LOGPROBS" not in read[0]


@pytest.mark.parametrize("recap", ["", "   ", "word " * 60_000], ids=["empty", "blank", "endless"])
def test_a_recap_that_is_no_recap_changes_nothing_for_the_worse(recap: str) -> None:
    """An empty recap erased the history; one of 60,000 tokens overran the window."""
    history = [HumanMessage(f"{prose(40, at)}\n{fact(at)}") for at in range(40)]
    kept = compact_messages(
        [*history, HumanMessage(TASK)], budget=900, summarizer=lambda text, how: recap
    )

    assert count_messages(kept, counter=COUNT) <= 900
    assert fact(30).partition(": ")[2] in "".join(message.text for message in kept)


def test_braces_in_a_prompt_are_braces() -> None:
    """A summary prompt with JSON in it raised a KeyError the first time it was used."""
    from muntin import PromptRegistry

    prompts = PromptRegistry().with_overrides(
        {"conversation.summary": 'Answer as {"recap": "..."} in {max_tokens} tokens.'}
    )
    seen: list[str] = []

    def recap(text: str, instruction: str) -> str:
        seen.append(instruction)
        return "Done."

    talk = [HumanMessage(prose(60, at)) for at in range(40)]
    compact_messages(talk, budget=900, summarizer=recap, prompts=prompts)

    assert seen
    assert '{"recap": "..."}' in seen[0]


@pytest.mark.parametrize("language", ["chinese", "json"])
def test_scripts_that_cost_more_are_counted_as_what_they_cost(language: str) -> None:
    """Four characters a token let two and a half windows of Chinese through."""
    texts = {
        "chinese": "请帮我查一下这张发票为什么被支付了两次，并告诉我两个付款编号。",
        "json": '{"id":4711,"rows":[{"a":1,"b":null},{"a":2,"b":true}],"sum":0.25}',
    }
    talk: list[BaseMessage] = [HumanMessage(f"{at}: {texts[language]}" * 6) for at in range(40)]
    kept = compact_messages([*talk, HumanMessage(TASK)], budget=3000)

    assert count_messages(kept, counter=TiktokenCounter()) <= 3000 / 0.85  # the estimate's bound


def test_a_model_without_a_tokenizer_is_estimated_and_says_so() -> None:
    """A counter that raises for unknown names ends the run for want of a number."""
    model = StrictChatModel(window=2000, model_name="house-model-7b")

    with pytest.warns(CounterWarning, match="house-model-7b"):
        assembler = ContextAssembler(model=model)
    report = assembler.invoke(TASK).report
    assert not report.exact
    assert report.counter.startswith("estimate")


def test_decisions_hold_so_that_the_prompt_cache_holds() -> None:
    """Clearing old results anew at each step moves the first changed byte at each step."""
    model = StrictChatModel(window=16_000, replies=rounds(20))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: prose(800, int(key[1:-2])))],
        middleware=[ContextWindowMiddleware()],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(
        {"messages": [("user", TASK)]},
        {"configurable": {"thread_id": "t"}, "recursion_limit": 99},
    )
    shares = [shared_prefix(a.messages, b.messages) for a, b in pairwise(model.sent)]

    assert len(shares) == 20
    assert 16 <= sum(share == 1 for share in shares) < 20


def test_a_thread_that_only_grows_never_asks_again_for_what_it_has(entry_point: EntryPoint) -> None:
    """A recap written again at each step costs a call each step, and says less each time."""
    asked: list[str] = []

    def recap(text: str, instruction: str) -> str:
        asked.append(text)
        return "Done so far."

    model = StrictChatModel(window=8000, replies=rounds(40))
    agent: Any = create_agent(
        model,
        tools=[tool(lambda key: f"{key}: fine")],
        middleware=[ContextWindowMiddleware(summarizer=recap)],
    )
    start = [*(HumanMessage(prose(60, at)) for at in range(80)), HumanMessage(TASK)]
    entry_point(agent.invoke, agent.ainvoke, {"messages": start}, {"recursion_limit": 200})

    assert model.refused == []
    assert len(asked) <= 2


def test_a_growing_conversation_stays_current(entry_point: EntryPoint) -> None:
    """A running summary that is not refreshed answers from old facts only."""
    model = StrictChatModel(window=3000)
    agent: Any = create_agent(
        model,
        tools=[],
        middleware=[ContextWindowMiddleware(read_back=False)],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    for at in range(40):
        text = f"{prose(50, at)}\n{fact(at)}"
        entry_point(agent.invoke, agent.ainvoke, {"messages": [("user", text)]}, config)
        sent = model.sent[-1].messages
        assert fact(at) in sent[-1].text
        if at:
            assert fact(at - 1).partition(": ")[2] in "".join(m.text for m in sent)


def test_old_passages_do_not_pile_up_in_the_thread(entry_point: EntryPoint) -> None:
    """Passages put into the history once are sent, and paid for, for ever."""
    model = StrictChatModel(window=4000)
    assembler = ContextAssembler(
        model=model, sources={"rag": lambda question: [f"{n}: {prose(80, n)}" for n in range(5)]}
    )
    history: list[BaseMessage] = []
    for at in range(10):
        prompt = entry_point(
            assembler.invoke, assembler.ainvoke, {"question": f"And {at}?", "history": history}
        )
        history += [HumanMessage(f"And {at}?"), model.invoke(prompt)]

    assert all("[Knowledge]" not in message.text for message in history)
    assert model.sent[-1].tokens - model.sent[0].tokens < 250


def test_votes_for_a_passage_are_counted_once_per_source() -> None:
    """Six chunks of one source outvoted what two retrievers ranked first."""
    shared = Document("Meals are capped at 80 per day.", id="s")
    many = [Document(f"Leaflet, part {n}: {prose(12, n)}", id=f"l{n}") for n in range(6)]
    retriever = AssembledRetriever(
        sources={"a": lambda q: [shared, *many], "b": lambda q: [shared]}, k=1
    )

    assert [document.id for document in retriever.invoke("meals")] == ["s"]


def test_documents_are_limited_in_all() -> None:
    """Three documents of a hundred thousand characters made one prompt of 150,011 tokens."""
    model = StrictChatModel(window=8000)
    documents = [Document(prose(25_000, at)) for at in range(3)] + [Document("Short.")]
    chain = ContextAssembler(model=model) | model
    chain.invoke({"question": TASK, "rag": documents})

    assert model.refused == []
    assert "Short." in model.sent[0].messages[0].text


def test_schemas_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Converting 23 tools at each step cost more than everything else together."""
    converted: list[Any] = []
    convert = models.convert_to_openai_tool

    def counting(given: Any) -> Any:
        converted.append(given)
        return convert(given)

    monkeypatch.setattr(models, "convert_to_openai_tool", counting)

    def look(key: str) -> str:
        """Look."""
        return key

    tools = [StructuredTool.from_function(look, name=f"tool_{n}") for n in range(23)]
    for _ in range(3):
        models.schemas_of(tools)

    assert len(converted) == 23


def test_the_newest_message_is_never_summarised_away() -> None:
    """With tiny limits, "Hello" was folded and nobody had asked anything."""
    short = compact_messages(
        [HumanMessage("Hello"), AIMessage("Bye. " * 50), HumanMessage(TASK)], budget=60
    )

    assert short[-1].text == TASK


def test_separate_settings_for_when_and_how_far() -> None:
    """One number for trigger and amount folds at each step once it is reached."""
    gentle = StrictChatModel(window=8000, replies=rounds(30))
    deep = StrictChatModel(window=8000, replies=rounds(30))
    broken: dict[str, int] = {}
    for name, model, target in (("gentle", gentle, 0.95), ("deep", deep, 0.5)):
        agent: Any = create_agent(
            model,
            tools=[tool(lambda key: prose(400, int(key[1:-2])))],
            middleware=[ContextWindowMiddleware(target=target)],
        )
        agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 200})
        broken[name] = sum(
            shared_prefix(a.messages, b.messages) < 1 for a, b in pairwise(model.sent)
        )

    assert broken["deep"] < broken["gentle"]


def test_the_first_message_after_a_note_may_be_a_call() -> None:
    """Some providers take a call only behind a user's message: the note is one."""
    model = StrictChatModel(window=3000, provider="anthropic")
    history: list[BaseMessage] = [HumanMessage("Go.")]
    for at in range(30):
        history += [call(f"c{at}"), result(f"c{at}", prose(60, at))]
    chain = compact_messages(model=model) | model
    chain.invoke([*history, HumanMessage(TASK)])

    assert model.refused == []


def test_the_package_says_which_extra_is_missing() -> None:
    """Both adapters are on disk without their frameworks; the error has to name the remedy."""
    hide = "import sys\nfor name in {hidden}: sys.modules[name] = None\n"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}/integrations"}
    for hidden, script, remedy in (
        (["langchain_core"], "import langchain_muntin", 'pip install "muntin[langchain]"'),
        (
            ["langchain"],
            "from langchain_muntin import ContextWindowMiddleware",
            'pip install "muntin[langchain,agents]"',
        ),
        (
            ["langgraph"],
            "from langchain_muntin import ContextWindowMiddleware",
            'pip install "muntin[langchain,agents]"',
        ),
    ):
        run = subprocess.run(
            [sys.executable, "-c", hide.format(hidden=hidden) + script],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert run.returncode == 1
        assert remedy in run.stderr


def test_a_long_history_is_read_once(entry_point: EntryPoint) -> None:
    """Five thousand messages, one more each turn: only the new one is read."""
    read: list[str] = []

    def counter(text: str) -> int:
        read.append(text)
        return count_tokens(text)

    history: list[BaseMessage] = [HumanMessage(f"Message {at}.") for at in range(5000)]
    assembler = ContextAssembler(budget=100_000, counter=counter)
    entry_point(assembler.invoke, assembler.ainvoke, {"history": history, "question": TASK})
    first = len(read)
    entry_point(assembler.invoke, assembler.ainvoke, {"history": history, "question": "And now?"})

    assert first <= 5005  # the counter itself is tried once
    assert len(read) - first <= 2
