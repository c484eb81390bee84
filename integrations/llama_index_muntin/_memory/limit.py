"""Tokens a history may take: its own limit, and what others leave of a shared window.

The tokens of a question that is not part of the history yet are set aside. The quota of a ledger is
not a hard limit: what the context leaves idle is added to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core.memory.memory import DEFAULT_TOKEN_LIMIT

from llama_index_muntin._models import reserve_of, window_of
from muntin.counting import framing_of
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from llama_index_muntin.ledger import WindowLedger
    from muntin.counting import TokenCounter

__all__ = ("HistoryRoom", "history_limit")

_MOST_OF_WINDOW = 0.75
"""Share of a window less the answer for history, where the rest of the prompt is unknown."""


class HistoryRoom:
    """Compute what a history may take, and charge what it took.

    Args:
        limit: Tokens it may take at most.
        ledger: Account of the window, if one is shared.
        counter: Counts the question.
    """

    def __init__(self, limit: int, ledger: WindowLedger | None, counter: TokenCounter) -> None:
        self._ledger = ledger
        self._counter = counter
        theirs = ledger is not None and limit == ledger.history_quota
        self._limit = None if theirs else limit

    def granted(self, question: str | None, prefix: int) -> int:
        """Return the tokens the messages may take, given a question and a prefix.

        Raises:
            ContextWindowExceeded: Question and prefix leave nothing.
        """
        asked = 0 if question is None else self._counter(question) + framing_of(self._counter)
        rooms: list[int] = [] if self._limit is None else [self._limit]
        if self._ledger is not None:
            rooms.append(self._ledger.history_room(question) + asked)
        room = min(rooms)
        if room - asked - prefix > 0:
            return room - asked - prefix
        parts = {"initial_token_count": prefix, "token_limit": room, "question": asked}
        raise ContextWindowExceeded(
            "what is sent before the history",
            needed=prefix + asked,
            available=room,
            parts={name: tokens for name, tokens in parts.items() if tokens or name != "question"},
        )

    def charge(self, question: str | None, tokens: int) -> None:
        """Charge what the messages took."""
        if self._ledger is not None:
            self._ledger.charge_history(question, tokens)

    def expect(self, tokens: int) -> None:
        """Set what all messages would take if all of them were sent."""
        if self._ledger is not None:
            self._ledger.expect_history(tokens if self._limit is None else min(tokens, self._limit))

    def close_turn(self) -> None:
        """Close the turn: it was answered."""
        if self._ledger is not None:
            self._ledger.close_turn()


def history_limit(token_limit: int | None, ledger: WindowLedger | None, llm: object) -> int:
    """Return the tokens a history may take.

    The limit given comes first, then the ledger's share, then the model's window, then the default
    of LlamaIndex's `Memory`.
    """
    if token_limit is not None:
        return token_limit
    if ledger is not None:
        return ledger.history_quota
    if llm is None:
        return DEFAULT_TOKEN_LIMIT
    window = window_of(llm)
    return int((window.tokens - reserve_of(window)) * _MOST_OF_WINDOW)
