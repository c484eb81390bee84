"""Make sources of what LangChain and LangGraph have: retrievers, runnables, stores, histories.

Each returns candidates; a run that asks several sources shows each as a child in its trace. Nothing
is ranked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from langchain_muntin._shapes import SHAPE
from langchain_muntin._values.documents import RELEVANCE, Score, candidates_of
from muntin import adapting
from muntin.errors import ConfigurationError, SourceError
from muntin.messages import canonical_json
from muntin.passages import CallableSource, Candidate

if TYPE_CHECKING:
    from muntin.passages import ContextSource, OnError, Scope

__all__ = (
    "ChatHistorySource",
    "RetrieverSource",
    "RunnableSource",
    "StoreSource",
    "source_of",
    "sources_of",
)


class RunnableSource(CallableSource):
    """Make a source of any runnable that takes the question.

    What it returns may be documents, candidates, strings, messages, one of these, or `None`.

    Args:
        name: Name of the source.
        runnable: Any `Runnable`, such as `rewrite | retriever`.
        score: Where a document's score is.
        timeout: Seconds to wait; `None` waits as long as it takes.
        on_error: What happens when it fails.

    ```python
    from langchain_core.runnables import RunnableLambda
    from langchain_muntin import RunnableSource

    shout = RunnableLambda(lambda query: [f"You said {query.upper()}."])
    print(RunnableSource("memory", shout).fetch("hello")[0].content)
    #> You said HELLO.
    ```
    """

    def __init__(
        self,
        name: str,
        runnable: Runnable[Any, Any],
        *,
        score: Score = RELEVANCE,
        timeout: float | None = None,
        on_error: OnError = "raise",
    ) -> None:
        super().__init__(
            name,
            runnable.invoke,
            afetch=runnable.ainvoke,
            read=partial(candidates_of, name=name, score=score),
            pass_scope=False,  # a runnable takes its input only
            timeout=timeout,
            on_error=on_error,
        )


class RetrieverSource(RunnableSource):
    """Make a source of a retriever.

    Args:
        name: Name of the source.
        retriever: Any `BaseRetriever`.
        score: Where a document's score is: a metadata key or a function. Without a score a document
            counts by its rank.
        timeout: Seconds to wait; `None` waits as long as it takes.
        on_error: What happens when it fails: `raise` ends the assembly, `skip` leaves it out.

    ```python
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_muntin import RetrieverSource

    class Rules(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("Letters weigh 80 grams.", id="letters")]

    print([candidate.id for candidate in RetrieverSource("rag", Rules()).fetch("letters?")])
    #> ['letters']
    ```
    """

    def __init__(
        self,
        name: str,
        retriever: BaseRetriever,
        *,
        score: Score = RELEVANCE,
        timeout: float | None = None,
        on_error: OnError = "raise",
    ) -> None:
        super().__init__(name, retriever, score=score, timeout=timeout, on_error=on_error)


class _Item(Protocol):
    """What a LangGraph store finds."""

    key: str
    value: dict[str, Any]
    score: float | None


Namespace = tuple[str, ...] | Callable[["Scope | None"], tuple[str, ...]]
"""Where to look in a store: labels, in which `{user}`, `{agent}`, `{session}`, `{app}` and `{base}`
are replaced by the scope of the run, or a function of the scope."""


class StoreSource(CallableSource):
    """Make a source of a LangGraph store: what an agent remembers across threads.

    Args:
        name: Name of the source.
        store: Any LangGraph `BaseStore`; `None` takes the store of the graph that is running.
        namespace: Where to look.
        limit: Most items to take.
        text: Key of an item's value that holds its text, or a function of the value. `None` takes
            `text`, `content` or `memory`, else the whole value as JSON.
        timeout: Seconds to wait; `None` waits as long as it takes.
        on_error: What happens when it fails.

    ```python
    from langchain_muntin import StoreSource
    from langgraph.store.memory import InMemoryStore
    from muntin import Scope

    store = InMemoryStore()
    store.put(("memories", "ada"), "diet", {"text": "Ada is a vegetarian."})
    source = StoreSource("memory", store, ("memories", "{user}"))
    print(source.fetch("lunch?", Scope(user="ada"))[0].content)
    #> Ada is a vegetarian.
    ```
    """

    def __init__(
        self,
        name: str,
        store: Any = None,
        namespace: Namespace = ("memories",),
        *,
        limit: int = 20,
        text: str | Callable[[Mapping[str, Any]], str] | None = None,
        timeout: float | None = None,
        on_error: OnError = "raise",
    ) -> None:
        if limit < 1:
            raise ConfigurationError(f"source {name!r}: limit must be at least 1, not {limit}")
        super().__init__(
            name,
            self._search,
            afetch=self._asearch,
            read=self._found,
            timeout=timeout,
            on_error=on_error,
        )
        self._store = store
        self._namespace: Namespace = namespace
        self._limit = limit
        self._text = text

    def _search(self, query: str, scope: Scope | None) -> Any:
        return self._opened().search(self._where(scope), query=query, limit=self._limit)

    async def _asearch(self, query: str, scope: Scope | None) -> Any:
        return await self._opened().asearch(self._where(scope), query=query, limit=self._limit)

    def _opened(self) -> Any:
        if self._store is not None:
            return self._store
        from langgraph.config import get_store

        return get_store()

    def _where(self, scope: Scope | None) -> tuple[str, ...]:
        if callable(self._namespace):
            return self._namespace(scope)
        known = {name: getattr(scope, name, None) for name in _SCOPE}
        return tuple(self._label(label, known) for label in self._namespace)

    def _label(self, label: str, known: Mapping[str, str | None]) -> str:
        wanted = label[1:-1] if label.startswith("{") and label.endswith("}") else ""
        if wanted not in known:
            return label
        value = known[wanted]
        if value is None:
            raise SourceError(self.name, f"needs a scope with {wanted!r} to look in {label}")
        return value

    def _found(self, items: Sequence[_Item]) -> list[Candidate]:
        return [
            Candidate(self._text_of(item.value), item.score, id=item.key, metadata=item.value)
            for item in items
        ]

    def _text_of(self, value: Mapping[str, Any]) -> str:
        if callable(self._text):
            return self._text(value)
        for key in (self._text,) if self._text else ("text", "content", "memory"):
            if isinstance(value.get(key), str):
                return value[key]
        return canonical_json(value)


_SCOPE = ("base", "user", "agent", "session", "app")


class ChatHistorySource(CallableSource):
    """Make a source of a conversation that is not sent as messages: an earlier one, or another's.

    Each message of people and models is one candidate, the newest first; tool rounds are left out.

    Args:
        name: Name of the source.
        history: Messages, something with `.messages` (and `aget_messages`), or a function, sync or
            async, that returns one of these.
        last: Newest messages to offer; `None` offers all.

    ```python
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_muntin import ChatHistorySource

    talk = [HumanMessage("I moved to Oslo."), AIMessage("Noted.")]
    print(ChatHistorySource("memory", talk).fetch("where?")[1].content)
    #> user: I moved to Oslo.
    ```
    """

    def __init__(self, name: str, history: Any, *, last: int | None = None) -> None:
        if last is not None and last < 1:
            raise ConfigurationError(f"source {name!r}: last must be at least 1, not {last}")
        asked: Callable[[], Any] = history if callable(history) else lambda: history
        later: Callable[[], Any] | None = getattr(history, "aget_messages", None)
        afetch: Callable[[str], Any] | None = None if later is None else lambda _: later()
        super().__init__(
            name,
            lambda _: asked(),
            afetch=afetch,
            read=self._said,
            pass_scope=False,  # it offers the same for every scope
        )
        self._last = last

    def _said(self, given: object) -> list[Candidate]:
        messages = getattr(given, "messages", given)
        if not isinstance(messages, Sequence) or not all(
            isinstance(message, BaseMessage) for message in cast("Sequence[object]", messages)
        ):
            raise SourceError(self.name, "needs messages, or something that has some")
        said: list[BaseMessage] = []
        for message in reversed(cast("Sequence[BaseMessage]", messages)):
            view = SHAPE.view(message)
            if view.role in ("user", "assistant") and view.text and not view.calls:
                said.append(message)
        return candidates_of(said[: self._last], name=self.name)


def source_of(name: str, given: object, *, score: Score = RELEVANCE) -> ContextSource:
    """Make a source of one object: a source, a retriever, a runnable, a function, or documents.

    Args:
        name: Name of the source.
        given: The object.
        score: Where a document's score is.

    Raises:
        ConfigurationError: It is a `ContextSource` with another name.
        SourceError: It is none of these.
    """
    return adapting.source_of(
        name, given, adapt=partial(_adapted, score), read=partial(_read, score), values=True
    )


def sources_of(given: object, *, score: Score = RELEVANCE) -> tuple[ContextSource, ...]:
    """Make sources of what an entry point takes as `sources`.

    Raises:
        ConfigurationError: It is neither a mapping of names to sources nor a list of
            `ContextSource` objects.
    """
    return adapting.sources_of(
        given, adapt=partial(_adapted, score), read=partial(_read, score), values=True
    )


def _adapted(score: Score, name: str, given: Any) -> ContextSource | None:
    if isinstance(given, BaseRetriever):
        return RetrieverSource(name, given, score=score)
    if isinstance(given, Runnable):
        return RunnableSource(name, cast("Runnable[str, Any]", given), score=score)
    return None


def _read(score: Score, name: str, found: Any) -> list[Candidate]:
    return candidates_of(found, name=name, score=score)
