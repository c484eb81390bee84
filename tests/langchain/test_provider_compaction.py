# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""A provider's own summary in LangChain: kept by every entry point, asked for by the middleware."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_muntin import ContextWindowMiddleware, compact_messages
from langchain_muntin.testing import StrictChatModel
from muntin import ContextWindowExceeded, count_messages, estimate_tokens
from muntin.adapting import compaction_settings
from muntin.errors import ConfigurationError
from wire_server import answer_to, serving

SUMMARY = {"type": "compaction", "content": "Parcels P-0 to P-19 were sent; P-7 waits. " * 12}
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA" + "x" * 900}
BLOCKS = {"anthropic": SUMMARY, "openai": SEALED}


def prose(at: int) -> str:
    return f"Parcel P-{at} left depot {at} with {3 * at} boxes on board. " * 6


def thread(block: dict[str, Any]) -> list[BaseMessage]:
    talk: list[BaseMessage] = [SystemMessage("You help with parcels.")]
    for at in range(20):
        talk += [HumanMessage(prose(at)), AIMessage("Ok.")]
    talk += [HumanMessage("Go on."), AIMessage([block, {"type": "text", "text": "Done."}])]
    for at in range(12):
        talk += [HumanMessage(prose(100 + at)), AIMessage(prose(200 + at))]
    return [*talk, HumanMessage("Which parcel waits?")]


def holds_first(messages: list[BaseMessage], block: dict[str, Any]) -> bool:
    first = next(one for one in messages if not isinstance(one, SystemMessage))
    return isinstance(first.content, list) and block in first.content


@pytest.mark.parametrize("kind", BLOCKS)
def test_compact_messages_keeps_the_summary_at_every_budget(kind: str) -> None:
    """A cut that drops it takes twenty turns with it, and the note says only how many."""
    block = BLOCKS[kind]
    talk = thread(block)
    least = count_messages([talk[0], AIMessage([block]), talk[-1]], counter=estimate_tokens)
    whole = count_messages([talk[0], *talk[42:]], counter=estimate_tokens)
    for budget in range(least - 30, whole + 300, (whole + 330 - least) // 30):
        try:
            fitted = compact_messages(talk, budget=budget, counter=estimate_tokens)
        except ContextWindowExceeded:
            assert budget < least
            continue
        assert holds_first(fitted, block)
        assert count_messages(fitted, counter=estimate_tokens) <= budget
        assert fitted[-1] is talk[-1]


@pytest.mark.parametrize("budget", [400, 600, 900, 1500, 2500, 9000])
def test_the_middleware_keeps_the_summary_and_says_what_it_saved(budget: int) -> None:
    """Everything before the summary is dead weight: it is paid for and never read."""
    model = StrictChatModel(window=20_000, provider="anthropic", replies=["P-7 waits.", "Yes."])
    middleware = ContextWindowMiddleware(budget=budget, counter=estimate_tokens)
    agent: Any = create_agent(model, middleware=[middleware])
    talk = thread(SUMMARY)
    done = agent.invoke({"messages": talk})
    agent.invoke({"messages": [*done["messages"], HumanMessage("Are you sure?")]})

    assert model.refused == []
    for request in model.sent:
        assert holds_first(list(request.messages), SUMMARY)
    account = middleware.report("")
    assert account is not None
    before = count_messages(talk[1:42], counter=estimate_tokens) - 3
    assert account.to_dict()["replaced_by_provider"] == before
    assert any("provider's own summary" in note for note in account.report.notes)


def test_a_summary_that_comes_after_a_decision_ends_it() -> None:
    """The decision was about messages that the provider no longer reads."""
    model = StrictChatModel(window=20_000, provider="anthropic", replies=["One.", "Two."])
    middleware = ContextWindowMiddleware(budget=900, counter=estimate_tokens)
    agent: Any = create_agent(model, middleware=[middleware])
    talk = [*(HumanMessage(prose(at)) for at in range(30)), HumanMessage("And?")]
    done = agent.invoke({"messages": talk})["messages"]
    answer = AIMessage([SUMMARY, {"type": "text", "text": "Parcel P-7."}])
    agent.invoke({"messages": [*done, HumanMessage("Go on."), answer, HumanMessage("Sure?")]})

    assert model.refused == []
    assert [one.text for one in model.sent[-1].messages] == ["Parcel P-7.", "Sure?"]


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", BLOCKS)
def test_the_provider_is_asked_to_compact_through_its_client(kind: str) -> None:
    """The setting has another form with each provider; a wrong one is refused or ignored."""
    model: Any
    with serving() as server:
        if kind == "anthropic":
            package = pytest.importorskip("langchain_anthropic")
            model = package.ChatAnthropic(
                model="claude-opus-5-5", base_url=server.url, api_key="x", max_retries=0,
                max_tokens=99,
            )  # fmt: skip
        else:
            package = pytest.importorskip("langchain_openai")
            model = package.ChatOpenAI(
                model="gpt-6.2-sol", base_url=f"{server.url}/v1", api_key="x", max_retries=0,
                use_responses_api=True, output_version="responses/v1",
            )  # fmt: skip

        def reply(one: Any) -> dict[str, Any]:
            answer = answer_to(one, "P-7 waits.")
            key = "content" if kind == "anthropic" else "output"
            if len(server.received) > 1:
                return answer
            return {**answer, key: [BLOCKS[kind], *answer[key]], "id": "other"}

        server.reply = reply
        middleware = ContextWindowMiddleware(
            window=200_000, provider_compaction=0.5, counter=estimate_tokens
        )
        agent: Any = create_agent(model, middleware=[middleware])
        talk = [HumanMessage(prose(at)) for at in range(20)]
        done = agent.invoke({"messages": talk})["messages"]
        agent.invoke({"messages": [*done, HumanMessage("Sure?")]})

    first, second = (one.body for one in server.received)
    if kind == "anthropic":
        trigger = {"type": "input_tokens", "value": 100_000}
        edit = {"type": "compact_20260112", "trigger": trigger}
        assert first["context_management"] == {"edits": [edit]}
        assert next(block["type"] for block in second["messages"][0]["content"]) == "compaction"
        assert len(second["messages"]) == 2
    else:
        rule = {"type": "compaction", "compact_threshold": 100_000}
        assert first["context_management"] == [rule]
        assert second["input"][0]["type"] == "compaction"
        assert len(second["input"]) == 3
    assert not any(one.refused for one in server.received)
    account = middleware.report("")
    assert account is not None
    assert account.to_dict()["replaced_by_provider"] > 1000


def test_a_provider_that_cannot_compact_is_named() -> None:
    """A setting that is ignored leaves the user to believe that the provider compacts."""
    agent: Any = create_agent(
        StrictChatModel(replies=["Hi."]),
        middleware=[ContextWindowMiddleware(window=9000, provider_compaction=0.5)],
    )
    with pytest.raises(ConfigurationError, match="ChatAnthropic, ChatOpenAI, ChatXAI"):
        agent.invoke({"messages": [HumanMessage("Hi")]})
    with pytest.raises(ConfigurationError, match="tokens or a share"):
        ContextWindowMiddleware(window=9000, provider_compaction=("messages", 4))
    with pytest.raises(ConfigurationError, match="50000 tokens on"):
        compaction_settings("anthropic", 9000, budget=20_000)
    kept = {"context_management": [{"type": "compaction", "compact_threshold": 5}]}
    assert compaction_settings("openai", 9000, settings=kept) == kept
