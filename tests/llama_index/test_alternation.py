"""Requests to models whose templates demand that user and assistant alternate."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.memory import ChatMemoryBuffer

from llama_doubles import EXACT, calling, memory_of, recap_of, result, said, sentence, size, talk
from llama_index_muntin import CompactingMemory, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin import ConfigurationError, ContextWindowExceeded
from muntin.testing import check_request

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

    from conftest import EntryPoint

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning"),
]

HISTORY: list[ChatMessage] = [
    said("system", "You look after parcels."),
    *talk(20),
    said("user", "hello"),
    said("user", "March report for plant 7"),
    said("user", "in EUR"),
    said("system", "The user was idle."),
    calling("c1", part=1),
    result("c1", "parcels " * 40),
    said("assistant", "Plant 7 is full."),
    said("assistant", "Anything else?"),
    *talk(12),
    said("user", "send it to Kim"),
]
"""Bursts of one role, a note of the system in the middle, a round of calls."""
ROLES = ("user", "system", "assistant")


@pytest.mark.parametrize("role", ROLES)
def test_what_a_memory_sends_alternates_at_every_limit(role: str, entry_point: EntryPoint) -> None:
    """Of 46 budgets, 42 to 46 were refused, whatever the role of the recap."""
    sent = refused = 0
    for limit in range(60, 1500, 32):
        memory = memory_of(
            limit, alternate=True, recap_role=role, summarizer=recap_of(), chat_history=HISTORY
        )
        try:
            request: Any = entry_point.call(memory, "get")
        except ContextWindowExceeded:
            refused += 1
            continue
        sent += 1
        check_request(request, window=limit, counter=EXACT, provider="alternating")
        assert "send it to Kim" in str(request[-1].content)
        assert size(request) <= limit
    assert sent >= 40
    assert refused <= 5, "only where the prompt and the question alone are too large"


def test_a_memory_knows_it_by_the_model(entry_point: EntryPoint) -> None:
    """Who uses Gemma does not look for a setting before the first refusal."""
    llm = StrictLLM([], model="gemma-3-27b-it", window=8000, provider="alternating")
    memory = CompactingMemory.from_defaults(HISTORY, llm=llm, token_counter=EXACT)

    assert memory.alternate
    check_request(entry_point.call(memory, "get"), provider="alternating")  # pyright: ignore[reportArgumentType] - messages
    assert not CompactingMemory.from_defaults(llm=StrictLLM([], window=8000)).alternate
    assert not CompactingMemory.from_defaults(
        llm=llm, token_counter=EXACT, alternate=False
    ).alternate
    assert CompactingMemory.from_json(memory.to_json()).alternate
    assert len(memory.get_all()) == len(HISTORY), "what is stored stays as it was put"


def look(part: int) -> str:
    """Look into a depot."""
    return f"Depot {part}: " + " ".join(sentence(part * 31 + at) for at in range(8))


SCRIPTS: dict[str, list[Any]] = {
    "function": [call("look", part=n) for n in range(12)] + ["Done."],
    "react": [
        f'Thought: next.\nAction: look\nAction Input: {{"part": {n}}}' for n in range(12)
    ] + ["Thought: done.\nAnswer: Done."],
    "code": [f"<execute>look({n})</execute>" for n in range(12)] + ["Done."],
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", sorted(SCRIPTS))
def test_every_request_of_an_agent_alternates(kind: str, role: str) -> None:
    """A note behind the question made two user messages in a row, which such a server refuses."""
    llm = StrictLLM(
        SCRIPTS[kind], window=4000, num_output=400, model="mistral-small", provider="alternating",
        counter=EXACT,
    )  # fmt: skip
    more: dict[str, Any] = {"llm": llm, "tools": [look], "system_prompt": "Be terse."}
    if kind == "code":
        more["code_execute_fn"] = lambda code: str(eval(code, {"look": look}))
    kinds: Any = {"function": FunctionAgent, "react": ReActAgent, "code": CodeActAgent}
    agent = with_window(kinds[kind](**more), note_role=role, counter=EXACT)
    memory = ChatMemoryBuffer.from_defaults(HISTORY[1:-1], token_limit=90_000)

    async def go() -> str:
        return str(await agent.run(user_msg="Which?", memory=memory, max_iterations=99))

    assert "Done." in asyncio.run(go())
    assert llm.calls == 13
    assert max(llm.tokens) <= 3600
    assert all(any("Which?" in str(m.content) for m in one) for one in llm.requests)


@pytest.mark.parametrize("alternate", [True, False])
def test_what_was_asked_for_comes_before_the_name_of_the_model(alternate: bool) -> None:  # noqa: FBT001 - pytest's own way
    """A server with a template of its own has a name that says nothing."""
    llm = StrictLLM(
        ["Hello."], window=8000, model="house-7b" if alternate else "mistral-small",
        provider="alternating" if alternate else "openai", counter=EXACT,
    )  # fmt: skip
    agent: Any = with_window(
        FunctionAgent(llm=llm, tools=[look]), alternate=alternate, counter=EXACT
    )
    memory = ChatMemoryBuffer.from_defaults(HISTORY[1:-1], token_limit=90_000)

    async def go() -> str:
        return str(await agent.run(user_msg="Which?", memory=memory))

    assert asyncio.run(go()) == "Hello."
    merged = any("hello\n\nMarch report" in str(m.content) for m in llm.requests[0])
    assert merged == alternate


@pytest.mark.parametrize("wrong", [{"alternate": "yes"}, {"alternate": 1}, {"note_role": "tool"}])
def test_settings_of_roles_are_checked_when_they_are_given(wrong: dict[str, Any]) -> None:
    """A wrong one would be found at the first cut, in the middle of a run."""
    agent = FunctionAgent(llm=StrictLLM([], window=8000), tools=[look])
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        with_window(agent, **wrong)


def test_the_role_of_a_note_has_one_name_in_a_memory() -> None:
    """`fit_messages` calls it note_role."""
    with pytest.raises(ConfigurationError, match="recap_role"):
        CompactingMemory.from_defaults(note_role="system")
