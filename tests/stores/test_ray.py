"""Batches through Ray: the same bytes as local processes, and bad rows reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from muntin import ContextConfig
from muntin.scaling import (
    assemble_dataset,
    assemble_row,
    fit_dataset,
    fit_row,
    map_records_on_ray,
    read_jsonl,
)
from scaling_functions import double

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'muntin[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.filterwarnings("ignore"),  # those of Ray itself
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Ray on this machine with two processors."""
    import sys

    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=200_000_000,
        runtime_env={"env_vars": environment},
    )
    yield
    ray.shutdown()


def chats(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "messages": [
                {"role": "user", "content": f"Where is order A-{number}? " * 40},
                {"role": "assistant", "content": f"Order A-{number} left. " * 60},
                {"role": "user", "content": "And now?"},
            ],
        }
        for number in range(count)
    ]


def test_a_dataset_is_fitted_to_the_bytes_of_one_process(tmp_path: Path) -> None:
    """Arrow gives every message the keys of all others; the model must not see them."""
    lines = chats(300)
    lines[17]["messages"] = "{broken"
    lines[40]["messages"][1]["tool_calls"] = []
    source = tmp_path / "chats.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    dataset = fit_dataset(read_jsonl(str(source), columns=("id", "messages")), budget=200)
    dataset.write_parquet(str(tmp_path / "fitted"))
    found = {row["id"]: row for row in ray.data.read_parquet(str(tmp_path / "fitted")).take_all()}
    assert len(found) == 300
    for line in lines:
        expected = fit_row({"id": str(line["id"]), "messages": line["messages"]}, budget=200)
        got = found[str(line["id"])]
        for column in ("messages", "report", "tokens", "changed", "error"):
            assert got[column] == expected[column], (line["id"], column)
    assert found["17"]["error"].startswith("JSONDecodeError")


def test_contexts_are_assembled_over_a_dataset() -> None:
    config = ContextConfig(max_tokens=600)
    rows = [
        {"question": f"What is {n}?", "passages": json.dumps([f"{n} is a number.", "Other."])}
        for n in range(50)
    ]
    found = assemble_dataset(ray.data.from_items(rows), config=config).take_all()
    expected = {row["question"]: assemble_row(row, config=config)["text"] for row in rows}
    assert {row["question"]: row["text"] for row in found} == expected


def test_functions_run_on_a_cluster_as_in_local_processes() -> None:
    found = list(map_records_on_ray(double, range(40)))
    assert [one.index for one in found if one.error] == [13, 17]
    assert "unlucky" in str(found[13].error)
    assert [one.value for one in found][18:] == [2 * n for n in range(18, 40)]


def test_the_command_line_works_on_a_cluster_as_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes, the same skipped file and the same broken one, whatever did the work."""
    from muntin.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "chats").mkdir()
    for line in chats(40):
        (tmp_path / "chats" / f"{line['id']}.json").write_text(json.dumps(line["messages"]))
    (tmp_path / "chats" / "settings.json").write_text('{"theme": 1}')
    (tmp_path / "chats" / "torn.json").write_text("{")
    codes = [
        main(["trim", "chats", "--budget", "200", "--out-dir", out, *extra])
        for out, extra in (("here", []), ("there", ["--ray", "auto"]))
    ]
    written = [
        {path.name: path.read_bytes() for path in (tmp_path / out).glob("*.json")}
        for out in ("here", "there")
    ]

    assert codes == [5, 5]
    assert len(written[0]) == 40
    assert written[0] == written[1]
