"""Notice nodes that grew after they were chosen, which a postprocessor itself cannot see.

A budget holds only if nothing changes the nodes later. A `MetadataReplacementPostProcessor` placed
behind replaces sentences by their windows, and a `CitationQueryEngine` adds a heading to each
source. So the nodes that a synthesizer reports in its end event are counted again.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llama_index.core import instrumentation
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent
from llama_index.core.schema import QueryBundle

from llama_index_muntin._nodes.choice import tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.instrumentation.events import BaseEvent
    from llama_index.core.schema import NodeWithScore

    from muntin.counting import TokenCounter

__all__ = ("PlacementWarning", "watch")

_WATCHED = 64
"""Questions whose chosen nodes are remembered until they are answered."""

_ENDING = 60
"""Characters at the end of a node by which its origin is recognised; engines make new ids."""


class PlacementWarning(UserWarning):
    """Nodes were changed after `BudgetPostprocessor` chose them, and exceed its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Nodes that were chosen for a question."""

    ids: frozenset[str]
    text: str
    budget: int
    counter: TokenCounter

    def holds(self, found: NodeWithScore) -> bool:
        """Return whether a node is one of the chosen ones, or ends as a part of them does."""
        ending = found.node.get_content()[-_ENDING:].strip()
        return found.node.node_id in self.ids or bool(ending and ending in self.text)


class _Watcher(BaseEventHandler):
    """Compare the nodes of an answer with the nodes that were chosen for its question."""

    @classmethod
    def class_name(cls) -> str:
        """Name the class in traces."""
        return "MuntinPlacementWatcher"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        """Count the nodes of an answer, and warn if they exceed the budget they were chosen for."""
        if not isinstance(event, SynthesizeEndEvent):
            return
        query = event.query
        question = query.query_str if isinstance(query, QueryBundle) else query
        sent: Sequence[NodeWithScore] = event.response.source_nodes
        with _lock:
            chosen = _chosen.get(question)
            if chosen is None or not any(map(chosen.holds, sent)):
                return
            del _chosen[question]
        tokens = tokens_of(sent, chosen.counter)
        if tokens > chosen.budget:
            warnings.warn(
                f"the synthesizer got {tokens} tokens of nodes, but BudgetPostprocessor had "
                f"reduced them to its budget of {chosen.budget}: place it last in "
                f"node_postprocessors; a CitationQueryEngine adds to the nodes afterwards, so give "
                f"it a smaller budget",
                PlacementWarning,
                stacklevel=2,
            )


_lock = threading.Lock()
_chosen: OrderedDict[str, _Chosen] = OrderedDict()
_watcher = _Watcher()


def watch(
    question: str, nodes: Sequence[NodeWithScore], budget: int, counter: TokenCounter
) -> None:
    """Remember the nodes chosen for a question until a synthesizer reports what it got."""
    root = instrumentation.get_dispatcher()  # pyright: ignore[reportPrivateImportUsage] - the documented way
    with _lock:
        if not any(handler is _watcher for handler in root.event_handlers):
            root.add_event_handler(_watcher)
        ids = frozenset(found.node.node_id for found in nodes)
        text = "\n".join(found.node.get_content() for found in nodes)
        _chosen.pop(question, None)
        _chosen[question] = _Chosen(ids=ids, text=text, budget=budget, counter=counter)
        while len(_chosen) > _WATCHED:
            _chosen.popitem(last=False)
