"""Fit a conversation for a template that demands that user and assistant alternate.

Joining messages saves framing, and a message put between two others costs some tokens. Both are
known only after the cut, so a result that is over the budget is made again in a smaller one.
`muntin.messages.arrange_roles` decides how roles are arranged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from muntin.conversations.fitted import FittedMessages
from muntin.errors import ContextWindowExceeded
from muntin.messages import alternating, canonical_json
from muntin.report import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.conversations.fitting import FitRequest
    from muntin.counting import MessageCounts
    from muntin.report import AssemblyReport
    from muntin.runtime import Flow

__all__ = ("fit_alternating",)

MessagesT = TypeVar("MessagesT", bound="Sequence[Any]")

_TRIES = 6
"""Fits in a smaller budget before the conversation counts as one that cannot fit."""


def fit_alternating(
    request: FitRequest[MessagesT],
    fitted: Callable[[FitRequest[MessagesT]], Flow[FittedMessages[MessagesT]]],
    replay: Callable[[int], AssemblyReport],
) -> Flow[FittedMessages[MessagesT]]:
    """Fit a conversation so that it is inside the budget after its roles were arranged.

    Args:
        request: What was asked for.
        fitted: Fits a conversation without arranging it.
        replay: Makes the report of another budget.

    Raises:
        ContextWindowExceeded: What must be kept is over the budget.
    """
    limits, counts = request.limits, request.measure
    budget = limits.budget
    fixed, tokens = request.overhead, 0
    for _ in range(_TRIES):
        smaller = replace(
            request, budget=budget, window=limits.window, reserve=limits.reserve, alternate=False
        )
        done = yield from fitted(smaller)
        out = alternating(done.messages)
        tokens = fixed + sum(one.tokens for one in counts.measure_all(out))
        if tokens <= limits.budget:
            if out is done.messages and budget == limits.budget:
                return done
            return _arranged(request, done, out, tokens, replay)
        budget = max(budget - (tokens - limits.budget), 1)
    raise ContextWindowExceeded(
        "the protected messages and the messages between them",
        needed=tokens,
        available=limits.budget,
    )


def _arranged(
    request: FitRequest[MessagesT],
    done: FittedMessages[MessagesT],
    out: Sequence[Any],
    tokens: int,
    replay: Callable[[int], AssemblyReport],
) -> FittedMessages[MessagesT]:
    like: Any = tuple(out) if isinstance(request.messages, tuple) else out
    return FittedMessages(
        like,
        changed=done.changed or out is not done.messages,
        turn_open=done.turn_open,
        account=lambda: _account(request, done.report, out, tokens, replay),
    )


def _account(
    request: FitRequest[Any],
    report: AssemblyReport,
    out: Sequence[Any],
    tokens: int,
    replay: Callable[[int], AssemblyReport],
) -> AssemblyReport:
    """Return the report of a fit for the messages with arranged roles."""
    pieces = [piece for piece in report.pieces if piece.label == "tools"]
    return replace(
        report,
        budget=request.limits.budget,
        used=tokens,
        notes=(*report.notes, "roles were arranged: user and assistant alternate"),
        pieces=(*pieces, *_pieces(out, request.measure)),
        replay=replay,
    )


def _pieces(out: Sequence[Any], counts: MessageCounts) -> list[Piece]:
    pieces: list[Piece] = []
    for position, message in enumerate(out):
        one = counts.measure(message)
        text = canonical_json(one.shape.parts(message))
        pieces.append(Piece.of(f"{position} {one.view.role}", text, one.tokens))
    return pieces
