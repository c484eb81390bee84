"""Choose among retrieved nodes within a budget: what postprocessor and retriever have in common.

Nodes are compared by their own text, because metadata would make copies differ, and counted as a
synthesizer sends them: with the metadata meant for the model, stripped, joined by blank lines,
media at their price. What is counted is read from the very copy that is handed out.

An engine that is left without any node answers without asking the model. So where not even the best
node fits it is shortened, at a sentence if one fits; and where nothing of it fits that is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_not
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.schema import MetadataMode

from llama_index_muntin._media import PricedCounter, mark_of_media
from llama_index_muntin._nodes import by_own_words, node_of, node_read, with_less_metadata
from muntin.errors import ContextWindowExceeded
from muntin.passages import ContextBuilder, Gathered, Layout, Section
from muntin.prompts import DEFAULT_PROMPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore

    from muntin.config import ContextConfig
    from muntin.counting import TokenCounter
    from muntin.passages import Candidate, Embedding, Item
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("Choice", "NodeLayout", "choose")


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedNodes(Section):
    """Nodes as a synthesizer joins them: no heading, no marks, a blank line between two."""

    @property
    def text(self) -> str:
        """The nodes joined by blank lines."""
        return "\n\n".join(item.text for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout(Layout):
    """Lay nodes out as a synthesizer does."""

    def render(self, candidate: Candidate, source: str) -> str:  # noqa: ARG002 - all look the same
        """Render a node with the metadata that a model is shown, and mark its media."""
        node = node_read(candidate)
        if node is None:
            return candidate.content.strip()
        return node.get_content(metadata_mode=MetadataMode.LLM).strip() + mark_of_media(node)

    def opening(self, name: str, prompts: PromptRegistry = DEFAULT_PROMPTS) -> str:  # noqa: ARG002 - none has one
        """Open a section with nothing."""
        return ""

    def section(
        self, name: str, items: Sequence[Item], prompts: PromptRegistry = DEFAULT_PROMPTS
    ) -> Section:
        """Join the items."""
        section = Layout.section(self, name, items, prompts)
        return _JoinedNodes(name=name, opening="", items=section.items)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and the account of it."""

    nodes: list[NodeWithScore]
    """Copies of the chosen nodes, in the order in which they are to be read."""
    report: AssemblyReport
    """What became of every node."""


def choose(
    gathered: Gathered,
    *,
    question: str,
    query_embedding: Embedding | None,
    budget: int,
    config: ContextConfig,
    ordering: Any,
    counter: TokenCounter,
    notes: Sequence[str] = (),
) -> Choice:
    """Choose nodes within a budget.

    Args:
        gathered: Candidates by source; those that were nodes know it.
        question: The question, for the report.
        query_embedding: Its vector, to vote on relevance; `None` trusts the scores.
        budget: Tokens of the nodes together, as a synthesizer sends them.
        config: The knobs of selection and allocation.
        ordering: Order of the nodes of a source, as in `Layout`.
        counter: Counts tokens.
        notes: Sentences for the reader of the report.

    Raises:
        ContextWindowExceeded: There are nodes, and nothing of the best one fits.
    """
    count, layout = PricedCounter(counter), NodeLayout(ordering=ordering)
    offered: dict[str, tuple[Candidate, ...]] = {}
    told = list(notes)
    for name, candidates in gathered.candidates.items():
        read = [by_own_words(candidate) for candidate in candidates]
        offered[name] = tuple(_lighter(candidate, budget, layout, count) for candidate in read)
        less = sum(map(is_not, read, offered[name]))
        if less:
            told.append(f"{less} nodes of {name!r} are shown without metadata that are too long")

    def assembled(knobs: ContextConfig) -> Any:
        builder = ContextBuilder(knobs, token_counter=count, layout=layout)
        return builder.assemble_block(
            question,
            Gathered(candidates=offered, failures=gathered.failures),
            budget=budget,
            query_embedding=query_embedding,
        )

    context = assembled(config)
    if any(offered.values()) and not context.candidates and not config.shorten:
        context = assembled(replace(cast("Any", config), shorten=True))
    if any(offered.values()) and not context.candidates:
        needed = min(decision.tokens for decision in context.report.decisions)
        raise ContextWindowExceeded(
            "the shortest of what was found", needed=needed, available=budget
        )
    report = replace(context.report, notes=(*context.report.notes, *told))
    return Choice([node_of(candidate) for candidate in context.candidates], report)


def _lighter(
    candidate: Candidate, budget: int, layout: NodeLayout, counter: TokenCounter
) -> Candidate:
    """Leave an oversized node as much of its metadata as takes half of the budget."""
    node = node_read(candidate)
    room = budget // 2
    if node is None or counter(node.get_metadata_str(MetadataMode.LLM)) <= room:
        return candidate
    if counter(layout.render(candidate, "")) <= budget:
        return candidate
    return with_less_metadata(candidate, room, counter)
