"""What an assembler returns to a model: messages, and the report of how they were assembled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.prompt_values import ChatPromptValue
from pydantic import PrivateAttr

from langchain_muntin._values.documents import document_of
from muntin.errors import ReportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage

    from muntin.passages import AssembledContext
    from muntin.report import AssemblyReport

__all__ = ("AssembledPrompt",)


class AssembledPrompt(ChatPromptValue):
    """A prompt value with a report of how every token was spent.

    A chat model takes it like any other prompt value. What is serialised are the messages; the
    report has a written form of its own (`report.to_json()`).

    ```python
    from langchain_muntin import ContextAssembler

    assembler = ContextAssembler(window=8000, system_prompt="Be brief.")
    prompt = assembler.invoke("How many moons has Mars?")
    print([message.type for message in prompt.to_messages()], prompt.report.used)
    #> ['system', 'human'] 22
    ```
    """

    _account: Callable[[], AssemblyReport] | None = PrivateAttr(default=None)
    _report: AssemblyReport | None = PrivateAttr(default=None)
    _context: AssembledContext | None = PrivateAttr(default=None)

    @classmethod
    def of(
        cls,
        messages: Sequence[BaseMessage],
        *,
        account: Callable[[], AssemblyReport],
        context: AssembledContext | None = None,
    ) -> AssembledPrompt:
        """Make a prompt of messages and a way to write their report."""
        made = cls(messages=list(messages))
        made._account = account
        made._context = context
        return made

    @property
    def report(self) -> AssemblyReport:
        """Where every token went; written when it is first read.

        Raises:
            ReportError: The prompt was read back from its written form, which has none.
        """
        if self._report is None:
            if self._account is None:
                raise ReportError("this prompt was not assembled here: it has no report")
            self._report = self._account()
        return self._report

    @property
    def context(self) -> AssembledContext | None:
        """The assembled passages and where each came from; `None` where there are none."""
        return self._context

    @property
    def documents(self) -> list[Document]:
        """The passages that were placed, as documents, in their order."""
        if self._context is None:
            return []
        return [document_of(candidate) for candidate in self._context.candidates]

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Name the place it is imported from."""
        return ["langchain_muntin", "prompt_value"]

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        return self.report._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol of notebooks

    def __getstate__(self) -> dict[Any, Any]:
        """Pickle with the report, but without what it would be written from."""
        if self._account is not None:
            _ = self.report
        state = dict(super().__getstate__())
        state["__pydantic_private__"] = {
            "_account": None,
            "_report": self._report,
            "_context": None,
        }
        return state
