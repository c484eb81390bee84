"""Index finished interactions and fetch those that belong to a question.

Any store of either framework works. What comes back is de-duplicated, kept inside a budget, and
cached until something is written or the entry has aged. The order is that of the store.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from muntin.counting import checked_counter, checked_tokens, truncate_to_tokens
from muntin.errors import ContextError, SourceError
from muntin.interactions.cache import RecallCache
from muntin.interactions.stores import result_text, store_calls
from muntin.passages import Candidate, select
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import Same, aperform, perform
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.counting import AnyCounter
    from muntin.prompts import PromptRegistry
    from muntin.runtime import CallFlow

__all__ = ("ContextRetriever",)

_INDEXED_IDS = 10_000
"""Ids of the last indexed interactions that are remembered."""
_LABEL_PLACE = re.compile(r"(^|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])(?=\[)")


class ContextRetriever:
    """Recall from a store of documents and past interactions, and add to it.

    Args:
        vector_store: A LangChain vector store, a LlamaIndex index, or anything with
            `search(query, top_k=)` and `add(text, metadata=)`. A retriever can only be searched.
        cache: Remembers answers; None makes a `RecallCache` of its own. Several retrievers may
            share one, also over different stores. Writes of this process through
            `index_interaction` are seen at once, those of other processes at once where the cache
            has a `shared` record store; all others when entries age. Empty answers are not cached.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: The texts of labels and of indexed interactions.

    Raises:
        ConfigurationError: The store has no method to search with.

    ```python
    from muntin import ContextRetriever

    class Notes:
        def __init__(self):
            self.texts = []

        def search(self, query, top_k):
            return [text for text in self.texts if query.lower() in text.lower()][:top_k]

        def add(self, text, metadata):
            self.texts.append(text)

    recall = ContextRetriever(Notes())
    recall.index_interaction("Which port?", "8443, behind the proxy")
    recall.index_interaction("Which port?", "8443, behind the proxy")
    print(recall.get_relevant_context("port"))
    #> [Relevant context 1]
    #> Q: Which port?
    #> A: 8443, behind the proxy
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
        """Fetch what the store finds for a question, as labelled passages.

        Args:
            query: The question.
            k: Most passages.
            max_tokens: Tokens of the text at most, labels included. A passage that does not fit is
                skipped for the next that does; if none fits, the first is cut. None takes all.

        Returns:
            The passages, the store's best first, each once; empty when there are none.

        Raises:
            ConfigurationError: `k` or `max_tokens` is below 1, or the store is async only.
            SourceError: The store failed, or returned something without text.
        """
        return perform(self._recalling(query, k, max_tokens))

    async def aget_relevant_context(
        self, query: str, k: int = 5, max_tokens: int | None = None
    ) -> str:
        """Fetch without blocking; see `get_relevant_context`."""
        return await aperform(self._recalling(query, k, max_tokens))

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
        return perform(self._indexing(query, response, metadata))

    async def aindex_interaction(
        self, query: str, response: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Add without blocking; see `index_interaction`."""
        return await aperform(self._indexing(query, response, metadata))

    def _recalling(self, query: str, k: int, max_tokens: int | None) -> CallFlow[str]:
        k = checked_tokens(k, "k", unit="passages")
        if max_tokens is not None:
            max_tokens = checked_tokens(max_tokens, "max_tokens")
        # A cache may be shared: another store, counter or wording has other answers.
        asked = (self.vector_store, self._counter, self._prompts)
        key = (*map(Same, asked), query, k, max_tokens)
        generation = yield from self.cache.generation(self.vector_store)
        remembered = None if generation is None else self.cache.look(key, generation)
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
        if generation is not None:
            self.cache.keep(key, answer, generation)
        return answer

    def _indexing(
        self, query: str, response: str, metadata: Mapping[str, Any] | None
    ) -> CallFlow[str]:
        text = self._prompts.render("recall.interaction", query=query, response=response)
        content = json.dumps([query, response]).encode()
        entry_id = hashlib.sha256(content).hexdigest()[:32]
        call = self._calls.add(
            clean_text(text), {**(metadata or {}), "interaction_id": entry_id}, entry_id
        )
        with self._lock:
            # Claimed before the call, so that two at once do not both add it.
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
        yield from self.cache.written(self.vector_store)
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
            # A line that looks like a label is indented.
            f"{_LABEL_PLACE.sub(lambda match: f'{match[1]} ', passage)}"
            for number, passage in enumerate(passages, start=1)
        )
