"""Many files at once: folders, patterns, worker processes, failures, and going on later."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli_runs import Muntin


@pytest.fixture
def folder(tmp_path: Path, chat: list[dict[str, Any]]) -> Path:
    """A folder as people have them: several forms, subfolders, a file that is no conversation."""
    root = tmp_path / "chats"
    (root / "old").mkdir(parents=True)
    (root / "a.json").write_text(json.dumps(chat))
    lines = [{"id": n, "messages": chat[: 5 + 8 * n]} for n in range(3)]
    (root / "b.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    turns = [{"from": ("human", "gpt")[n % 2], "value": f"Turn {n}. " * 30} for n in range(41)]
    (root / "old" / "c.json").write_text(json.dumps({"conversations": turns}))
    (root / "settings.json").write_text('{"theme": "dark"}')
    (root / ".hidden.json").write_text(json.dumps(chat))
    return root


def _written(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".muntin")
    }


@pytest.mark.parametrize("command", [["trim", "-b", "1200"], ["compact", "--trigger", "800"]],
                         ids=["trim", "compact"])  # fmt: skip
def test_a_folder_is_done_file_by_file_into_another(
    command: list[str], muntin: Muntin, folder: Path, tmp_path: Path
) -> None:
    """Ten thousand files are not given one by one, and their originals stay."""
    before = _written(folder)
    ended = muntin(*command, folder, "--out-dir", "out")
    written = _written(tmp_path / "out")

    assert ended.code == 0
    assert _written(folder) == before
    assert sorted(written) == ["a.json", "b.jsonl", "old/c.json"]
    assert len(written["b.jsonl"].splitlines()) == 3
    assert "total" in ended.err
    assert "skipped 1 file without a conversation" in ended.err
    for name in written:
        alone = muntin(*command, folder / name, "--quiet").out
        assert alone == written[name]


def test_what_fits_is_reported_as_whole(
    muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """A file that did not change and counts 113 % after it makes every other figure doubtful."""
    (tmp_path / "a.json").write_text(json.dumps(chat[:3]))
    told = muntin("trim", "a.json", "-b", "5k", "--out-dir", "out", "--json").json

    assert told["tokens_before"] == told["tokens_after"] > 0


def test_worker_processes_give_the_same_bytes(muntin: Muntin, folder: Path, tmp_path: Path) -> None:
    """More processes may only be faster."""
    for workers in ("1", "2"):
        ended = muntin("trim", folder, "-b", "1200", "--out-dir", f"out{workers}",
                       "--workers", workers, "--report", f"r{workers}.jsonl")  # fmt: skip
        assert ended.code == 0

    assert _written(tmp_path / "out1") == _written(tmp_path / "out2")
    assert (tmp_path / "r1.jsonl").read_bytes() == (tmp_path / "r2.jsonl").read_bytes()
    assert muntin("explain", "r2.jsonl").out.count("conversation: ") == 5


def test_a_pattern_is_expanded_where_the_shell_did_not(
    muntin: Muntin, folder: Path, tmp_path: Path
) -> None:
    """`'chats/**/*.json'` in quotes, in a script or on Windows, must not be a missing file."""
    ended = muntin("trim", f"{folder}/**/[ac].json", "-b", "1200", "--out-dir", "out")
    nothing = muntin("trim", f"{folder}/*.yaml", "-b", "1200", "--out-dir", "out")

    assert ended.code == 0
    assert sorted(_written(tmp_path / "out")) == ["a.json", "c.json"]
    assert (nothing.code, "is not there" in nothing.err) == (6, True)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (["b.json"], 5),
        (["b.json", "c.json"], 5),
        (["a.json", "b.json", "c.json"], 6),
    ],
)
def test_the_exit_code_says_whether_some_or_all_failed_and_the_others_are_done(
    broken: list[str], code: int, muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """One torn file of ten thousand must neither stop the others nor pass unseen."""
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_text("{" if name in broken else json.dumps(chat))
    arguments = ("trim", "a.json", "b.json", "c.json", "-b", "1200", "--out-dir", "out")
    ended = muntin(*arguments)
    told = muntin(*arguments, "--json").json

    assert ended.code == code
    assert f"{len(broken)} of 3 files failed" in ended.err
    assert all(f"{name} is not JSON" in ended.err for name in broken)
    assert sorted(_written(tmp_path / "out")) == sorted({"a.json", "b.json", "c.json"}
                                                        - set(broken))  # fmt: skip
    assert (told["done"], told["failed"]) == (3 - len(broken), len(broken))
    assert [one["path"] for one in told["files"] if one.get("exit_code") == 2] == broken


def test_what_does_not_fit_fails_alone(
    muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """A budget that is too small for one conversation is no reason to lose the others."""
    (tmp_path / "a.json").write_text(json.dumps(chat))
    (tmp_path / "b.json").write_text(json.dumps([{"role": "system", "content": "word " * 5000},
                                                 *chat]))  # fmt: skip
    ended = muntin("trim", "a.json", "b.json", "-b", "1200", "--out-dir", "out", "--json")

    assert ended.code == 5
    assert [one.get("exit_code") for one in ended.json["files"]] == [None, 3]


def test_an_interrupted_run_goes_on_where_it_stopped(
    muntin: Muntin, folder: Path, tmp_path: Path
) -> None:
    """Hours of work are not done twice; what changed meanwhile is."""
    arguments = ("trim", folder, "-b", "1200", "--out-dir", "out")
    muntin(*arguments)
    (tmp_path / "out" / "a.json").unlink()
    (tmp_path / "out" / "b.jsonl").write_text("mine")
    (folder / "old" / "c.json").write_text((folder / "old" / "c.json").read_text() + " ")
    with (tmp_path / "out" / ".muntin-run.jsonl").open("a") as run:
        run.write('{"file": "torn')
    told = muntin(*arguments, "--resume", "--json").json
    other = muntin("trim", folder, "-b", "900", "--out-dir", "out", "--resume", "--json").json

    assert sorted(Path(one["path"]).name for one in told["files"] if "output" in one) == [
        "a.json", "c.json",
    ]  # fmt: skip
    assert told["already_done"] == 1
    assert other["already_done"] == 0


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ([], "--out-dir"),
        (["--out-dir", "o", "--output", "x"], "--output"),
        (["--out-dir", "o", "--html", "x"], "--html"),
        (["--out-dir", "o", "--record", "1"], "--record"),
        (["--out-dir", "o", "--write"], "--write"),
        (["--write", "--resume"], "--out-dir"),
        (["--out-dir", "o", "--ray", "auto", "--workers", "2"], "--workers"),
    ],
)
def test_options_for_one_file_are_refused_for_several(
    extra: list[str], said: str, muntin: Muntin, chat_file: Path
) -> None:
    """An option that cannot mean anything must not be passed over in silence."""
    ended = muntin("trim", chat_file, chat_file.parent, "-b", "1200", *extra)

    assert ended.code == 2
    assert said in ended.err


def test_a_cluster_is_refused_for_one_file(muntin: Muntin, chat_file: Path) -> None:
    """A cluster that was named and not used would look like one that was."""
    ended = muntin("trim", chat_file, "-b", "1200", "--ray", "auto")

    assert ended.code == 2
    assert "--ray is for several files" in ended.err


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_a_cluster_without_ray_is_refused_with_the_extra(muntin: Muntin, chat_file: Path) -> None:
    """The user must learn what to install, not the name of a module."""
    ended = muntin("trim", chat_file, "-b", "1200", "--ray", "auto", "--out-dir", "out")

    assert ended.code == 2
    assert "pip install 'muntin[ray]'" in ended.err


def test_two_files_of_one_name_are_not_written_over_each_other(
    muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The second result would replace the first without a word."""
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(json.dumps(chat))
    ended = muntin("trim", "x/a.json", "y/a.json", "-b", "1200", "--out-dir", "out")

    assert ended.code == 2
    assert "would both be written to a.json" in ended.err


def test_write_replaces_every_file_of_a_folder(muntin: Muntin, folder: Path) -> None:
    """In place, when that is what was asked for, and only what is a conversation."""
    before = _written(folder)
    ended = muntin("trim", folder, "-b", "1200", "--write")
    after = _written(folder)

    assert ended.code == 0
    assert after["settings.json"] == before["settings.json"]
    assert len(after["a.json"]) < len(before["a.json"])
    assert sorted(after) == sorted(before)


def test_count_takes_a_folder_of_conversations(muntin: Muntin, folder: Path) -> None:
    """The first question about a folder of chats is how large they are."""
    told = muntin("count", "--chat", folder, "--json").json

    assert len(told["files"]) == 5
    assert all(one["characters"] > one["tokens"]["estimate"] for one in told["files"])
