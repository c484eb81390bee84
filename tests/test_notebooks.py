"""The notebooks that are shown are the ones that were written, and they still run.

A kernel talks to its client over the loopback address, so these tests may open sockets.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_build", ROOT / "notebooks/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build: Any = _builder()
SOURCES: list[Path] = build.sources()
QUICK = ("01", "04")
"""Numbers of the notebooks that run in the quick profile."""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_shown_notebook_has_the_cells_of_its_source(source: Path) -> None:
    """A reader on the web sees the .ipynb; a reviewer saw the .py."""
    committed = build.nbformat.read(build.shown(source), as_version=4)

    assert [(cell.cell_type, cell.source) for cell in committed.cells] == [
        (cell.cell_type, cell.source) for cell in build.unexecuted(source).cells
    ]


QUICK_FIRST = [
    pytest.param(source, id=source.stem, marks=() if source.stem[:2] in QUICK else pytest.mark.slow)
    for source in SOURCES
]


@pytest.mark.enable_socket
@pytest.mark.filterwarnings("default")  # what libraries of notebooks warn of is not ours to fix
@pytest.mark.parametrize("source", QUICK_FIRST)
def test_the_notebook_runs_and_says_what_it_shows(source: Path) -> None:
    """The table of where the tokens went is the point of the notebook; it must be true today."""
    committed = build.nbformat.read(build.shown(source), as_version=4)

    assert build.text_of(build.executed(source)) == build.text_of(committed)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_can_be_copied_alone(source: Path) -> None:
    """A notebook that imports a file next to it ends in its first cell everywhere else."""
    tree = ast.parse(source.read_text("utf-8"))
    beside = {path.stem for path in source.parent.glob("*.py")}
    imported = {
        node.module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported & beside == set()
    text = source.read_text("utf-8")
    assert "pip" in text[: text.index("from muntin")]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_shows_a_report(source: Path) -> None:
    """The report is what a reader of the notebook takes home."""
    committed = build.nbformat.read(build.shown(source), as_version=4)
    shown = [
        output.data["text/html"]
        for cell in committed.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert any("mtn-fragment" in html for html in shown)
