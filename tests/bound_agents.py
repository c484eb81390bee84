"""Agents whose provider binds reasoning to its prefix, run through the real clients.

The server remembers what each block of reasoning was written behind. It refuses what the provider
refuses and counts what the provider drops in silence.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from muntin.testing import BoundItems, BoundThinking
from wire_server import answer_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from wire_server import Received, WireServer

__all__ = ("MODELS", "Outcome", "Provider", "model_for", "prose", "run_agent")

KEY = "not-a-key"
MODELS = {
    "anthropic": "claude-opus-5-5",
    "responses": "gpt-6.2-sol",
    "gemini": "gemini-3.1-pro",
}


def prose(rng: random.Random, words: int) -> str:
    depots = ("north", "south", "harbour", "station")
    return " ".join(
        f"Parcel P-{rng.randrange(1000, 9999)} reached {rng.choice(depots)}."
        for _ in range(max(words // 5, 1))
    )


@dataclass(slots=True)
class Outcome:
    """What became of the reasoning of one run."""

    requests: int = 0
    refused: list[str] = field(default_factory=list[str])
    dropped: int = 0
    """Blocks and items that were sent in vain, over all requests."""
    sent: int = 0
    """Blocks and items that were sent and valid, over all requests."""
    written: int = 0
    """Blocks and items that had been written before each request, over all requests."""

    @property
    def share(self) -> float:
        """Share of the bound reasoning that survives, over all requests."""
        return self.sent / self.written if self.written else 1.0


class Provider:
    """Answers with reasoning, calls and texts, by a seed.

    Args:
        name: `anthropic`, `responses` or `gemini`.
        seed: Makes the run repeatable.
        rounds: Tool rounds of one turn at most.
    """

    def __init__(self, name: str, seed: int, *, rounds: int = 6) -> None:
        self.name = name
        self.outcome = Outcome()
        self._rng = random.Random(seed)
        self._thinking = BoundThinking()
        self._items = BoundItems()
        self._rounds = rounds
        self._left = 0
        self._calls = 0

    def attach(self, server: WireServer) -> None:
        """Answer the requests of a server."""
        server.reply, server.also = self.reply, self.check

    def check(self, provider: str, body: dict[str, Any]) -> None:
        """Check what reasoning a request holds."""
        del provider
        if self.name == "anthropic":
            self._thinking.check(body)

    def account(self, body: dict[str, Any]) -> None:
        """Count the reasoning of an accepted request."""
        done = self.outcome
        done.requests += 1
        if self.name == "anthropic":
            dropped, sent = self._thinking.dropped(body), self._thinking.sent(body)
            done.written += self._thinking.written
        else:
            dropped, sent = len(self._items.transformations(body)), self._items.sent(body)
            done.written += self._items.written
        done.dropped += dropped
        done.sent += sent - dropped

    def reply(self, one: Received) -> dict[str, Any]:
        """Answer a request: reasoning, then calls or a text."""
        self.account(one.body)
        if self._left == 0 and self._is_new_turn(one.body):
            self._left = self._rng.randrange(self._rounds + 1)
        calls = self._rng.randrange(1, 4) if self._left else 0
        self._left = max(self._left - 1, 0)
        thought = prose(self._rng, self._rng.randrange(5, 80))
        text = "" if calls else prose(self._rng, self._rng.randrange(5, 60))
        ids = [f"c{self._calls + at:08}" for at in range(calls)]
        self._calls += calls
        write: Callable[..., dict[str, Any]] = getattr(self, f"_{self.name}")
        # The reducer of an agent's state takes answers of one id for one message.
        return {**write(one, thought, text, ids), "id": f"answer_{self.outcome.requests}"}

    def _is_new_turn(self, body: dict[str, Any]) -> bool:
        given: Any = body.get("messages") or body.get("input") or body.get("contents") or [{}]
        last: Any = {} if isinstance(given, str) else given[-1]
        return (
            "tool_result" not in str(last)
            and "_output" not in str(last.get("type"))
            and ("functionResponse" not in str(last))
        )

    def _anthropic(self, one: Received, thought: str, text: str, ids: list[str]) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [self._thinking.sign(one.body, thought)]
        if self._rng.random() < 0.2:
            blocks[0]["thinking"] = ""
        blocks += [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": i, "name": "look", "input": {"key": i}} for i in ids]
        answer = answer_to(one, text)
        return {**answer, "content": blocks, "stop_reason": "tool_use" if ids else "end_turn"}

    def _responses(self, one: Received, thought: str, text: str, ids: list[str]) -> dict[str, Any]:
        output: list[dict[str, Any]] = [self._items.write(one.body, thought)]
        if text:
            part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
            output.append(
                {
                    "id": f"msg_{self._calls}_{self._items.written}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        output += [
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": i,
                "name": "look",
                "arguments": f'{{"key": "{i}"}}',
                "status": "completed",
            }
            for i in ids
        ]
        return {**answer_to(one, text), "output": output}

    def _gemini(self, one: Received, thought: str, text: str, ids: list[str]) -> dict[str, Any]:
        del thought
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for at, call in enumerate(ids):
            part: dict[str, Any] = {"functionCall": {"name": "look", "args": {"key": call}}}
            parts.append({**part, "thoughtSignature": "c2ln"} if at == 0 else part)
        answer = answer_to(one, text)
        content = {"role": "model", "parts": parts}
        return {**answer, "candidates": [{**answer["candidates"][0], "content": content}]}


def model_for(name: str, server: WireServer) -> Any:
    """Return the LangChain model of a provider."""
    if name == "anthropic":
        import langchain_anthropic

        made: Any = langchain_anthropic.ChatAnthropic
        return made(
            model=MODELS[name], base_url=server.url, api_key=KEY, max_retries=0, max_tokens=500,
            thinking={"type": "adaptive"},
        )  # fmt: skip
    if name == "responses":
        import langchain_openai

        made = langchain_openai.ChatOpenAI
        return made(
            model=MODELS[name], base_url=f"{server.url}/v1", api_key=KEY, max_retries=0,
            use_responses_api=True, output_version="responses/v1", store=False,
            include=["reasoning.encrypted_content"],
        )  # fmt: skip
    import langchain_google_genai

    made = langchain_google_genai.ChatGoogleGenerativeAI
    return made(
        model=MODELS[name], google_api_key=KEY, base_url=server.url, max_retries=1, vertexai=False
    )


def run_agent(
    name: str, server: WireServer, middleware: list[Any], *, seed: int, turns: int = 5
) -> Outcome:
    """Run an agent of LangChain for some turns of one thread; return what the server saw."""
    import langchain.agents
    from langgraph.checkpoint.memory import InMemorySaver

    provider = Provider(name, seed)
    provider.attach(server)
    rng = random.Random(seed + 1)

    def look(key: str) -> str:
        """Look up a parcel."""
        return f"{key}: {prose(rng, rng.randrange(10, 200))}"

    create_agent = cast("Any", langchain.agents).create_agent
    agent = create_agent(
        model_for(name, server), tools=[look], system_prompt="You help with parcels.",
        middleware=middleware, checkpointer=InMemorySaver(),
    )  # fmt: skip
    config = {"configurable": {"thread_id": str(seed)}, "recursion_limit": 60}
    for turn in range(turns):
        question = f"Question {turn}: {prose(rng, rng.randrange(5, 60))} Where is it?"
        agent.invoke({"messages": [("user", question)]}, config)
    provider.outcome.refused = [one.refused for one in server.received if one.refused]
    return provider.outcome
