"""The model calls of one agent: what is sent, what is published, what is remembered."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from langchain_muntin._agents.events import Publish
from langchain_muntin._agents.provider import settings_for
from langchain_muntin._agents.remembered import (
    Remembered,
    ThreadRecords,
    place_of_run,
    thread_of_run,
)
from langchain_muntin._agents.retention import trimmed
from langchain_muntin._agents.tool_results import offered
from langchain_muntin._shapes import SHAPE
from langchain_muntin._values.models import ModelFacts, answer_schemas
from muntin.adapting import (
    Accounts,
    RequestAccount,
    carried_state,
    is_edited_request,
    named_ids,
    overflow_of_answer,
    value_of,
)
from muntin.errors import ContextWindowExceeded
from muntin.messages import checks_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_muntin._agents.tool_results import ReadBackTool
    from muntin.adapting import Keeper, Limit, Outgoing, Policy, Refusal, RequestFacts, Restate
    from muntin.tool_results import ToolResultStore

__all__ = ("AgentWindow",)

_PLACES = 1000
"""Places whose facts are kept; the oldest are removed first."""
_LINE_TOKENS = 32
"""Tokens set aside for the line that states how full the window is."""


@dataclass(kw_only=True)
class AgentWindow:
    """Keep the requests of an agent inside the window."""

    keeper: Keeper
    """Decides what is sent."""
    store: ToolResultStore
    """Keeps originals and decisions."""
    reading: ReadBackTool
    """The tool that reads originals."""
    records: ThreadRecords
    """Keeps decisions and lessons of threads for other processes."""
    restate: Restate | None
    """Makes a state to put back of the agent's state."""
    read_back: bool
    """Whether the reading tool is offered."""
    tell_model: bool
    """Whether requests include a line that states how full the window is."""
    trim_state: bool
    """Whether the state is trimmed to what was sent."""
    provider: Limit | None
    """From which size on the provider compacts; `None` if it is not asked to."""
    stream_accounts: bool
    """Whether accounts are written to the custom stream."""
    accounts: Accounts = field(default_factory=Accounts)
    """The newest account of each thread."""
    asked: set[str] = field(default_factory=set[str])
    """Threads whose next request is compacted."""
    facts: OrderedDict[str, RequestFacts] = field(default_factory=OrderedDict[str, "RequestFacts"])
    """Facts of the newest request of each place, for the caps of tool results."""

    def call(self, request: ModelRequest[Any], handler: Any) -> Policy[ExtendedModelResponse[Any]]:
        state = cast("Mapping[str, Any]", request.state)
        thread, place = thread_of_run(), place_of_run()
        remembered = self.records.load(place)
        for decision in remembered.decisions:
            self.keeper.decisions.add(decision)
        request = self._with_tools(request)
        facts = self._facts(request, remembered)
        self._remember(place, facts)
        messages = _conversation(request)
        beside = carried_state(state, self.restate)
        outgoing = yield from self.keeper.policy(
            facts,
            messages,
            remembered.newest,
            state=beside,
            thread=thread,
            asked=thread in self.asked,
        )
        self.asked.discard(thread)
        yield self._published(facts, outgoing, request, thread)
        try:
            response = yield _Send(self._filled(request, facts, outgoing), handler)
        except Exception as error:  # noqa: BLE001 - all but refusals for size are raised again
            outgoing = yield from self.keeper.after_error(
                error, facts, messages, outgoing, state=beside
            )
            yield self._published(facts, outgoing, request, thread)
            response = yield _Send(self._filled(request, facts, outgoing), handler)
        else:
            full = _overflow(cast("ModelResponse[Any]", response))
            smaller = None
            if full is not None:
                smaller = yield from self._smaller(facts, messages, outgoing, full, beside)
            if smaller is not None:
                outgoing = smaller
                yield self._published(facts, outgoing, request, thread)
                response = yield _Send(self._filled(request, facts, outgoing), handler)
        self._learn(facts, outgoing, cast("ModelResponse[Any]", response))
        self.records.save(place, remembered, outgoing.saved, self.keeper.lessons.ratios())
        update: dict[str, Any] = {}
        if self.trim_state:
            update = self._trimmed(request, outgoing, cast("ModelResponse[Any]", response))
        return ExtendedModelResponse(
            model_response=response, command=Command(update=update) if update else None
        )

    def _with_tools(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self.read_back:
            return request
        reads = any(isinstance(message, ToolMessage) for message in request.messages)
        tools = offered(
            request.tools,
            self.reading,
            request.model,
            reads=reads,
            named=reads and bool(self.ids(_conversation(request))),
        )
        return request if tools is request.tools else request.override(tools=list(tools))

    def ids(self, messages: Sequence[BaseMessage]) -> frozenset[str]:
        """Return the ids of originals that the conversation names, as it is sent."""
        sent: Sequence[Any] = value_of(self.keeper.decisions.find(messages), "send") or ()
        written = [one for one in sent if isinstance(one, BaseMessage)]
        return named_ids([*messages, *written])

    def _facts(self, request: ModelRequest[Any], remembered: Remembered) -> RequestFacts:
        model = ModelFacts.of(request.model)

        def read() -> RequestFacts:
            return self.keeper.facts(
                model,
                request.tools,
                schemas=answer_schemas(request.response_format),
                settings=request.model_settings,
                set_aside=_LINE_TOKENS if self.tell_model else 0,
            )

        facts = read()
        return read() if self.keeper.lessons.recall(facts, remembered.ratios) else facts

    def _smaller(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
        outgoing: Outgoing,
        full: Refusal,
        beside: Any,
    ) -> Policy[Outgoing | None]:
        """Return a smaller request for an answer that the window cut; `None` if none is possible.

        Without a smaller request the cut answer is what there is.
        """
        try:
            return (
                yield from self.keeper.after_refusal(facts, messages, outgoing, full, state=beside)
            )
        except ContextWindowExceeded:
            return None

    def _published(
        self, facts: RequestFacts, outgoing: Outgoing, request: ModelRequest[Any], thread: str
    ) -> Publish:
        """Keep the account of a request and return the step that publishes it."""
        account = RequestAccount(facts=facts, outgoing=outgoing, thread=thread)
        self.accounts.add(account)
        writer = getattr(request.runtime, "stream_writer", None) if self.stream_accounts else None
        return Publish(account, writer)

    def _filled(
        self, request: ModelRequest[Any], facts: RequestFacts, outgoing: Outgoing
    ) -> ModelRequest[Any]:
        """Write what is sent into the request; the system message has its own field."""
        messages: list[Any] = list(outgoing.messages)
        # The next request does not hold the line, so no reasoning may be written behind it.
        if self.tell_model and not checks_prefix(facts.name):
            line = RequestAccount(facts=facts, outgoing=outgoing).line()
            messages.append(SHAPE.note(line, "user"))
        if self.provider is not None:
            settings = settings_for(
                request.model,
                request.model_settings,
                facts.tokens_of(self.provider, messages),
                facts.budget,
            )
            request = request.override(model_settings=settings)
        if request.system_message is None:
            return request.override(messages=messages)
        return request.override(system_message=messages[0], messages=messages[1:])

    def _learn(self, facts: RequestFacts, outgoing: Outgoing, response: ModelResponse[Any]) -> None:
        if any(SHAPE.view(message).compacts for message in response.result):
            return  # the provider counted what its summary left of the prompt
        for message in response.result:
            usage = message.usage_metadata if isinstance(message, AIMessage) else None
            if usage and usage["input_tokens"] and not is_edited_request(message.response_metadata):
                charged = usage["input_tokens"]
                self.keeper.lessons.learn(facts, outgoing.tokens, charged, accepted=charged)

    def _remember(self, place: str, facts: RequestFacts) -> None:
        self.facts[place] = facts
        self.facts.move_to_end(place)
        while len(self.facts) > _PLACES:
            self.facts.popitem(last=False)

    def _trimmed(
        self, request: ModelRequest[Any], outgoing: Outgoing, response: ModelResponse[Any]
    ) -> dict[str, Any]:
        """Return the update that makes the stored messages those that were sent."""
        if outgoing.saved is None:
            return {}
        front = 0 if request.system_message is None else 1
        changes = trimmed(request.messages, outgoing.messages[front:], response.result, self.store)
        return {} if changes is None else {"messages": changes}


@dataclass(frozen=True, slots=True)
class _Send:
    """Call the model."""

    request: ModelRequest[Any]
    handler: Any

    def do(self) -> ModelResponse[Any]:
        return self.handler(self.request)

    async def ado(self) -> ModelResponse[Any]:
        return await self.handler(self.request)


def _conversation(request: ModelRequest[Any]) -> Sequence[BaseMessage]:
    front = [request.system_message] if request.system_message is not None else []
    return [*cast("list[BaseMessage]", front), *request.messages]


def _overflow(response: ModelResponse[Any]) -> Refusal | None:
    """Return the refusal that an answer amounts to which ended because the window was full."""
    for message in response.result:
        if isinstance(message, AIMessage):
            said = message.text or str(message.tool_calls or message.invalid_tool_calls or "")
            full = overflow_of_answer(message.response_metadata, said)
            if full is not None:
                return full
    return None
