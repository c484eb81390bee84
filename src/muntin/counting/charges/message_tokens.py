"""Count what a message costs: its text with the framing, its calls, all media.

Text and tool schemas follow the formula that OpenAI publishes: three tokens around a message, one
for its role, the text, one more for a name, and three that prime the reply. Calls are charged as
JSON, once, even if a framework keeps them twice. Readable reasoning is sent again, so it counts;
encrypted blobs do not. Media are charged by a table, never by their base64.

A counter is only given whole, ordered text. Nothing is cached here: `message_counts` does that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.counting.charges.media_tokens import media_tokens
from muntin.counting.framing import framing_of

if TYPE_CHECKING:
    from muntin.counting.tokens import TokenCounter
    from muntin.messages import MessageView

__all__ = ("count_results", "count_view", "count_without_results")


def count_view(view: MessageView, counter: TokenCounter) -> int:
    """Count one message that was read already."""
    return count_without_results(view, counter) + sum(count_results(view, counter))


def count_results(view: MessageView, counter: TokenCounter) -> tuple[int, ...]:
    """Count the text of each result in a message."""
    return tuple(counter(result.text) if result.text else 0 for result in view.results)


def count_without_results(view: MessageView, counter: TokenCounter) -> int:
    """Count everything in a message but the text of its results, framing included."""
    total = framing_of(counter)
    if view.text:
        total += counter(view.text)
    if view.name:
        total += 1 + counter(view.name)
    for call in view.calls:
        # The wire form with the arguments as they are: a JSON string inside JSON would be escaped
        # on the wire, but models are not charged for the backslashes.
        total += counter(
            f'{{"id":"{call.id}","name":"{call.name}","arguments":{call.arguments or "{}"}}}'
        )
    for result in view.results:
        total += counter(result.call_id)
    if view.reasoning:
        total += counter(view.reasoning)
    for text in view.server:
        total += counter(text)
    for thing in view.media:
        total += media_tokens(thing)
    for _, text in view.unknown:
        total += counter(text)
    return total
