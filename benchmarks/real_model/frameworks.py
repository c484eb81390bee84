"""Chains, engines and agents of both frameworks in a window of 2,048 real tokens.

Every request goes through the official client to the server of the model. A request that is too
large is refused by the server, so a run that ends shows that each of its requests fitted by the
model's own vocabulary and template. muntin gets the model's name and its window, nothing else: its
counts are estimates with the margin for unknown vocabularies.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks._harness import Table, at_least, at_most
from benchmarks.measures import blocks
from benchmarks.real_model.server import WINDOW, served

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks._harness import Cell

__all__ = ("run",)

NAME = "smollm2-135m-instruct"
ANSWER = 64
"""Tokens of each answer."""
QUESTIONS = 3


@dataclass(slots=True)
class _Wire:
    """What the server was sent and what it answered."""

    address: str
    prompts: list[int] = field(default_factory=list[int])
    """Tokens of each accepted prompt, as the server counts them."""
    refused: int = 0

    def read(self, response: httpx.Response) -> None:
        """Note one response."""
        response.read()
        self._note(response)

    async def aread(self, response: httpx.Response) -> None:
        """Note one response of an async client."""
        await response.aread()
        self._note(response)

    def _note(self, response: httpx.Response) -> None:
        if response.is_success:
            self.prompts.append(json.loads(response.content)["usage"]["prompt_tokens"])
        else:
            self.refused += 1

    def clients(self) -> dict[str, Any]:
        """Return clients for the frameworks, sync and async."""
        return {
            "http_client": httpx.Client(timeout=300, event_hooks={"response": [self.read]}),
            "http_async_client": httpx.AsyncClient(
                timeout=300, event_hooks={"response": [self.aread]}
            ),
        }


def run() -> list[Table]:
    """Run every composition, with and without muntin."""
    compositions: dict[str, Callable[[_Wire, bool], None]] = {
        "LangChain chain": _chain,
        "LangChain agent": _agent,
        "LangChain chat, recaps by the model": _recaps,
        "LlamaIndex engine": _engine,
        "LlamaIndex agent": _index_agent,
    }
    rows: list[tuple[Cell, ...]] = []
    log = Path(tempfile.mkdtemp()) / "server.log"
    with served(log) as address, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, composition in compositions.items():
            for fitted in (True, False):
                wire = _Wire(address)
                ended = _ends(lambda c=composition, w=wire, f=fitted: c(w, f))
                most = max(wire.prompts, default=0)
                figures = (len(wire.prompts), wire.refused, most)
                cells: tuple[Cell, ...] = figures
                if fitted:
                    cells = (
                        at_least(figures[0], 1),
                        at_most(figures[1], 0),
                        at_most(figures[2], WINDOW - ANSWER),
                    )
                rows.append((name, "muntin" if fitted else "nothing", ended, *cells))
                print(*rows[-1], flush=True)
    return [
        Table(
            title=f"Compositions in a window of {WINDOW:,} tokens of a real model",
            columns=("composition", "fitted by", "ended", "accepted", "refused", "largest prompt"),
            rows=tuple(rows),
            notes=(
                "Largest prompt: tokens that the server reports for an accepted request. Answers "
                f"take up to {ANSWER} tokens.",
            ),
        )
    ]


def _ends(composition: Callable[[], None]) -> str:
    try:
        composition()
    except Exception as error:  # noqa: BLE001 - the refusal is what is measured
        return f"no: {type(error).__name__}"
    return "yes"


# --- LangChain -----------------------------------------------------------------------------------


def _chat_openai(wire: _Wire) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=NAME,
        base_url=wire.address,
        api_key="not-a-key",  # pyright: ignore[reportArgumentType] - a str is converted
        max_tokens=ANSWER,  # pyright: ignore[reportCallIssue] - an alias
        temperature=0,
        max_retries=0,
        **wire.clients(),
    )


def _passages(record: dict[str, Any]) -> list[str]:
    found = blocks.offers(record, "dup")
    return [one.text for some in found.values() for one in some]


def _chain(wire: _Wire, fitted: bool) -> None:  # noqa: FBT001 - one of two runs
    from langchain_core.prompts import ChatPromptTemplate

    from langchain_muntin import ContextAssembler

    model = _chat_openai(wire)
    prompt: Any = ChatPromptTemplate.from_template("Answer from:\n{rag}\n\n{question}")
    if fitted:
        prompt = ContextAssembler(
            model=model, window=WINDOW, system_prompt="Answer from the passages."
        )
    for record in blocks.questions()[:QUESTIONS]:
        (prompt | model).invoke({"rag": _passages(record), "question": record["question"]})


def _history(count: int) -> list[Any]:
    """Return finished rounds of an agent with results of about 400 tokens."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    messages: list[Any] = []
    for at, record in enumerate(blocks.questions()[:count]):
        call = {"name": "search", "args": {"query": record["question"]}, "id": f"call{at}"}
        text = "\n".join(_passages(record)[:4])
        messages += [HumanMessage(record["question"]), AIMessage("I search.", tool_calls=[call])]
        messages += [ToolMessage(text, tool_call_id=f"call{at}"), AIMessage(record["answers"][0])]
    return [*messages, HumanMessage("Thank you. Which of them was the longest answer?")]


