"""Choose among retrieved nodes within a budget: what postprocessor and retriever share.

The policy is `muntin.adapting.PassagePolicy`; this module prepares nodes for it. Nodes are compared
by their own text, because metadata would make copies differ, and counted as a synthesizer sends
them: with the metadata meant for the model, stripped, joined by blank lines, media at their price.
What is counted is read from the copy that is returned.

An engine without any node answers without calling the model. So if not even the best node fits, it
is shortened, at a sentence if one fits; if nothing of it fits, an error is raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_not
from typing import TYPE_CHECKING

from llama_index.core.schema import MetadataMode

from llama_index_muntin._nodes.candidates import (
    by_own_words,
    node_of,
    node_read,
    with_less_metadata,
)
from llama_index_muntin._nodes.media import PricedCounter, mark_of_media
from muntin.adapting import JoinedLayout, PassagePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore

    from muntin.adapting import Ordering
    from muntin.config import ContextConfig
    from muntin.counting import TokenCounter
    from muntin.passages import AnyGiven, Candidate, Embedding, Gathered
    from muntin.report import AssemblyReport

__all__ = ("Choice", "NodeLayout", "choose", "tokens_of")

_ALL_GIVEN = (
    "every node is in the conversation already; the best one is returned again, because an engine "
    "without nodes answers without asking the model"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout(JoinedLayout):
    """Lay nodes out as a synthesizer does."""

    def render(self, candidate: Candidate, source: str) -> str:  # noqa: ARG002 - the same everywhere
        """Render a node with the metadata that a model is shown, and mark its media."""
        node = node_read(candidate)
        if node is None:
            return candidate.content.strip()
        return node.get_content(metadata_mode=MetadataMode.LLM).strip() + mark_of_media(node)


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen nodes and their report."""

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
    config: ContextConfig | None,
    ordering: Ordering,
    counter: TokenCounter,
    ratios: Mapping[str, float] | None = None,
    top_k: int | None = None,
    given: AnyGiven = (),
    notes: Sequence[str] = (),
) -> Choice:
    """Choose nodes within a budget.

    Args:
        gathered: Candidates by source, with their nodes in the metadata.
        question: The question, for the report.
        query_embedding: Its vector, to determine relevance; `None` uses the scores.
        budget: Tokens of the nodes together, as a synthesizer sends them.
        config: Options of selection and allocation; `None` takes the defaults.
        ordering: Order of the nodes.
        counter: Counts tokens.
        ratios: Share of each source, as in `PassagePolicy`.
        top_k: Most nodes; `None` takes all that fit.
        given: What the model has already. If that is every node, the best one is returned anyway.
        notes: Sentences for the reader of the report.

    Raises:
        ContextWindowExceeded: There are nodes, and nothing of the best one fits.
    """
    count, layout = PricedCounter(counter), NodeLayout()
    offered: dict[str, tuple[Candidate, ...]] = {}
    said = list(notes)
    for name, candidates in gathered.candidates.items():
        read = [by_own_words(candidate) for candidate in candidates]
        offered[name] = tuple(_lighter(candidate, budget, layout, count) for candidate in read)
        less = sum(map(is_not, read, offered[name]))
        if less:
            said.append(f"{less} nodes of {name!r} are shown without metadata that are too long")
    policy = PassagePolicy(
        budget=budget,
        counter=count,
        config=config,
        ratios=ratios,
        top_k=top_k,
        ordering=ordering,
        layout=layout,
    )
    found = replace(gathered, candidates=offered)
    chosen = policy.choose(
        found, question, query_embedding=query_embedding, given=given, notes=said
    )
    is_empty = not chosen.candidates and chosen.shortfall is None
    if is_empty and any(one.reason == "already_given" for one in chosen.report.decisions):
        said.append(_ALL_GIVEN)
        chosen = replace(policy, top_k=1).choose(
            found, question, query_embedding=query_embedding, notes=said
        )
    if chosen.shortfall is not None:
        raise chosen.shortfall
    return Choice([node_of(candidate) for candidate in chosen.candidates], chosen.report)


def tokens_of(nodes: Sequence[NodeWithScore], counter: TokenCounter) -> int:
    """Count nodes as a synthesizer sends them, with their media."""
    texts = (
        found.node.get_content(metadata_mode=MetadataMode.LLM).strip() + mark_of_media(found.node)
        for found in nodes
    )
    return PricedCounter(counter)("\n\n".join(texts))


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
