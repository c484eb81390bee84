"""Recall what was said and found before: index finished interactions, fetch what fits a question.

It works on the stores people have (`recall_stores`). What comes back is de-duplicated, kept inside
a budget, and cached until something is written or the entry has aged. It does not rank again: the
store already did.

Both operations are flows that yield calls to the store; the plain and the async door only perform
them, so there is one policy and no twin of it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import threading
import time
from collections import OrderedDict
from contextlib import closing
from typing import TYPE_CHECKING, Any

from muntin.counting import checked_counter, checked_tokens, truncate_to_tokens
from muntin.errors import ConfigurationError, ContextError, SourceError
from muntin.interactions.stores import result_text, store_calls
from muntin.passages import Candidate, select
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import Same
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from muntin.counting import AnyCounter
    from muntin.interactions.stores import Call
    from muntin.prompts import PromptRegistry

__all__ = ("ContextRetriever", "RecallCache")

_INDEXED_IDS = 10_000
"""Ids of the last indexed interactions that are remembered."""
_LABEL_PLACE = re.compile(r"(^|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])(?=\[)")


class RecallCache:
    """Remember answers: the least recently used go first, and none lives longer than its time.

    ```python
    from muntin.interactions.retriever import RecallCache

    now = [0.0]
    cache = RecallCache(max_entries=2, ttl_seconds=60, clock=lambda: now[0])
    cache.keep("question", "answer", cache.generation)
    now[0] = 61.0
    print(cache.look("question"))
    #> None
    ```
    """

    def __init__(
        self,
        *,
        max_entries: int = 128,
        ttl_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_entries < 0 or not ttl_seconds > 0:
            raise ConfigurationError(
                f"a cache needs max_entries >= 0 (0 caches nothing) and ttl_seconds > 0, "
                f"got {max_entries} and {ttl_seconds}"
            )
        self._max_entries = max_entries
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._entries: OrderedDict[object, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()
        self.generation = 0
        """Times the cache was cleared. What was asked for before a write is not kept after it."""

    def __len__(self) -> int:
        return len(self._entries)

    def look(self, key: object) -> str | None:
        """Return what is remembered and still young enough."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            if self._clock() - found[0] >= self._ttl_seconds:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return found[1]

    def keep(self, key: object, answer: str, generation: int) -> None:
        """Remember an answer that was asked for in a generation; an older one is not kept."""
        with self._lock:
            if generation != self.generation:
                return
            self._entries[key] = (self._clock(), answer)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.generation += 1


