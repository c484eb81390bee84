"""One account of a window that the postprocessor, the memory and the agent of a conversation share.

    window = output reserve + fixed (templates, system prompt, tools) + question + context + history

LlamaIndex does not share these numbers, and its engines work in either order: the context engine
retrieves first and then reads memory, the condense engine reads memory first. The first of the two
takes its share and charges what it took; the second takes the rest. No order overruns the window,
because each subtracts what the other really took.

If an engine fails, the tokens of the failed turn stay charged until the same party asks again or an
answer is put into memory. The next turn may then get fewer tokens; the window is never exceeded. A
new question discards the unfinished turn at once: it begins when the party that began the turn asks
about something else although the other party had its share. What was granted can always be
charged.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from llama_index_muntin._models import (
    counter_of,
    counter_saved,
    name_to_save,
    reserve_of,
    window_of,
)
from muntin.counting import REPLY_TOKENS, counter_name, framing_of
from muntin.errors import ConfigurationError, ContextWindowExceeded, StateCorruptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from muntin.counting import NamedCounter, TokenCounter

__all__ = ("WindowLedger",)

_VERSION = "muntin.ledger/1"
_ROUNDING = 24
"""Tokens by which LlamaIndex's own count of a prompt may differ from ours."""
_Party = Literal["context", "history"]
_GRANTS = 32
"""Most open questions with a grant that waits for its charge."""


