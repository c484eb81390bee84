"""Text without tokens: grapheme and sentence boundaries, words and shingles, facts in a line.

It decides where a text may be cut and which words and values it holds. It knows no counter and no
message, and imports nothing else of muntin.
"""

from __future__ import annotations

from muntin.text.boundaries import clean_text, grapheme_end, grapheme_start, sentences
from muntin.text.facts import FactKind, facts_of, is_settling, kind_of, values_in
from muntin.text.lexical import bm25_scores, content_words, shingles, words
from muntin.text.standing import standing_sentences

__all__ = (
    "FactKind",
    "bm25_scores",
    "clean_text",
    "content_words",
    "facts_of",
    "grapheme_end",
    "grapheme_start",
    "is_settling",
    "kind_of",
    "sentences",
    "shingles",
    "standing_sentences",
    "values_in",
    "words",
)
