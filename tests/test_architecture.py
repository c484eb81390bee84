"""The layers hold, and each gate is proved by a canary that must turn it red.

A gate that cannot fail guards nothing, and nobody notices: so each is shown a planted fault, in a
copy of the tree, and has to refuse it.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("pyproject.toml", "README.md", "src", "integrations", "tests")


def _run(command: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    # The copy's own sources come first, before those that are installed.
    paths = os.pathsep.join(str(tree / folder) for folder in ("src", "integrations"))
    return subprocess.run(
        command,
        cwd=tree,
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def _lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).with_name("lint-imports")
    return _run([str(linter), "--no-cache", "--no-logo"], tree)


def _pytest(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Only the plugins that the settings speak of: the others take longer to load than the tests.
    plugins = ("pytest_examples", "pytest_socket", "pytest_asyncio.plugin", "pytest_timeout")
    chosen = [part for plugin in plugins for part in ("-p", plugin)]
    return _run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *arguments], tree
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tree to plant faults in."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.so")
            )
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def _plant(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n\n{line}\n")


def test_the_layers_hold() -> None:
    """An import that points up today is a cycle next month."""
    linted = _lint_imports(ROOT)

    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("src/muntin/errors.py", "import langchain_core", "The core does not import a framework"),
        ("src/muntin/errors.py", "import muntin.counting.tokens", "Imports point down the layers"),
        ("src/muntin/attic.py", "", "Imports point down the layers"),
        (
            "src/muntin/errors.py",
            "import tiktoken",
            "Only the exact counter and the resolver import tiktoken",
        ),
        (
            "src/muntin/errors.py",
            "import langchain_muntin",
            "The core does not import its integrations",
        ),
        (
            "src/muntin/counting/tokens.py",
            "import muntin.counting.counters",
            "Modules of a folder import each other in one direction only",
        ),
        (
            "integrations/langchain_muntin/__init__.py",
            "import llama_index_muntin",
            "The integrations do not import each other",
        ),
    ],
    ids=[
        "a framework in the core",
        "an import upwards",
        "a module on no layer",
        "a vocabulary",
        "an integration in the core",
        "a cycle in a folder",
        "a neighbour",
    ],
)
def test_a_planted_import_turns_the_gate_red(
    copy: Path, module: str, line: str, contract: str
) -> None:
    """Without this, a contract with a misspelt module name would keep nothing, in green."""
    _plant(copy / module, line)

    linted = _lint_imports(copy)

    assert linted.returncode != 0
    assert any(
        row.startswith(contract) and "BROKEN" in row for row in linted.stdout.splitlines()
    ), linted.stdout


PACKAGES = ("src/muntin", "integrations/langchain_muntin", "integrations/llama_index_muntin")
"""The packages whose imports are held to what a folder exports."""


def _deep_imports(tree: Path) -> list[str]:
    """Find imports that reach past the `__init__` of a folder of the core."""
    found: list[str] = []
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            place = path.relative_to(tree / package).parts
            own = place[0] if package == "src/muntin" and len(place) > 1 else None
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = (
                    [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else []
                )
                found += [
                    f"{path.relative_to(tree)}: {name}"
                    for name in names
                    if name.startswith("muntin.")
                    and name.count(".") > 1
                    and name.split(".")[1] != own
                ]
    return found


def test_code_outside_a_folder_imports_only_what_the_folder_exports() -> None:
    """A module reached from outside its folder can no longer be moved or renamed."""
    assert _deep_imports(ROOT) == []


def test_a_planted_deep_import_is_found(copy: Path) -> None:
    """A check that finds nothing in any tree guards nothing."""
    _plant(copy / "src" / "muntin" / "window.py", "import muntin.passages.placing.allocation")

    assert _deep_imports(copy) == ["src/muntin/window.py: muntin.passages.placing.allocation"]


def test_every_folder_says_what_it_decides_and_lists_its_exports() -> None:
    """A folder without a list of exports has no border to keep."""
    folders = [path.parent for path in (ROOT / "src" / "muntin").glob("*/__init__.py")]
    texts = {
        folder.name: (folder / "__init__.py").read_text(encoding="utf-8") for folder in folders
    }

    assert len(texts) >= 10
    for name, text in texts.items():
        assert ast.get_docstring(ast.parse(text)), name
        assert "__all__" in text, name


def test_a_stale_export_turns_the_gate_red(copy: Path) -> None:
    """The list of public names is worth nothing if a wrong one passes."""
    init = copy / "src" / "muntin" / "__init__.py"
    _plant(init, '__all__ = (*__all__, "zz_was_here_once")')

    tested = _pytest(copy, "tests/test_public_api.py", "-k", "zz_was_here_once")

    assert tested.returncode == 1, tested.stdout
    assert "zz_was_here_once" in tested.stdout


@pytest.mark.slow
def test_a_broken_example_turns_the_gate_red(copy: Path) -> None:
    """Examples are only tested documents if a wrong output fails."""
    _plant(copy / "README.md", "```python\nprint(1 + 1)\n#> 3\n```")

    tested = _pytest(copy, "tests/test_examples.py", "-k", "README and prints")

    assert tested.returncode == 1, tested.stdout
    assert "1 failed" in tested.stdout, tested.stdout
