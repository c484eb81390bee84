"""Tokens: text, messages, media and tool schemas, exact or estimated.

It decides what something costs and which counter a model gets, and cuts text to a number of tokens.
Only this folder imports tiktoken.
"""

from __future__ import annotations

from muntin.counting.anchored import AnchoredCounter
from muntin.counting.characters import CLASSES, LETTER_CLASSES, ONE_TOKEN_RANGES, class_table
from muntin.counting.charges.measured import Conversation, Measured
from muntin.counting.charges.media_tokens import media_tokens
from muntin.counting.charges.sums import tokens_of
from muntin.counting.charges.tool_schemas import count_tools
from muntin.counting.checks import AnyCounter, checked_counter, checked_tokens, require_whole
from muntin.counting.counters import (
    EstimateCounter,
    NamedCounter,
    counter_for,
    counter_name,
    is_exact,
    model_name,
)
from muntin.counting.estimate import EstimatedEncoding, estimate_tokens, short_texts
from muntin.counting.framing import (
    FRAMING_TOKENS,
    REPLY_TOKENS,
    FramedCounter,
    framing_of,
    framing_of_name,
    with_framing,
)
from muntin.counting.message_counts import (
    MessageCounts,
    count_message,
    count_messages,
    counts_for,
    forget_shared_counts,
    limit_shared_counts,
)
from muntin.counting.model_windows import window_of_name
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import TokenCounter, count_tokens
from muntin.counting.truncation import cut_to_tokens, truncate_to_tokens

__all__ = (
    "CLASSES",
    "FRAMING_TOKENS",
    "LETTER_CLASSES",
    "ONE_TOKEN_RANGES",
    "REPLY_TOKENS",
    "AnchoredCounter",
    "AnyCounter",
    "Conversation",
    "EstimateCounter",
    "EstimatedEncoding",
    "FramedCounter",
    "Measured",
    "MessageCounts",
    "NamedCounter",
    "TiktokenCounter",
    "TokenCounter",
    "checked_counter",
    "checked_tokens",
    "class_table",
    "count_message",
    "count_messages",
    "count_tokens",
    "count_tools",
    "counter_for",
    "counter_name",
    "counts_for",
    "cut_to_tokens",
    "estimate_tokens",
    "forget_shared_counts",
    "framing_of",
    "framing_of_name",
    "is_exact",
    "limit_shared_counts",
    "media_tokens",
    "model_name",
    "require_whole",
    "short_texts",
    "tokens_of",
    "truncate_to_tokens",
    "window_of_name",
    "with_framing",
)