class WindowLedger:
    """Keep the account of one conversation's window.

    One ledger belongs to one conversation: give the same object to its postprocessor, its memory
    and its agent. Safe between threads.

    Args:
        llm: The model; its metadata give the window and the output limit.
        window: The window in tokens, if the model does not report it.
        output_reserve: Tokens kept free for the answer. `None` takes the model's own, at most
            half of the window.
        system_prompt: What is sent in front of every prompt.
        fixed_tokens: Further tokens that every prompt holds. `None` takes the larger template of
            the context chat engines and what their prompt helpers set aside.
        rag_ratio: Share of the divisible window the context may take, in [0, 1]; what history
            leaves idle comes on top.
        counter: Counts tokens. `None` takes the model's counter.

    Raises:
        ConfigurationError: The window is unknown, a number is out of range, or reserve and fixed
            parts leave nothing.

    ```python
    from llama_index_muntin import WindowLedger

    ledger = WindowLedger(window=8192, output_reserve=1024, fixed_tokens=168)
    ledger.expect_history(9000)
    print(ledger.spendable, ledger.context_room("where?"))
    #> 7000 2447
    ledger.charge_context("where?", 1000)
    print(ledger.history_room("where?"))
    #> 5993
    ```
    """

    def __init__(
        self,
        llm: Any = None,
        *,
        window: int | None = None,
        output_reserve: int | None = None,
        system_prompt: str = "",
        fixed_tokens: int | None = None,
        rag_ratio: float = 0.35,
        counter: TokenCounter | str | None = None,
    ) -> None:
        found = window_of(llm, window)
        if not 0 <= rag_ratio <= 1:
            raise ConfigurationError(f"rag_ratio is in [0, 1], not {rag_ratio}")
        self.window = found.tokens
        self.output_reserve = reserve_of(found, output_reserve)
        self.counter: NamedCounter = counter_of(counter, llm)
        self.rag_ratio = rag_ratio
        templates = _template_tokens(self.counter) if fixed_tokens is None else fixed_tokens
        if templates < 0:
            raise ConfigurationError(f"fixed_tokens is >= 0, not {templates}")
        self.fixed = templates + self.counter(system_prompt)
        if self.spendable <= 0:
            raise ConfigurationError(
                f"a window of {self.window} tokens has nothing left to divide: "
                f"{self.output_reserve} are reserved for the answer, {self.fixed} are fixed"
            )
        self._lock = threading.Lock()
        self._question = 0
        self._context: int | None = None
        self._history: int | None = None
        self._demand = 0
        self._granted: dict[str, int] = {}
        self._first: _Party | None = None
        self._queries: dict[_Party, str | None] = {}
        self._owed = 0

    @property
    def spendable(self) -> int:
        """Tokens that question, context and history divide."""
        return self.window - self.output_reserve - self.fixed

    @property
    def history_quota(self) -> int:
        """Tokens of history that do not depend on what is retrieved."""
        return self.spendable - int(self.spendable * self.rag_ratio)

    def context_room(self, query: str) -> int:
        """Return the tokens the context of this turn may take.

        If history was read already, these are the tokens it left; otherwise the quota of the
        context and the tokens that history does not need.

        Args:
            query: The question that is asked of the retriever.
        """
        with self._lock:
            self._begin("context", query)
            room = self._context_room(query)
            self._granted[query] = max(room, self._granted.pop(query, 0))
            if len(self._granted) > _GRANTS:
                del self._granted[next(iter(self._granted))]
            return room

    def _context_room(self, query: str) -> int:
        asked = self._asked(query)
        if self._history is not None:
            return max(self.spendable - max(asked, self._question) - self._history, 0)
        quota = int((self.spendable - asked) * self.rag_ratio)
        return max(quota, self.spendable - asked - self._demand, 0)

    def charge_context(self, query: str, tokens: int) -> None:
        """Charge what the context took; a second charge replaces the first.

        Raises:
            ContextWindowExceeded: It is more than is left and more than was granted before; nothing
                is charged then.
        """
        with self._lock:
            room = max(self._context_room(query), self._granted.get(query, 0))
            if tokens > room:
                raise ContextWindowExceeded("the context", needed=tokens, available=room)
            self._context, self._queries["context"] = tokens, query
            if self._history is None:
                self._question = self._asked(query)

    def history_room(self, query: str | None = None) -> int:
        """Return the tokens the history of this turn may take, reply framing included.

        If the context was charged already, these are the tokens it left; otherwise the quota of
        history.

        Args:
            query: The question, where it is not part of the history; `None` where it is.
        """
        with self._lock:
            self._begin("history", query)
            asked = self._asked(query)
            if self._context is not None:
                return max(self.spendable - max(asked, self._question) - self._context, 0)
            return max(self.spendable - asked - int((self.spendable - asked) * self.rag_ratio), 0)

    def charge_history(self, query: str | None, tokens: int) -> None:
        """Charge what history took; a second charge replaces the first."""
        with self._lock:
            self._history, self._queries["history"] = tokens, query
            if query is not None:
                self._question = self._asked(query)

    def expect_history(self, tokens: int) -> None:
        """Set what history would take if all of it were sent; context can use the rest."""
        with self._lock:
            self._demand = tokens

    def close_turn(self) -> None:
        """Discard the charges of this turn: it was answered or given up."""
        with self._lock:
            if self._owed:  # the answer of a turn that was discarded when the next one began
                self._owed -= 1
                return
            self._first = self._context = self._history = None
            self._question = 0

    def _begin(self, party: _Party, query: str | None) -> None:
        """Note which party asks; discard an open turn if this begins a new one."""
        if self._first is None:
            self._first = party
        other: _Party = "history" if party == "context" else "context"
        had = self._history if party == "context" else self._context
        if party == self._first and had is not None and self._queries.get(other) != query:
            self._context = self._history = None
            self._question = 0
            self._owed += 1

    def charge_fixed(self, texts: Iterable[str] = (), *, tokens: int = 0) -> None:
        """Add tokens that every prompt of this conversation holds.

        Raises:
            ConfigurationError: Nothing is left to divide then; nothing is added.
        """
        more = tokens + sum(self.counter(text) for text in texts)
        if more >= self.spendable:
            raise ConfigurationError(
                f"{more} more fixed tokens leave nothing of the {self.spendable} to divide"
            )
        with self._lock:
            self.fixed += more

    def to_dict(self) -> dict[str, Any]:
        """Return the account in plain JSON types; it adds up to the window."""
        with self._lock:
            question, context, history = self._question, self._context or 0, self._history or 0
        idle = self.spendable - question - context - history
        return {
            "window": self.window,
            "output_reserve": self.output_reserve,
            "fixed": self.fixed,
            "question": question,
            "context": context,
            "history": history,
            "idle": idle,
            "counter": counter_name(self.counter),
        }

    def state(self) -> dict[str, Any]:
        """Return the ledger in plain JSON types, to be kept in a workflow's `Context` or a file.

        ```python
        from llama_index_muntin import WindowLedger

        ledger = WindowLedger(window=8192, output_reserve=1024, fixed_tokens=168)
        ledger.charge_context("where?", 1000)
        again = WindowLedger.from_state(ledger.state())
        print(again.history_room("where?") == ledger.history_room("where?"))
        #> True
        ```
        """
        with self._lock:
            return {
                "version": _VERSION,
                "window": self.window,
                "output_reserve": self.output_reserve,
                "fixed": self.fixed,
                "rag_ratio": self.rag_ratio,
                "counter": name_to_save(self.counter),
                "question": self._question,
                "context": self._context,
                "history": self._history,
                "demand": self._demand,
                "granted": dict(self._granted),
                "first": self._first,
                "queries": dict(self._queries),
                "owed": self._owed,
            }

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], *, counter: TokenCounter | str | None = None
    ) -> WindowLedger:
        """Return the ledger that `state` was written from.

        Args:
            state: What `state` returned, here or in another process.
            counter: Counts tokens; `None` finds the counter by its saved name.

        Raises:
            StateCorruptError: It is not what `state` writes.
            ConfigurationError: The counter was one of the caller's own and is not given.
        """
        if state.get("version") != _VERSION:
            raise StateCorruptError(
                f"a saved ledger has the version {_VERSION!r}, got {state.get('version')!r}"
            )
        try:
            ledger = cls(
                window=state["window"],
                output_reserve=state["output_reserve"],
                fixed_tokens=state["fixed"],
                rag_ratio=state["rag_ratio"],
                counter=counter_saved(state["counter"]) if counter is None else counter,
            )
            ledger._question, ledger._demand = state["question"], state["demand"]
            ledger._context, ledger._history = state["context"], state["history"]
            ledger._granted, ledger._queries = dict(state["granted"]), dict(state["queries"])
            ledger._first, ledger._owed = state["first"], state["owed"]
        except KeyError as missing:
            raise StateCorruptError(f"a saved ledger has no {missing}") from missing
        return ledger

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"WindowLedger({parts})"

    def _asked(self, query: str | None) -> int:
        return 0 if query is None else self.counter(query) + framing_of(self.counter)

    def __deepcopy__(self, memo: dict[int, Any]) -> WindowLedger:
        """Return the same ledger: a copied memory still shares the window."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def _template_tokens(counter: TokenCounter) -> int:
    """Count what decides whether an engine splits its context: the larger template, and padding.

    The engines refine an answer over the parts of a split context, one model call each, and keep
    space for that answer even if nothing needs to be split.
    """
    from llama_index.core.chat_engine import condense_plus_context, context
    from llama_index.core.response_synthesizers import refine

    known = (
        "DEFAULT_CONTEXT_TEMPLATE",
        "DEFAULT_REFINE_TEMPLATE",
        "DEFAULT_CONTEXT_PROMPT_TEMPLATE",
        "DEFAULT_CONTEXT_REFINE_PROMPT_TEMPLATE",
    )
    modules = (context, condense_plus_context)
    texts = [str(getattr(module, name, "")) for module in modules for name in known]
    padding = int(getattr(refine, "DEFAULT_RESPONSE_PADDING_SIZE", 0))
    return max(map(counter, texts)) + padding + framing_of(counter) + REPLY_TOKENS + _ROUNDING