def _agent(wire: _Wire, fitted: bool) -> None:  # noqa: FBT001
    from langchain.agents import create_agent

    from langchain_muntin import ContextWindowMiddleware

    def search(query: str) -> str:
        """Search the encyclopaedia."""
        del query
        return "nothing found"

    middleware = [ContextWindowMiddleware(window=WINDOW, reserve=ANSWER)] if fitted else []
    agent = create_agent(_chat_openai(wire), tools=[search], middleware=middleware)
    agent.invoke({"messages": _history(12)})


def _recaps(wire: _Wire, fitted: bool) -> None:  # noqa: FBT001
    from langchain.agents import create_agent

    from langchain_muntin import ContextWindowMiddleware, ModelSummarizer

    model = _chat_openai(wire)
    middleware = []
    if fitted:
        summarizer = ModelSummarizer(model, max_input_tokens=1000)
        middleware = [ContextWindowMiddleware(window=WINDOW, reserve=ANSWER, summarizer=summarizer)]
    create_agent(model, tools=[], middleware=middleware).invoke({"messages": _history(12)})


# --- LlamaIndex ----------------------------------------------------------------------------------


def _open_ai_like(wire: _Wire) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    clients = wire.clients()
    return OpenAILike(
        model=NAME,
        api_base=wire.address,
        api_key="not-a-key",
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=WINDOW,
        max_tokens=ANSWER,
        max_retries=0,
        temperature=0,
        http_client=clients["http_client"],
        async_http_client=clients["http_async_client"],
    )


def _engine(wire: _Wire, fitted: bool) -> None:  # noqa: FBT001
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer

    from llama_index_muntin import CompactingMemory

    llm = _open_ai_like(wire)
    said = [
        ChatMessage(role=role, content=text)
        for record in blocks.questions()[:12]
        for role, text in (("user", record["question"]), ("assistant", _passages(record)[0]))
    ]
    whole = ChatMemoryBuffer.from_defaults(chat_history=said, token_limit=10**6)
    memory: Any = CompactingMemory.from_defaults(chat_history=said, llm=llm) if fitted else whole
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
    for record in blocks.questions()[:QUESTIONS]:
        engine.chat(f"{record['question']}? You can find it here: {_passages(record)[0]}")


def _index_agent(wire: _Wire, fitted: bool) -> None:  # noqa: FBT001
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.llms import ChatMessage

    from llama_index_muntin import with_window

    def search(query: str) -> str:
        """Search the encyclopaedia."""
        del query
        return "nothing found"

    agent: Any = FunctionAgent(llm=_open_ai_like(wire), tools=[search], streaming=False)
    if fitted:
        agent = with_window(agent, window=WINDOW, output_reserve=ANSWER)
    said = [
        ChatMessage(role=role, content=text)
        for record in blocks.questions()[:12]
        for role, text in (
            ("user", record["question"]),
            ("assistant", "\n".join(_passages(record)[:3])),
        )
    ]

    async def ask() -> None:
        await agent.run(user_msg="Which answer was the longest?", chat_history=said)

    asyncio.run(ask())