class ContextRetriever:
    """Recall from a store of documents and past interactions, and add to it.

    Args:
        vector_store: A LangChain vector store, a LlamaIndex index, or anything with
            `search(query, top_k=)` and `add(text, metadata=)`. A retriever can be asked only.
        cache: Remembers answers; None makes a `RecallCache` of its own. Several retrievers may
            share one, also over different stores. Writes that do not go through
            `index_interaction` are seen when entries age.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: The words of labels and of indexed interactions.

    Raises:
        ConfigurationError: The store can do nothing that is known.

    ```python
    from muntin import ContextRetriever

    class Shelf:
        def __init__(self):
            self.texts = []

        def search(self, query, top_k):
            return [text for text in self.texts if query.lower() in text.lower()][:top_k]

        def add(self, text, metadata):
            self.texts.append(text)

    recall = ContextRetriever(Shelf())
    recall.index_interaction("Which seat?", "14C, an aisle seat")
    recall.index_interaction("Which seat?", "14C, an aisle seat")
    print(recall.get_relevant_context("seat"))
    #> [Relevant context 1]
    #> Q: Which seat?
    #> A: 14C, an aisle seat
    ```
    """

    def __init__(
        self,
        vector_store: Any,
        *,
        cache: RecallCache | None = None,
        counter: AnyCounter = None,
        model: object = None,
        prompts: PromptRegistry = DEFAULT_PROMPTS,
    ) -> None:
        self.vector_store = vector_store
        self.cache = RecallCache() if cache is None else cache
        self._calls = store_calls(vector_store)
        self._counter = checked_counter(counter, model=model)
        self._prompts = prompts
        self._indexed: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def get_relevant_context(self, query: str, k: int = 5, max_tokens: int | None = None) -> str:
        """Fetch what the store holds on a question, as labelled passages.

        Args:
            query: The question.
            k: Most passages.
            max_tokens: Tokens the text may take, labels included. A passage that does not fit is
                passed over for the next that does; if none fits the first is cut. None takes all.

        Returns:
            The passages, the store's best first, each once; empty when there are none.

        Raises:
            ConfigurationError: `k` or `max_tokens` is below 1, or the store is async only.
            SourceError: The store failed, or returned something without text.
        """
        return _run(self._recalling(query, k, max_tokens))

    async def aget_relevant_context(
        self, query: str, k: int = 5, max_tokens: int | None = None
    ) -> str:
        """Fetch without blocking; see `get_relevant_context`."""
        return await _arun(self._recalling(query, k, max_tokens))

    def index_interaction(
        self, query: str, response: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Add a finished interaction to the store, once.

        The same query and response are not added again by this retriever; a store that takes ids
        is given one made from them, so that other processes do not add them twice either.

        Args:
            query: What was asked.
            response: What was answered.
            metadata: Stored with it, besides `interaction_id`. It is not changed.

        Returns:
            The interaction's id.

        Raises:
            ConfigurationError: The store cannot be added to, or is async only.
            SourceError: The store failed. The interaction may be indexed again.
        """
        return _run(self._indexing(query, response, metadata))

    async def aindex_interaction(
        self, query: str, response: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Add without blocking; see `index_interaction`."""
        return await _arun(self._indexing(query, response, metadata))

    def _recalling(self, query: str, k: int, max_tokens: int | None) -> Generator[Call, Any, str]:
        k = checked_tokens(k, "k", unit="passages")
        if max_tokens is not None:
            max_tokens = checked_tokens(max_tokens, "max_tokens")
        # A cache may be shared: another store, counter or wording answers otherwise.
        asked = (self.vector_store, self._counter, self._prompts)
        key = (*map(Same, asked), query, k, max_tokens)
        generation = self.cache.generation
        remembered = self.cache.look(key)
        if remembered is not None:
            return remembered
        try:
            results = yield self._calls.search(query, k)
            texts = [clean_text(result_text(result)).strip() for result in results or ()][:k]
        except ContextError:
            raise
        except Exception as error:
            raise SourceError("recall", f"could not be searched: {error!r}") from error
        answer = self._written([text for text in texts if text], max_tokens)
        self.cache.keep(key, answer, generation)
        return answer

    def _indexing(
        self, query: str, response: str, metadata: Mapping[str, Any] | None
    ) -> Generator[Call, Any, str]:
        text = self._prompts.render("recall.interaction", query=query, response=response)
        content = json.dumps([query, response]).encode()
        entry_id = hashlib.sha256(content).hexdigest()[:32]
        call = self._calls.add(
            clean_text(text), {**(metadata or {}), "interaction_id": entry_id}, entry_id
        )
        with self._lock:
            # Claimed before the store is asked, so that two at once do not both add it.
            if entry_id in self._indexed:
                self._indexed.move_to_end(entry_id)
                return entry_id
            self._indexed[entry_id] = None
            while len(self._indexed) > _INDEXED_IDS:
                self._indexed.popitem(last=False)
        try:
            yield call
        except BaseException as error:
            with self._lock:
                self._indexed.pop(entry_id, None)
            if isinstance(error, ContextError) or not isinstance(error, Exception):
                raise
            raise SourceError("recall", f"could not be added to: {error!r}") from error
        self.cache.clear()
        return entry_id

    def _written(self, texts: Sequence[str], max_tokens: int | None) -> str:
        """Label distinct passages, as many as fit."""
        chosen = select([Candidate(text) for text in texts], lambda_=1.0, similarity="lexical")
        passages = [candidate.content for candidate in chosen.kept]
        whole = self._labelled(passages)
        if max_tokens is None or self._counter(whole) <= max_tokens:
            return whole
        fitting: list[str] = []
        left = max_tokens
        for passage in passages:
            size = self._counter(f"{self._labelled([passage])}\n\n")
            if size <= left:
                fitting.append(passage)
                left -= size
        # Parts counted alone may take more when joined.
        while fitting and self._counter(self._labelled(fitting)) > max_tokens:
            fitting = fitting[: len(fitting) * 3 // 4]
        if fitting:
            return self._labelled(fitting)
        return truncate_to_tokens(self._labelled(passages[:1]), max_tokens, self._counter)

    def _labelled(self, passages: Sequence[str]) -> str:
        return "\n\n".join(
            f"{self._prompts.render('recall.item', number=number)}\n"
            # A line that could pass for a label loses its place at the margin.
            f"{_LABEL_PLACE.sub(lambda match: f'{match[1]} ', passage)}"
            for number, passage in enumerate(passages, start=1)
        )


def _run(flow: Generator[Call, Any, str]) -> str:
    """Perform a flow's calls, blocking."""
    with closing(flow):
        try:
            call = next(flow)
            while True:
                try:
                    answer = call.plain()
                    if inspect.isawaitable(answer):
                        _refuse(answer)
                except Exception as error:  # noqa: BLE001 - the flow decides what it means
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as end:
            return end.value


async def _arun(flow: Generator[Call, Any, str]) -> str:
    """Perform a flow's calls without blocking the loop."""
    import asyncio

    with closing(flow):
        try:
            call = next(flow)
            while True:
                try:
                    answer = await (call.twin() if call.twin else asyncio.to_thread(call.plain))
                    if inspect.isawaitable(answer):
                        answer = await answer
                except Exception as error:  # noqa: BLE001 - the flow decides what it means
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as end:
            return end.value


def _refuse(answer: Any) -> None:
    close = getattr(answer, "close", None)
    if close is not None:
        close()  # or Python warns that it was never awaited
    raise ConfigurationError(
        "the store is async: use aget_relevant_context() and aindex_interaction()"
    )
