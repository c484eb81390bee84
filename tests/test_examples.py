"""Every example in README, docs and docstrings runs, and prints what it says it prints.

A block opts out with `test="skip" reason="..."` after the word python, and only so. A block that
goes on where the one before it stopped says `continues="yes"`.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_examples import find_examples
from pytest_examples import run_code as runner

import provider_doubles

if TYPE_CHECKING:
    from pytest_examples import CodeExample, EvalExample

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("README.md", "CONTRIBUTING.md", "docs", "src", "integrations", "benchmarks/README.md")

EXAMPLES: list[CodeExample] = [
    example
    for place in PLACES
    if (ROOT / place).exists()
    for example in find_examples(ROOT / place)
]


class CommentedOutput(runner.InsertPrintStatements):
    """Write what was printed as `#>` comments, a line for a line, however many there are.

    pytest-examples puts long output into a string literal instead, which reads like code.
    """

    def _insert_print_args(
        self,
        lines: list[str],
        statement: runner.PrintStatement,
        in_python: bool,  # noqa: FBT001 - the signature is theirs
        line_index: int,
        col: int,
    ) -> None:
        printed = str(statement).split("\n")
        lines[line_index + 1 : line_index + 1] = [
            f"{' ' * col}#> {line}".rstrip() for line in printed
        ]

    def updated_print_statements(self, example: CodeExample) -> str | None:
        """Return the example with its true output, or None where that is what it says already."""
        updated = super().updated_print_statements(example)
        # Whether output printed in a loop stands in the margin or in the loop is a matter of taste.
        return updated if updated and _in_margin(updated) != _in_margin(example.source) else None


def _in_margin(code: str) -> str:
    return re.sub(r"^ *#>", "#>", code, flags=re.MULTILINE)


def _no_rewritten_traceback(*_: object) -> None:
    return None


@pytest.fixture(autouse=True)
def _house_style(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "InsertPrintStatements", CommentedOutput)
    monkeypatch.setattr(runner, "comment_prefix_re", re.compile(r"^ *#>", re.MULTILINE))
    # Its rewritten tracebacks crash the traceback module of Python 3.11; the plain one will do.
    monkeypatch.setattr(runner, "create_example_traceback", _no_rewritten_traceback)
    # An example runs as `__main__` and may write files; neither may be felt outside of it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    provider_doubles.install(monkeypatch)


def _earlier(example: CodeExample) -> list[CodeExample]:
    """Return the blocks that `example` goes on from, first to last."""
    chain: list[CodeExample] = []
    same_file = [other for other in EXAMPLES if other.path == example.path]
    at = same_file.index(example)
    while same_file[at].prefix_settings().get("continues") == "yes":
        at -= 1
        chain.insert(0, same_file[at])
    return chain


@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_example_runs_and_prints_what_it_says(
    example: CodeExample, eval_example: EvalExample
) -> None:
    """An example that does not run teaches a lie to the reader who trusts it."""
    settings = example.prefix_settings()
    if settings.get("test") == "skip":
        assert settings.get("reason"), f"{example}: an example that opts out has to say why"
        pytest.skip(settings["reason"])
    for extra in ("langchain", "llama_index"):
        if f"{extra}" in example.source:
            pytest.importorskip(f"{extra}_core" if extra == "langchain" else f"{extra}.core")

    known: dict[str, Any] = {}
    for earlier in _earlier(example):
        known = eval_example.run(earlier, module_globals=known)
    if eval_example.update_examples:
        eval_example.run_print_update(example, module_globals=known)
    else:
        eval_example.run_print_check(example, module_globals=known)


def test_the_readme_has_examples_at_all() -> None:
    """A change of fences must not turn this whole file into a test of nothing."""
    assert any(example.path.name == "README.md" for example in EXAMPLES)
    assert any(example.path.suffix == ".py" for example in EXAMPLES)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_the_script_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script in `examples/` is copied before it is read."""
    runpy.run_path(str(script), run_name="__main__")

    assert capsys.readouterr().out
