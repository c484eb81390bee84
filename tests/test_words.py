"""Docstrings use the words of the field: a list of words and phrases that read as riddles is rare.

The list holds what a stranger had to decode in the first version: things that "say" and "tell",
inversions ("is no number"), and images (doors, rooms, floors) in place of
functions and modules.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    ROOT / "src" / "muntin",
    ROOT / "integrations" / "langchain_muntin",
    ROOT / "integrations" / "llama_index_muntin",
)
LIMIT = 1.5
"""Most words of the list in 1,000 words of docstrings."""

WORDS = re.compile(
    r"\b(?:who|whoever|whom|nobody|somebody|anybody|stands?|tells?|told|says?|said|beside"
    r"|(?<!there )(?:is|are|was|were) no(?= [a-z])|hangs? on|what is due|the bill|the house"
    r"|doors?|rooms?|floors?|dress|desk|sheet|panes?|(?<!in )flights?|verdict|one's own)\b",
    re.IGNORECASE,
)


def docstrings(path: Path) -> str:
    """Return the docstrings of a file, and the strings under its fields, without examples."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found.append(node.value.value)
    return re.sub(r"```.*?```|`[^`\n]+`", " ", "\n".join(found), flags=re.DOTALL)


def rate(text: str) -> float:
    """Return how many words of the list stand in 1,000 words."""
    return 1000 * len(WORDS.findall(text)) / max(1, len(text.split()))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_docstrings_are_in_plain_english(package: Path) -> None:
    """A reader who has to decode a sentence reads the code instead, and the docstring is wasted."""
    texts = {path: docstrings(path) for path in package.rglob("*.py")}

    worst = sorted(texts, key=lambda path: -len(WORDS.findall(texts[path])))[:8]
    named = {str(path.relative_to(ROOT)): WORDS.findall(texts[path]) for path in worst}
    assert rate("\n".join(texts.values())) <= LIMIT, named


def test_the_rate_counts_words_of_the_list() -> None:
    """A list that matches nothing would pass every text."""
    assert rate("Whoever stands beside a door says what is no number. " * 10) > 300
    assert rate("Return the largest prefix within `limit` tokens.") == 0


def test_the_glossary_is_short() -> None:
    """More than 40 nouns to learn is a language, not a glossary."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\| \*{0,2}[^|-][^|]*\|", text, re.MULTILINE)

    assert 20 <= len(entries) - 1 <= 40
