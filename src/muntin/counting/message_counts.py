"""Cache what messages cost: each is read and counted once.

An agent counts the same history at every step, plus the new messages. So single messages and whole
conversations are recognised, and the results for a conversation are cached with it.
`message_tokens` decides what a message costs.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from muntin.counting.charges.measured import Conversation, Measured
from muntin.counting.charges.message_tokens import count_results, count_without_results
from muntin.counting.charges.tool_schemas import count_tools
from muntin.counting.checks import checked_counter, require_whole
from muntin.counting.framing import REPLY_TOKENS, framing_of, with_framing
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError
from muntin.messages import shape_of
from muntin.runtime import are_equal, characters_of, common_start, remembered

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from muntin.counting.checks import AnyCounter
    from muntin.messages import MessageShape, MessageView

__all__ = (
    "MessageCounts",
    "count_message",
    "count_messages",
    "counts_for",
    "forget_shared_counts",
    "limit_shared_counts",
)

_TEXTS = 64
"""Texts about many messages that are remembered: a digest of a long past is not cheap."""
_CONVERSATIONS = 8
"""Conversations that are recognised as a whole, and of which is kept what the next fit can use."""
_LONG = 16
"""Fewest messages of a conversation that is recognised as a whole."""


class MessageCounts:
    """Count messages with one counter and cache the results.

    The same object is recognised by identity and compared with its former content, so a message
    that was changed in place is counted anew. An equal message in another object is recognised, and
    so is the beginning of a conversation that was counted recently. With a counter that changes its
    `ratio` (a usage anchor) the cache starts over. Bounded: beyond `capacity` messages or
    `max_characters` kept in memory, base64 included, the oldest entries are dropped first. Safe to
    share between threads.

    Results for a conversation are cached with it for the next fit.
    """

    def __init__(
        self,
        counter: AnyCounter = count_tokens,
        *,
        capacity: int = 50_000,
        max_characters: int = 64_000_000,
    ) -> None:
        self.counter = counter = checked_counter(counter)
        self.capacity = capacity
        self.max_characters = max_characters
        self._lock = threading.Lock()
        # The message itself is held, so that its id cannot be reused while it is remembered; of
        # equal messages the one seen last, so that nothing grows with how often they are seen.
        self._by_id: dict[int, tuple[Any, Measured]] = {}
        self._by_key: OrderedDict[Hashable, tuple[Any, Measured]] = OrderedDict()
        self._characters = 0
        self._told: OrderedDict[Hashable, tuple[list[Measured], Any]] = OrderedDict()
        self._seen: list[Conversation] = []
        self._kept: list[tuple[list[Measured], Any]] = []
        self._ratio = getattr(counter, "ratio", None)

    def instruction_tokens(self, measured: Sequence[Measured]) -> int:
        """Count the instructions that a framework sends once, besides the messages; 0 for none.

        Args:
            measured: The messages of the request.
        """
        for one in reversed(measured):
            if one.view.instructions:
                return self.counter(one.view.instructions) + self.framing
        return 0

    @property
    def framing(self) -> int:
        """Tokens around one message, by the chat template of the counter."""
        return framing_of(self.counter)

    def measure(self, message: Any) -> Measured:
        """Read and count a message, or recall what it cost.

        Raises:
            ConfigurationError: No shape reads it.
        """
        return self._measure([message], self._current_ratio())[0]

    def measure_all(self, messages: Sequence[Any]) -> list[Measured]:
        """Read and count messages as `measure` does; recent conversations are recognised whole.

        Raises:
            ConfigurationError: No shape reads one of them.
        """
        return self.read(messages).measured

    def read(self, messages: Sequence[Any]) -> Conversation:
        """Read and count a conversation, as `measure_all` does.

        Raises:
            ConfigurationError: No shape reads one of the messages.
        """
        ratio = self._current_ratio()
        given = list(messages)
        found = self._recognised(given)
        known = len(found.measured)
        if known < len(given):
            found = found.and_then(self._measure(given[known:], ratio))
        if _LONG <= len(given) <= self.capacity:
            self._see(found, ratio)
        return found

    def _current_ratio(self) -> Any:
        """Return the ratio of the counter; clear the cache if the ratio has changed."""
        ratio = getattr(self.counter, "ratio", None)
        if ratio != self._ratio:
            with self._lock:
                self._start_over(ratio)
        return ratio

    def _recognised(self, given: list[Any]) -> Conversation:
        """Return the longest recently counted beginning of the conversation."""
        best, most = Conversation.empty(), 0
        if not self._seen:
            return best
        # A dict is its own parts; the messages of a conversation are either all dicts or none.
        if given and type(given[0]) is not dict:
            given = [shape_of(message).parts(message) for message in given]
        for seen in reversed(self._seen):
            same = common_start(seen.parts, given)
            if same > most:
                best, most = seen, same
            if same == len(given):
                break
        return best.until(most)

    def _see(self, found: Conversation, ratio: Any) -> None:
        """Cache a conversation and remove the shorter ones that it continues."""
        with self._lock:
            if ratio != self._ratio:
                return
            others = [one for one in self._seen if not _goes_on(one.measured, found.measured)]
            self._seen = [*others, found][-_CONVERSATIONS:]
            while sum(one.characters for one in self._seen) > self.max_characters:
                del self._seen[0]

    def recall(self, key: Hashable, told: list[Measured]) -> Any:
        """Return the text remembered for the same messages; `None` if there is none.

        Args:
            key: Everything else that the text depends on.
            told: The messages of the text, as this object measured them.
        """
        about = _about(key, told)
        with self._lock:
            known = self._told.get(about)
            # Measured messages are recalled, not made anew, so this compares pointers.
            if known is None or known[0] != told:
                return None
            self._told.move_to_end(about)
            return known[1]

    def remember(self, key: Hashable, told: list[Measured], written: Any) -> None:
        """Remember a text about messages, for `recall`."""
        with self._lock:
            self._told[_about(key, told)] = (told, written)
            while len(self._told) > _TEXTS:
                self._told.popitem(last=False)

    def kept_for(self, told: list[Measured]) -> tuple[int, Any]:
        """Recall what was kept for the conversation that has most in common with this one.

        Returns:
            How many messages both begin with, and what was kept; 0 and `None` if nothing.
        """
        # Messages that were measured before are the same objects, so this compares pointers.
        best: tuple[int, Any] = (0, None)
        for start, kept in reversed(self._kept):
            same = common_start(start, told)
            if same > best[0]:
                best = (same, kept)
            if same == len(told):
                break
        return best

    def keep_for(self, told: list[Measured], kept: Any) -> None:
        """Keep what was found out about a conversation, in place of what it continues."""
        with self._lock:
            others = [one for one in self._kept if not _goes_on(one[0], told)]
            self._kept = [*others, (told, kept)][-_CONVERSATIONS:]

    def _measure(self, messages: list[Any], ratio: Any) -> list[Measured]:
        """Read and count messages one by one, and remember them all at once."""
        by_id, by_key = self._by_id.get, self._by_key.get
        found: list[Measured] = []
        met: dict[Hashable, tuple[Any, Measured]] = {}
        for message in messages:
            known = by_id(id(message))
            if known is not None and known[0] is message:
                measured = known[1]
                if are_equal(measured.shape.parts(message), measured.parts):
                    found.append(measured)
                    continue
            shape = shape_of(message)
            view = shape.view(message)
            key = _key(view)
            known = met.get(key) or by_key(key)
            measured = self._read(message, shape, view, None if known is None else known[1])
            met[key] = (message, measured)
            found.append(measured)
        if met:
            with self._lock:
                if ratio == self._ratio:
                    self._remember(met)
        return found

    def _read(
        self, message: Any, shape: MessageShape, view: MessageView, known: Measured | None
    ) -> Measured:
        """Count a message, unless an equal one was counted."""
        parts = shape.parts(message)
        if known is None or known.view != view:
            _warn_unknown(view)
            results = count_results(view, self.counter) if view.results else ()
            tokens = count_without_results(view, self.counter) + sum(results)
            if type(tokens) is not int:
                require_whole(tokens, self.counter)
        elif known.shape is shape and are_equal(parts, known.parts):
            return known
        else:
            tokens, results = known.tokens, known.result_tokens
        copy, is_encodable = remembered(parts)
        characters = characters_of(copy)
        return Measured(shape, view, tokens, copy, is_encodable, results, characters)

    def _remember(self, met: dict[Hashable, tuple[Any, Measured]]) -> None:
        """Cache what was read, and the newest object for each message."""
        for key, entry in met.items():
            before = self._by_key.pop(key, None)
            if before is not None:
                self._drop(before)
            self._by_key[key] = self._by_id[id(entry[0])] = entry
            self._characters += entry[1].characters
        while len(self._by_key) > 1 and (
            len(self._by_key) > self.capacity or self._characters > self.max_characters
        ):
            self._drop(self._by_key.popitem(last=False)[1])

    def _drop(self, entry: tuple[Any, Measured]) -> None:
        self._by_id.pop(id(entry[0]), None)
        self._characters -= entry[1].characters

    def _start_over(self, ratio: Any) -> None:
        self._by_id.clear()
        self._by_key.clear()
        self._told.clear()
        self._seen = []
        self._kept = []
        self._characters = 0
        self._ratio = ratio


def _about(key: Hashable, told: list[Measured]) -> Hashable:
    """Return a cheap cache key; keys may collide, so callers compare the messages."""
    return (key, len(told), id(told[0]), id(told[-1])) if told else (key, 0)


def _goes_on(before: list[Measured], now: list[Measured]) -> bool:
    """Return whether a conversation continues another; its last messages may have changed."""
    return common_start(before, now) >= max(len(before) - _LONG, len(before) // 2 + 1)


def _key(view: MessageView) -> Hashable:
    """Return a cheap cache key; keys may collide, so callers compare the messages.

    Hashing the whole message would cost more than reading it. Python caches the hash of a str.
    """
    if view.results:
        return view.results[0]
    return (view.text, view.calls[0].id) if view.calls else view.text


def _warn_unknown(view: MessageView) -> None:
    for kind in dict.fromkeys(kind for kind, _ in view.unknown):
        warnings.warn(
            f"content block of unknown type {kind!r}: charged as its JSON text", stacklevel=4
        )


_shared_lock = threading.Lock()
_shared: OrderedDict[int, MessageCounts] = OrderedDict()
_SHARED_COUNTERS = 8
_shared_limits = {"capacity": 50_000, "max_characters": 64_000_000}
"""What each of the shared counts may hold."""


def limit_shared_counts(*, capacity: int = 50_000, max_characters: int = 64_000_000) -> None:
    """Bound what this process remembers of messages it counted, and forget what it holds now.

    Counts are shared by all conversations of a process: up to eight counters, each with its own
    limits. Only numbers are returned from them, and texts written about the very same messages.

    Args:
        capacity: Most messages per counter. 0 shares nothing: each call counts anew, and only
            `counts=` in `fit_messages` remembers.
        max_characters: Most characters of those messages per counter, base64 included.

    Raises:
        ConfigurationError: A limit is not a whole number of at least 0.

    ```python
    from muntin.counting import counts_for, limit_shared_counts

    limit_shared_counts(capacity=0)
    print(counts_for() is counts_for())
    #> False
    limit_shared_counts()
    print(counts_for() is counts_for())
    #> True
    ```
    """
    given = {"capacity": capacity, "max_characters": max_characters}
    for name, value in given.items():
        if type(value) is not int or value < 0:
            raise ConfigurationError(f"{name} must be an int of at least 0, got {value!r}")
    with _shared_lock:
        _shared.clear()
        _shared_limits.update(given)


def forget_shared_counts() -> None:
    """Forget the messages this process counted; the limits stay.

    A batch calls this after a conversation that it does not see again, so that its memory stays
    at what one conversation takes.

    ```python
    from muntin.counting import counts_for, forget_shared_counts

    before = counts_for()
    forget_shared_counts()
    print(counts_for() is before)
    #> False
    ```
    """
    with _shared_lock:
        _shared.clear()


def counts_for(counter: AnyCounter = count_tokens) -> MessageCounts:
    """Return the counts this process shares for a counter; another counter has its own."""
    counter = checked_counter(counter)
    with _shared_lock:
        if not _shared_limits["capacity"]:
            return MessageCounts(counter)
        found = _shared.get(id(counter))
        if found is not None and found.counter is counter:
            _shared.move_to_end(id(counter))
            return found
        made = _shared[id(counter)] = MessageCounts(counter, **_shared_limits)
        while len(_shared) > _SHARED_COUNTERS:
            _shared.popitem(last=False)
        return made


def count_message(
    message: Any,
    *,
    counter: AnyCounter = None,
    model: object = None,
    framing: int | None = None,
) -> int:
    """Count what one message of any shape costs, framing included.

    Args:
        message: The message.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        framing: Tokens around one message; `None` takes the counter's own (4 for OpenAI's).

    Raises:
        ConfigurationError: No shape reads the message.

    ```python
    from muntin import count_message

    print(count_message({"role": "user", "content": "hello world"}))
    #> 7
    ```
    """
    counts = counts_for(with_framing(checked_counter(counter, model=model), framing))
    return counts.measure(message).tokens


def count_messages(
    messages: Sequence[Any],
    tools: Sequence[Any] | None = (),
    *,
    counter: AnyCounter = None,
    model: object = None,
    framing: int | None = None,
) -> int:
    """Count what a request costs: messages with framing, the primed reply, and tool schemas.

    Args:
        messages: Messages of any shape, also mixed.
        tools: Tools in any form that `count_tools` accepts: dicts of a provider, JSON text,
            pydantic classes, functions, tools of a framework. `None` sends none.
        counter: As in `count_message`.
        model: As in `count_message`.
        framing: Tokens around one message; `None` takes the counter's own (4 for OpenAI's).

    Raises:
        ConfigurationError: No shape reads one of the messages.

    ```python
    from muntin import count_messages

    print(count_messages([{"role": "user", "content": "hello world"}]))
    #> 10
    ```
    """
    counts = counts_for(with_framing(checked_counter(counter, model=model), framing))
    measured = counts.measure_all(messages)
    total = sum(one.tokens for one in measured) + counts.instruction_tokens(measured)
    return total + REPLY_TOKENS + count_tools(tools or (), counter=counts.counter)
