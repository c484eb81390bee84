"""Facts of a model: window, reserve, counter and tokenizer, tool schemas.

It decides how this adapter counts and how large a window is. It does not read messages or nodes.
"""

from __future__ import annotations

from llama_index_muntin._models.facts import (
    counter_named,
    counter_of,
    reserve_of,
    schemas_of,
    tokenizer_of,
    window_of,
)
from llama_index_muntin._models.tokenizers import (
    counter_of_tokenizer,
    counter_saved,
    name_to_save,
)

__all__ = (
    "counter_named",
    "counter_of",
    "counter_of_tokenizer",
    "counter_saved",
    "name_to_save",
    "reserve_of",
    "schemas_of",
    "tokenizer_of",
    "window_of",
)
