"""The command line on real files that nobody prepared: conversations, packages, 200 MB."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import count_messages, estimate_tokens
from shared_data import data_path, needs_data

if TYPE_CHECKING:
    from cli_runs import Muntin

pytestmark = pytest.mark.slow
PACKAGES = Path(sysconfig.get_path("purelib"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@needs_data
@pytest.mark.parametrize("budget", [4_000, 8_000])
def test_real_trajectories_fit_and_explain(budget: int, muntin: Muntin, tmp_path: Path) -> None:
    """Agents' own runs: long tool results, parallel calls, failed ones."""
    path = data_path("trajectories.dev.jsonl.gz")
    given = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    ended = muntin("trim", path, "-b", f"{budget}", "-o", "out.jsonl", "--report", "r.jsonl")
    out = _lines(tmp_path / "out.jsonl")

    assert ended.code == 0
    for before, after in zip(given, out, strict=True):
        messages = after.pop("messages")
        assert after == {key: value for key, value in before.items() if key != "messages"}
        assert count_messages(messages, counter=estimate_tokens) <= budget
        assert messages[0] == before["messages"][0]
        assert _pairs(messages)
        asked = [one for one in before["messages"] if one["role"] == "user"]
        assert asked[-1] in messages
    assert muntin("explain", "r.jsonl").out.count("conversation: ") == len(given)


@needs_data
def test_one_real_trajectory_that_cannot_fit_stops_all_and_is_named(
    muntin: Muntin, tmp_path: Path
) -> None:
    """Some policies alone are larger than a small budget; half a file of results helps nobody."""
    path = data_path("trajectories.dev.jsonl.gz")
    ended = muntin("trim", path, "-b", "1k", "-o", "out.jsonl")

    assert ended.code == 3
    assert "line " in ended.err
    assert "raise the budget by" in ended.err
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_real_conversations_are_compacted_and_trimmed(muntin: Muntin, tmp_path: Path) -> None:
    """Meetings and chats of many speakers, in the keys their data sets use."""
    path = data_path("conversations.dev.jsonl.gz")
    compacted = muntin("compact", path, "-o", "c.jsonl", "--report", "r.jsonl")
    trimmed = muntin("trim", path, "-b", "4k", "-o", "t.jsonl", "--keep", "3")
    given = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]

    assert (compacted.code, trimmed.code) == (0, 0)
    for name in ("c.jsonl", "t.jsonl"):
        for before, after in zip(given, _lines(tmp_path / name), strict=True):
            assert after["turns"][-3:] == before["turns"][-3:]
            assert len(after["turns"]) <= len(before["turns"])
            assert after["queries"] == before["queries"]
    told = muntin("explain", "r.jsonl", "--json").json["reports"]
    assert all(one["report"]["used"] <= one["report"]["budget"] for one in told)


def _pairs(messages: list[dict[str, Any]]) -> bool:
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return False
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return False
        else:
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    return True


@pytest.mark.parametrize("package", ["llama_index", "langchain_core", "numpy"])
def test_whole_packages_are_searched(package: str, muntin: Muntin) -> None:
    """Thousands of files: code, data, stubs, binaries."""
    folder = PACKAGES / package
    if not folder.exists():
        pytest.skip(f"{package} is not installed")
    ended = muntin("assemble", "-q", "how is a message converted to text?", "--docs", folder,
                   "-w", "8k", "--json")  # fmt: skip

    assert ended.code == 0
    assert ended.json["searched"]["passages"] > 500
    assert 5_000 < ended.json["report"]["used"] <= 6_400


def _peak(folder: Path, cwd: Path) -> tuple[int, dict[str, Any]]:
    """Assemble from a folder in a process of its own; its peak memory in bytes and what it said."""
    code = (
        "import re, sys; from muntin.cli import main\n"
        f"code = main(['assemble', '-q', 'which tool result is kept?', '--docs', {str(folder)!r},"
        " '--json', '-o', 'x.txt'])\n"
        "status = open('/proc/self/status').read()\n"
        "sys.stderr.write(re.search(r'VmHWM:\\s*(\\d+)', status)[1])\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd,
                          check=True)  # fmt: skip
    return int(done.stderr.split()[-1]) << 10, json.loads(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_folder_of_200_megabytes_takes_little_more_memory_than_one_of_two(
    tmp_path: Path,
) -> None:
    """A search that holds what it reads dies on the first folder of real size."""
    source = b"".join(path.read_bytes() for path in sorted((PACKAGES / "pydantic").rglob("*.py")))
    megabyte = (source * (1 + (1 << 20) // len(source)))[: 1 << 20].decode("utf-8", "ignore")
    peaks: list[int] = []
    for size in (2, 200):
        folder = tmp_path / f"docs{size}"
        folder.mkdir()
        for n in range(size - 1):
            (folder / f"{n:03}.py").write_text(f"# file {n}: which tool result is kept\n{megabyte}")
        (folder / "line.txt").write_text("result " * 150_000)  # all in one line
        peak, told = _peak(folder, tmp_path)
        peaks.append(peak)
        assert told["searched"]["files"] == size
        assert told["report"]["used"] <= told["report"]["budget"]

    assert peaks[1] - peaks[0] < 40 << 20
