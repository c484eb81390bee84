from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from muntin import __version__
from muntin.cli.terminal.options import tokens

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin

COMMANDS = ("count", "assemble", "trim", "compact", "explain", "diff", "demo")


def test_the_version_is_that_of_the_package(muntin: Muntin) -> None:
    """A bug report names the version the command prints."""
    assert muntin("--version").out == f"muntin {__version__}\n"


def test_without_a_command_the_help_is_shown_and_the_exit_code_says_usage(
    muntin: Muntin,
) -> None:
    """A script that lost its arguments must not go on as if work had been done."""
    ended = muntin()

    assert ended.code == 2
    assert all(command in ended.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, muntin: Muntin) -> None:
    """A stranger learns a command from its help alone: purpose, every option, one example."""
    ended = muntin(command, "--help")
    said = re.sub(r"[\s│]+", " ", ended.out)

    assert ended.code == 0
    assert f"Example: muntin {command}" in said
    assert "--json" in said
    # Every option has a text: a bare row ends right after its type.
    assert not re.search(r"<(?:bool|text|path|int)> (?:--|╰)", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trim", "--budgt", "8k"], "--budgt"),
        (["trim", "x.json", "--budget", "many"], "8000 or 8k"),
        (["trim", "x.json", "--budget", "0"], "above 0"),
        (["trim", "x.json"], "--budget"),
        (["nothing"], "nothing"),
        (["assemble"], "--question"),
        (["assemble", "-q", "x"], "--docs"),
        (["assemble", "-q", " ", "--docs", "."], "empty"),
        (["explain"], "REPORT"),
        (["tirm", "x.json"], "Did you mean 'trim'? See muntin --help\n"),
        (["trim", "x.json", "--budget"], "requires an argument; see muntin trim --help\n"),
        (["assemble", "-q", "x", "--layout", "html"], "'--layout': 'html' is not one of 'plain',"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_says_what_to_do(
    arguments: list[str], said: str, muntin: Muntin
) -> None:
    """A page of usage hides the one word that was wrong."""
    ended = muntin(*arguments)

    assert ended.code == 2
    assert ended.err.startswith("muntin: ")
    assert ended.err.count("\n") == 1
    assert said in ended.err


@pytest.mark.parametrize("command", ["assemble", "demo"])
def test_a_window_too_small_to_divide_is_told_in_the_words_of_the_command_line(
    command: str, muntin: Muntin, tmp_path: Path
) -> None:
    """Who typed `--window` is not helped by names of the library's configuration."""
    (tmp_path / "a.md").write_text("Refunds take five days.")
    (tmp_path / "b.md").write_text("- Likes refunds.")
    arguments = ["-q", "refunds?", "--docs", "a.md", "--memory", "b.md"]
    ended = muntin(command, *(arguments if command == "assemble" else []), "--window", "2")

    assert ended.code == 3
    assert ended.err.splitlines()[-1].endswith("sources: raise --window")


def test_options_are_listed_by_what_they_are_for(muntin: Muntin) -> None:
    """`trim` and `compact` read alike: how to shorten first, what becomes of the result last."""
    for command in ("trim", "compact", "assemble"):
        _, _, output = muntin(command, "--help").out.partition("─ Output ─")
        for option in ("--output", "--report", "--html", "--quiet", "--json"):
            assert option in output


@pytest.mark.parametrize(
    ("text", "number"),
    [("8000", 8000), ("8_000", 8000), ("8,000", 8000), ("8k", 8000), ("1.5K", 1500),
     ("1m", 1_000_000), (" 7 ", 7)],
)  # fmt: skip
def test_numbers_of_tokens_are_read_as_people_write_them(text: str, number: int) -> None:
    """`8k` read as 8 would cut a conversation to nothing."""
    assert tokens(text) == number


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str, muntin: Muntin) -> None:
    """Completion that installs and then offers nothing is worse than none."""
    del muntin
    variables = {
        "_MUNTIN_COMPLETE": f"complete_{shell}", "COMP_WORDS": "muntin as", "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "muntin as", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    code = (
        "import sys; sys.argv = ['muntin']; from muntin.cli import main; raise SystemExit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )

    assert "assemble" in done.stdout


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra_one_line_names_it(module: str, tmp_path: Path) -> None:
    """The core is installed without the command line's packages; a traceback would look broken."""
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from muntin.cli import main; sys.exit(main(['demo', 'What is it?']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert 'pip install "muntin[cli]"' in done.stderr
    assert done.stderr.endswith("muntin demo 'What is it?'\n")  # to be copied as it is


def test_the_help_of_a_stranger_costs_no_heavy_import() -> None:
    """`--help` and completion are called at every keystroke: no vocabulary, no framework."""
    code = "import sys, muntin.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"tiktoken", "langchain_core", "llama_index", "pypdf"} & set(done.stdout.split())
