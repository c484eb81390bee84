"""How each kind of agent keeps its own steps, and the messages that represent them in a fit.

A fit keeps a call with its result. FunctionAgent writes both as such. ReActAgent keeps reasoning
steps, and CodeActAgent gives results the role of the user, so they would be taken for the newest
question. Their steps are therefore fitted as rounds of calls under an id, and translated back by
it. The argument of such a call is a digest of the action: only the same action again supersedes a
result.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.agent.react.types import (
    ActionReasoningStep,
    BaseReasoningStep,
    ObservationReasoningStep,
)
from llama_index.core.agent.workflow import CodeActAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_muntin._conversion import as_chat_message
from llama_index_muntin._models import schemas_of
from llama_index_muntin._shapes import SHAPE
from muntin.messages import canonical_json
from muntin.prompts import DEFAULT_PROMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("CodeSteps", "ReasoningSteps", "Steps", "steps_of")

_ID = "id"


class Steps:
    """The steps of an agent that writes calls and results into a scratchpad."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.key: str = getattr(agent, "scratchpad_key", "scratchpad")

    def schemas(self, tools: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the tool schemas that are sent with a request."""
        return schemas_of(tools)

    def shown(self, items: Sequence[Any]) -> list[Any]:
        """Return the steps as messages for the fit."""
        return list(items)

    def restored(self, fitted: Sequence[Any], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:  # noqa: ARG002 - others need it
        """Split the fitted messages into messages and steps: here all are messages."""
        return [as_chat_message(message) for message in fitted], []

    def storable(self, items: list[Any], shorten: Callable[[str], str]) -> list[Any]:  # noqa: ARG002 - others need it
        """Return the steps as a memory can keep them; the given list if nothing has to change."""
        return items

    def told(self, items: Sequence[Any]) -> list[ChatMessage]:
        """Return the steps as messages a memory can keep, open calls answered by a note."""
        messages: list[ChatMessage] = list(items)
        answered = {
            result.call_id for message in messages for result in SHAPE.view(message).results
        }
        note = DEFAULT_PROMPTS.get("conversation.interrupted")
        open_calls = [
            call
            for message in messages
            for call in SHAPE.view(message).calls
            if call.id not in answered
        ]
        return [*messages, *(SHAPE.answer(call, note) for call in open_calls)]


class _RoundSteps(Steps):
    """Steps that are shown to the fit as rounds under an id."""

    def is_result(self, item: Any) -> bool:
        """Return whether a step is the result of the one before it."""
        raise NotImplementedError

    def text(self, item: Any) -> str:
        """Return the text of a step."""
        raise NotImplementedError

    def with_text(self, item: Any, text: str) -> Any:
        """Copy a step with another text."""
        raise NotImplementedError

    def action(self, item: Any) -> str:
        """Return the action of a step as text; equal actions have equal texts."""
        return self.text(item)

    def shown(self, items: Sequence[Any]) -> list[Any]:
        """Return each step as a message: a call with its result, or a plain one."""
        messages: list[Any] = []
        for at, item in enumerate(items):
            mark = f"step-{at}"
            follows = at + 1 < len(items) and self.is_result(items[at + 1])
            if self.is_result(item) and at and not self.is_result(items[at - 1]):
                messages.append(
                    {
                        "role": "tool",
                        "content": self.text(item),
                        "tool_call_id": f"step-{at - 1}",
                        _ID: mark,
                    }
                )
                continue
            message: dict[str, Any] = {"role": "assistant", "content": self.text(item), _ID: mark}
            if follows:
                function = {"name": "step", "arguments": _digest(self.action(item))}
                message["tool_calls"] = [{"id": mark, "type": "function", "function": function}]
            messages.append(message)
        return messages

    def _back(self, message: Any, items: Sequence[Any]) -> Any:
        """Return the step that a message represents; `None` for a message of the conversation."""
        if not isinstance(message, dict):
            return None
        shown = cast("dict[str, Any]", message)
        mark = str(shown.get(_ID, ""))
        if not mark.startswith("step-"):
            return None
        item = items[int(mark.removeprefix("step-"))]
        text: str = shown["content"]
        return item if text == self.text(item) else self.with_text(item, text)


class ReasoningSteps(_RoundSteps):
    """The thoughts, actions and observations of a ReActAgent."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self.key = agent.reasoning_key

    def schemas(self, tools: Sequence[Any]) -> list[dict[str, Any]]:  # noqa: ARG002 - listed in its system prompt
        """Return nothing: the system prompt lists the tools."""
        return []

    def is_result(self, item: BaseReasoningStep) -> bool:
        """Return whether a step is an observation."""
        return isinstance(item, ObservationReasoningStep)

    def text(self, item: BaseReasoningStep) -> str:
        """Return the text of a step; of an observation, what was observed."""
        if isinstance(item, ObservationReasoningStep):
            return item.observation
        return item.get_content()

    def with_text(self, item: BaseReasoningStep, text: str) -> BaseReasoningStep:
        """Copy an observation with another text."""
        if isinstance(item, ObservationReasoningStep):
            return item.model_copy(update={"observation": text})
        return item

    def action(self, item: BaseReasoningStep) -> str:
        """Return the tool and its arguments, without the thought."""
        if isinstance(item, ActionReasoningStep):
            given = cast("dict[str, Any]", item.action_input)  # pyright: ignore[reportUnknownMemberType] - theirs is a bare Dict
            return f"{item.action} {canonical_json(given)}"
        return self.text(item)

    def restored(self, fitted: Sequence[Any], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Split the fitted messages into messages and steps."""
        messages: list[Any] = []
        steps: list[Any] = []
        for message in fitted:
            step = self._back(message, items)
            if step is None:
                messages.append(as_chat_message(message))
            else:
                steps.append(step)
        return messages, steps

    def told(self, items: Sequence[Any]) -> list[ChatMessage]:
        """Return each step as a message of the assistant."""
        return [
            ChatMessage(role=MessageRole.ASSISTANT, content=item.get_content()) for item in items
        ]


class CodeSteps(_RoundSteps):
    """The code and the results of a CodeActAgent."""

    def schemas(self, tools: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the schema of the only tool that is called as one: the one that hands over."""
        return schemas_of([tool for tool in tools if tool.metadata.name == "handoff"])

    def is_result(self, item: ChatMessage) -> bool:
        """Return whether a message is the result of a run of code."""
        return item.role in (MessageRole.USER, MessageRole.TOOL)

    def text(self, item: ChatMessage) -> str:
        """Return the text of a message."""
        return item.content or ""

    def with_text(self, item: ChatMessage, text: str) -> ChatMessage:
        """Copy a message with another text."""
        return SHAPE.with_text(item, text)

    def restored(self, fitted: Sequence[Any], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return everything as messages, each step as it is sent."""
        back = [self._back(message, items) for message in fitted]
        return [
            as_chat_message(message) if step is None else _said(step)
            for message, step in zip(fitted, back, strict=True)
        ], []

    def storable(self, items: list[Any], shorten: Callable[[str], str]) -> list[Any]:
        """Cut results, which have the role of the user, to what `shorten` leaves of them."""
        kept = [self._storable(_said(item), shorten) for item in items]
        same = all(one is other for one, other in zip(kept, items, strict=True))
        return items if same else kept

    def _storable(self, item: ChatMessage, shorten: Callable[[str], str]) -> ChatMessage:
        if item.role is not MessageRole.USER:
            return item
        text = self.text(item)
        shorter = shorten(text)
        return item if shorter is text or shorter == text else self.with_text(item, shorter)

    def told(self, items: Sequence[Any]) -> list[ChatMessage]:
        """Return the messages as they are."""
        return list(items)


def steps_of(agent: Any) -> Steps:
    """Return how an agent keeps its steps; an unknown kind is taken for one with a scratchpad."""
    if isinstance(agent, ReActAgent):
        return ReasoningSteps(agent)
    if isinstance(agent, CodeActAgent):
        return CodeSteps(agent)
    return Steps(agent)


def _said(item: ChatMessage) -> ChatMessage:
    """Give a result the role of the user, as results of code have it: the agent keeps no call."""
    if item.role is not MessageRole.TOOL:
        return item
    kwargs = {key: value for key, value in item.additional_kwargs.items() if key != "tool_call_id"}
    return item.model_copy(update={"role": MessageRole.USER, "additional_kwargs": kwargs})


def _digest(action: str) -> str:
    """Write the arguments of a substitute call: short, the text of the step holds it in full."""
    mark = hashlib.blake2b(action.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return json.dumps({"digest": mark})
