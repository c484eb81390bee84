"""Choose among retrieved nodes within a budget: what postprocessor and retriever have in common.

Nodes are compared by their own text, because metadata would make copies differ, and counted as a
synthesizer sends them: with the metadata meant for the model, stripped, joined by blank lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index_muntin._conversion import NODE, candidate_of, node_of, shortened
from muntin.builder import ContextBuilder
from muntin.layout import Layout, Section
from muntin.prompts import DEFAULT_PROMPTS
from muntin.sources import Gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.candidates import Candidate, Embedding
    from muntin.config import ContextConfig
    from muntin.layout import Item
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport
    from muntin.tokens import TokenCounter

__all__ = ("Choice", "NodeLayout", "choose")

_SOURCE = "rag"


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

    def render(self, candidate: Candidate, source: str) -> str:  # noqa: ARG002 - one source
        """Render a node with the metadata that a model is shown."""
        found = candidate.metadata.get(NODE)
        if not isinstance(found, NodeWithScore):
            return candidate.content.strip()
        if candidate.content != found.node.get_content(metadata_mode=MetadataMode.NONE):
            found = shortened(found, candidate.content)
        return found.node.get_content(metadata_mode=MetadataMode.LLM).strip()

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
    nodes: Sequence[NodeWithScore],
    vectors: Sequence[Embedding | None],
    *,
    question: str,
    query_embedding: Embedding | None,
    budget: int,
    config: ContextConfig,
    ordering: Any,
    counter: TokenCounter,
) -> Choice:
    """Choose nodes within a budget.

    Where not even the best node fits, it is shortened: an engine that is left without any node
    answers without asking the model.
    """
    candidates = tuple(
        candidate_of(found, mode=MetadataMode.NONE, embedding=vector)
        for found, vector in zip(nodes, vectors, strict=True)
    )
    gathered = Gathered(candidates={_SOURCE: candidates})
    layout = NodeLayout(ordering=ordering)

    def assembled(knobs: ContextConfig) -> Any:
        builder = ContextBuilder(knobs, token_counter=counter, layout=layout)
        return builder.assemble_block(
            question, gathered, budget=budget, query_embedding=query_embedding
        )

    context = assembled(config)
    if candidates and not context.candidates and not config.shorten:
        context = assembled(replace(cast("Any", config), shorten=True))
    notes = (*context.report.notes, *_notes(nodes, vectors))
    report = replace(context.report, notes=notes) if notes else context.report
    return Choice([node_of(candidate) for candidate in context.candidates], report)


def _notes(nodes: Sequence[NodeWithScore], vectors: Sequence[Embedding | None]) -> list[str]:
    """Say what a reader should know of how nodes were compared."""
    notes: list[str] = []
    bare = sum(vector is None for vector in vectors)
    if bare and len(nodes) > 1:
        notes.append(f"{bare} of {len(nodes)} nodes have no vector: they were compared by words")
    strange = sum(
        found.score is not None and not abs(found.score) < float("inf") for found in nodes
    )
    if strange:
        notes.append(f"{strange} scores are not finite and count as unknown")
    return notes
