"""The reference has a page for every module that the guides use, with every name they import."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from pytest_examples import find_examples

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    module: path
    for path in sorted((ROOT / "docs" / "reference").glob("*.md"))
    for module in re.findall(r"^::: ([\w.]+)$", path.read_text("utf-8"), re.MULTILINE)
}
PREFIXES = ("muntin", "langchain_muntin", "llama_index_muntin")


def _imported() -> list[tuple[str, str, str]]:
    """Return module, name and place of every import of ours in README and docs."""
    found: list[tuple[str, str, str]] = []
    for example in find_examples(ROOT / "README.md", ROOT / "docs"):
        try:
            tree = ast.parse(example.source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            if node.module.partition(".")[0] in PREFIXES:
                found += [(node.module, one.name, str(example)) for one in node.names]
    return found


def test_every_name_used_in_a_guide_is_on_a_reference_page() -> None:
    """A reader who looks a name of an example up must find it."""
    missing = [
        f"{place}: {module}.{name}"
        for module, name, place in _imported()
        if module not in PAGES or name not in importlib.import_module(module).__all__
    ]
    assert len(_imported()) > 50
    assert missing == []


@pytest.mark.parametrize("module", sorted(PAGES))
def test_every_public_name_of_a_reference_page_has_a_docstring(module: str) -> None:
    """Mkdocstrings leaves out what has no docstring, without a word."""
    loaded = importlib.import_module(module)
    bare = [
        name
        for name in loaded.__all__
        if inspect.isroutine(value := getattr(loaded, name)) or inspect.isclass(value)
        if not (value.__doc__ or "").strip()
    ]
    assert bare == []


def test_the_site_loads_nothing_from_elsewhere() -> None:
    """Fonts and scripts of other hosts tell them who reads the docs, and fail offline."""
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert re.search(r"^  font: false$", config, re.MULTILINE)
    assert "https://" not in re.sub(r"^(site_url|repo_url|edit_uri): .*$", "", config, flags=re.M)
    for feature in ("navigation.footer", "search.suggest", "content.code.copy"):
        assert f"- {feature}" in config
    assert config.count("toggle:") == 2
