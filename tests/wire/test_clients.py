"""What is fitted is accepted by the provider, sent through the real client packages.

The quick form takes one budget for each client and conversation, the slow form all of them.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from muntin import count_messages, counter_for
from muntin.adapting import refusal_of
from wire.clients import BUDGETS, CLIENTS, TOOL, outcomes
from wire.conversations import CONVERSATIONS, broken, chat
from wire_server import serving

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUICK = (9,)


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Generator[None]:
    """Collect the clients while their warnings about open connections are still ignored."""
    yield
    gc.collect()


def check(client: str, conversation: str, chosen: tuple[int, ...] | range) -> None:
    found = outcomes(client, conversation, chosen)

    assert found.refused == []
    assert found.accepted + found.errors == len(chosen)
    assert found.accepted


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_fitted_conversation_is_accepted(client: str, conversation: str) -> None:
    """A request that the provider refuses ends the run, and the thread stays dead."""
    check(client, conversation, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_conversation_is_accepted_at_every_budget(client: str, conversation: str) -> None:
    """What is accepted at one size may be broken at the next."""
    check(client, conversation, range(BUDGETS))


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_conversation_is_refused_as_it_is(client: str) -> None:
    """A server that accepts everything would make the other tests worthless."""
    package = CLIENTS[client]
    with serving() as server, pytest.raises(Exception, match=r".") as caught:
        package.send(server, package.convert(broken()), "invoke", ())

    if server.received:  # some packages refuse it themselves
        assert server.received[-1].refused
        said = refusal_of(caught.value)
        assert said is None or not said.is_overflow


@pytest.mark.parametrize("client", CLIENTS)
def test_an_overflow_is_read_through_every_client(client: str) -> None:
    """Each package wraps the provider's text in an error class of its own."""
    package = CLIENTS[client]
    with serving(window=300) as server, pytest.raises(Exception, match=r".") as caught:
        package.send(server, package.convert(chat()), "invoke", ())

    assert server.received[-1].refused
    said = refusal_of(caught.value)
    assert said is not None
    assert said.is_overflow
    if client != "langchain-openai Responses":
        assert (said.limit, said.requested) == (300, server.received[-1].tokens)


def test_only_the_loopback_address_is_reached() -> None:
    """A test that reaches a provider fails on every machine without a network."""
    import socket

    from pytest_socket import SocketConnectBlockedError

    with pytest.warns(UserWarning, match="allowed"), pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


@pytest.mark.parametrize("tools", [[], [TOOL]], ids=["alone", "with a tool"])
@pytest.mark.parametrize(
    "conversation", ["chat", "pictures", "parallel calls", "open round", "system in the middle"]
)
@pytest.mark.parametrize("client", ["langchain-openai chat", "openai", "llama-index-llms-openai"])
def test_our_count_is_the_count_of_the_server(
    client: str, conversation: str, tools: list[Any]
) -> None:
    """A count below the provider's overruns the window, one above it wastes it."""
    package = CLIENTS[client]
    messages = package.convert(CONVERSATIONS[conversation](client))
    with serving() as server:
        package.send(server, messages, "invoke", tools)

    ours = count_messages(messages, tools, counter=counter_for("gpt-4o"))
    assert server.accepted[0].tokens == pytest.approx(ours, rel=0.01)
