"""What an assembly hands back: the text, where each character came from, and the account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.messages import Message

if TYPE_CHECKING:
    from muntin.errors import ContextWindowExceeded
    from muntin.passages.candidates import Candidate
    from muntin.passages.layout import ContextParts, Section
    from muntin.report import AssemblyReport

__all__ = ("AssembledContext",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """Hold one assembled context and its report.

    ```python
    from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig

    rules = CallableSource("rag", lambda query: [Candidate("Letters weigh 80 grams.", 0.9)])
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    context = builder.assemble("how much for letters?", sources=[rules])
    at = context.text.index("80")
    print(context.candidate_at(at).content, "|", context.report.used, "tokens")
    #> Letters weigh 80 grams. | 20 tokens
    ```
    """

    parts: ContextParts
    """The laid out parts, in order."""
    report: AssemblyReport
    """Where every token went."""
    query: str
    """The question it was assembled for."""
    ranked: tuple[Candidate, ...] = ()
    """The candidates that were placed, the best first over all sources."""
    shortfall: ContextWindowExceeded | None = None
    """Set if passages were found and not even a part of one fits; `None` otherwise."""

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        return self.report._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol of notebooks

    @property
    def text(self) -> str:
        """The context as one string."""
        return self.parts.text

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that hold candidates, in order."""
        return tuple(block.section for block in self.parts.blocks if block.section is not None)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates that were placed, in the order of the text."""
        return tuple(item.candidate for section in self.sections for item in section.items)

    @property
    def citations(self) -> dict[int, Candidate]:
        """The placed candidates by the number that `{n}` of `Layout.item` writes for them.

        Numbers are places in the ranking, so those of candidates that were not placed are missing.
        """
        items = [item for section in self.sections for item in section.items]
        return {item.number: item.candidate for item in sorted(items, key=lambda one: one.number)}

    def candidate_at(self, offset: int) -> Candidate | None:
        """Return the candidate a character of the text came from.

        Args:
            offset: Position in `text`, in characters; a negative one counts from the end.

        Returns:
            The candidate, or `None` for headings, the system prompt and the question.
        """
        return self.parts.candidate_at(offset if offset >= 0 else offset + len(self.text))

    def messages(self) -> list[Message]:
        """Return the context as messages: system prompt and block, then the question as the user's.

        The question is in a message of its own, without a heading, so roles are not
        flattened. The system message is left out if it would be empty.
        """
        told = "\n\n".join(block.text for block in self.parts.blocks if block.name != "question")
        system = [Message(content=told, role="system")] if told else []
        return [*system, Message(content=self.query, role="user")]

    def __str__(self) -> str:
        return self.text
