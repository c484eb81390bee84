"""What a fit returns: messages that fit, and the account of how they came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.report import AssemblyReport

__all__ = ("FittedMessages",)

MessagesT = TypeVar("MessagesT", bound="Sequence[Any]")


class FittedMessages(Generic[MessagesT]):
    """Messages that fit, with the account of how they came to."""

    messages: MessagesT
    """The messages to send: the same shapes, in the same kind of sequence; the very object that
    was given when nothing had to change."""
    changed: bool
    """Whether anything had to change."""
    turn_open: bool
    """Whether the model speaks next: the newest message is of the user or of a tool."""

    def __init__(
        self,
        messages: MessagesT,
        *,
        changed: bool,
        turn_open: bool,
        account: Callable[[], AssemblyReport],
    ) -> None:
        self.messages = messages
        self.changed = changed
        self.turn_open = turn_open
        self._account = account
        self._report: AssemblyReport | None = None

    @property
    def report(self) -> AssemblyReport:
        """What became of every message; written when it is first read."""
        if self._report is None:
            self._report = self._account()
        return self._report

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the values and the report, which is written for it if it was not read yet."""
        return (_unpickled, (self.messages, self.changed, self.turn_open, self.report))

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        return self.report._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol of notebooks

    def __repr__(self) -> str:
        return f"FittedMessages({len(self.messages)} messages, changed={self.changed})"


def _unpickled(
    messages: Sequence[Any],
    changed: bool,  # noqa: FBT001 - pickle passes positions
    turn_open: bool,  # noqa: FBT001
    report: AssemblyReport,
) -> FittedMessages[Sequence[Any]]:
    return FittedMessages(messages, changed=changed, turn_open=turn_open, account=lambda: report)
