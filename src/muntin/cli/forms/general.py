"""Lists of messages of any kind, in the containers that frameworks and data sets put them into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.families.datasets import DATASET_KINDS
from muntin.cli.forms.families.frameworks import FRAMEWORK_KINDS
from muntin.cli.forms.families.providers import inside, provider_kind
from muntin.cli.forms.families.vercel import VERCEL_KINDS
from muntin.cli.forms.form import Form, Place, places_in
from muntin.cli.forms.message import as_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.cli.forms.message import Kind, Raw

__all__ = ("CONTAINERS", "GENERAL", "kind_of")

_TITLES = {
    "langchain-constructor": "LangChain `dumpd` (`lc`, `kwargs`)",
    "langchain": "LangChain `messages_to_dict` (`type`, `data`)",
    "langchain-flat": "LangChain and LangGraph `model_dump` (`type`, `content`)",
    "llama-index": "LlamaIndex `ChatMessage` dumps",
    "vercel-ui": "Vercel AI SDK `UIMessage`s (`parts`, `toolInvocations`)",
    "vercel-model": "Vercel AI SDK `ModelMessage`s (`tool-call`, `tool-result`)",
    "sharegpt": "ShareGPT (`from`, `value`), with tool roles",
    "llama-factory": "LLaMA-Factory's own form (parts with `type`, `value`)",
    "turns": "data sets of turns (`role`, `text`)",
}


def kind_of(raws: Sequence[Raw]) -> Kind | None:
    """Return how a list of messages is read; None when it holds none."""
    for kind in (*FRAMEWORK_KINDS, *VERCEL_KINDS, *DATASET_KINDS):
        if kind.owns_all(raws):
            return kind
    return provider_kind(raws)


def _only(kind: Kind) -> Callable[[Any], list[Place]]:
    def found(document: Any) -> list[Place]:
        return places_in(document, lambda raws: kind if kind.owns_all(raws) else None)

    return found


def _named(kind: Kind) -> Callable[[Any], list[Place]]:
    def found(document: Any) -> list[Place]:
        return places_in(document, lambda raws: kind if all(map(kind.owns, raws)) else None)

    return found


GENERAL = tuple(
    Form(name=kind.name, title=_TITLES[kind.name], find=_only(kind), find_named=_named(kind))
    for kind in (*FRAMEWORK_KINDS, *VERCEL_KINDS, *DATASET_KINDS)
)


def _llama_store(document: Any) -> list[Place]:
    """Find the conversations of a persisted `SimpleChatStore`, one for every key."""
    known = as_record(document) or {}
    for key in ("store", "chat_store"):
        stored = as_record(known.get(key))
        if stored is None:
            continue
        found: list[Place] = []
        for name, value in stored.items():
            places = places_in(value, kind_of)
            found += [
                Place(kind=one.kind, path=(key, name), label=name) for one in places if not one.path
            ]
        if found:
            return found
        inner = _llama_store(stored)
        if inner:
            return inside(inner, key)
    return []


def _langsmith(document: Any) -> list[Place]:
    """Find what a run was given: `inputs.messages`, a list of messages or of such lists."""
    known = as_record(document) or {}
    inputs = as_record(known.get("inputs"))
    if inputs is None:
        return []
    for key in ("messages", "input", "chat_history"):
        value: Any = inputs.get(key)
        if not isinstance(value, list) or not value:
            continue
        items = cast("list[Any]", value)
        nested = isinstance(items[0], list)
        path = ("inputs", key, 0) if nested else ("inputs", key)
        inner: Any = items[0] if nested else items
        places = [one for one in places_in(inner, kind_of) if not one.path]
        if places:
            extra = as_record((as_record(known.get("extra")) or {}).get("invocation_params")) or {}
            tools = ("extra", "invocation_params", "tools") if extra.get("tools") else None
            name = known.get("name")
            return [Place(kind=places[0].kind, path=path, tools=tools,
                          label=name if isinstance(name, str) else "")]  # fmt: skip
    return []


CONTAINERS = (
    Form(
        name="llama-index-store",
        title="LlamaIndex `SimpleChatStore` (`store`)",
        find=_llama_store,
    ),
    Form(name="langsmith", title="LangSmith runs (`inputs.messages`)", find=_langsmith),
)
