"""Fill the generated part of `docs/architecture.md` from the code.

    python scripts/build_architecture.py           # rewrite the page
    python scripts/build_architecture.py --check   # exit with 1 if the page is not what this writes

The layers come from the import contract in `pyproject.toml`, the texts from the docstrings of
folders and modules. So the page cannot describe a tree that does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("PAGE", "page")

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
CORE = ROOT / "src" / "muntin"
ADAPTERS = (
    ROOT / "integrations" / "langchain_muntin",
    ROOT / "integrations" / "llama_index_muntin",
)
_START = "<!-- generated: python scripts/build_architecture.py -->"
_END = "<!-- end of the generated part -->"


def page() -> str:
    """Return the page as it should be: hand-written text with a fresh generated part."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_START)
    after = rest.partition(_END)[2]
    return f"{before}{_START}\n\n{_generated()}\n{_END}{after}"


def _generated() -> str:
    layers = _layers()
    lines = ["## Layers", "", "```text"]
    lines += [f"{'  |  '.join(layer)}" for layer in layers]
    lines += ["```", "", "Imports point down; names on one line do not import each other.", ""]
    for layer in layers:
        for name in layer:
            lines += _section(CORE, name)
    for package in ADAPTERS:
        lines += [f"## `{package.name}`", "", *_body(package, package.name)]
    return "\n".join(lines)


def _layers() -> list[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    return [re.findall(r"\((\w+)\)", layer) for layer in layers]


def _section(package: Path, name: str) -> list[str]:
    folder = package / name
    if folder.is_dir():
        return [f"## `{package.name}.{name}`", "", *_body(folder, f"{package.name}.{name}")]
    return [f"## `{package.name}.{name}`", "", _paragraphs(folder.with_suffix(".py")), ""]


def _body(folder: Path, name: str) -> Iterator[str]:
    yield _paragraphs(folder / "__init__.py")
    yield ""
    yield "| module | what it does |"
    yield "| --- | --- |"
    for path in sorted(folder.rglob("*.py")):
        module = ".".join((name, *path.relative_to(folder).with_suffix("").parts))
        if path.parent == folder and path.stem == "__init__":
            continue
        yield f"| `{module.removesuffix('.__init__')}` | {_sentence(path)} |"
    yield ""


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _sentence(path: Path) -> str:
    """Return the first line of a module's docstring."""
    return _docstring(path).partition("\n")[0].replace("|", "\\|")


def _paragraphs(path: Path) -> str:
    """Return a docstring without its examples, one sentence a line as everywhere in the docs."""
    text = _docstring(path).partition("```")[0].strip()
    prose = [" ".join(part.split()) for part in text.split("\n\n") if not part.startswith(" ")]
    return "\n\n".join(re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", part) for part in prose)


if __name__ == "__main__":
    if "--check" in sys.argv:
        raise SystemExit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
