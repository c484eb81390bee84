"""Writers killed at any moment: every load gives an old or a new state, never a torn one."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from muntin import AgentState, StateNotFound, StateStore

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import os, sys, threading, time
from muntin import StateStore

kind, place = sys.argv[1], sys.argv[2]
store = getattr(StateStore, kind)(place, lock_timeout=60)

def work(number):
    size = 1
    while True:
        size = size * 7 % 4001
        def change(state):
            # The goal says how long the only finding is: a torn mixture would not agree.
            state.goal = f"{size}"
            state.key_findings = ["x" * size]
        store.update(change)

threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
for thread in threads:
    thread.start()
parent = os.getppid()
print("ready", flush=True)
while os.getppid() == parent:  # a test that is stopped itself leaves no writers behind
    time.sleep(0.2)
"""


def start(kind: str, place: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, kind, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def check(store: StateStore) -> int:
    """Load once; what is loaded agrees with itself."""
    try:
        state = store.load()
    except StateNotFound:
        return 0
    if state.revision:
        assert [len(str(finding)) for finding in state.key_findings] == [int(state.goal)]
    return state.revision


def kill_often(kind: str, place: Path, rounds: int) -> None:
    """Let two processes of four threads write and kill one at random moments."""
    store = StateStore.directory(place) if kind == "directory" else StateStore.sqlite(place)
    moments = random.Random(7)
    writers = [start(kind, place), start(kind, place)]
    newest = 0
    try:
        for number in range(rounds):
            until = time.monotonic() + moments.uniform(0.0, 0.06)
            while time.monotonic() < until:
                newest = max(newest, check(store))
            kill(writers[number % 2])
            revision = check(store)
            assert revision >= newest
            writers[number % 2] = start(kind, place)
        # Locks died with their holders: whoever comes next can write at once.
        for writer in writers:
            kill(writer)
        store.update(lambda state: state.open_questions.append("still here?"))
        assert store.load().open_questions == ["still here?"]
    finally:
        for writer in writers:
            kill(writer)


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_killed_writers_leave_an_old_or_a_new_state(kind: str, tmp_path: Path) -> None:
    """An agent is stopped by a deploy, a laptop lid or the kernel, never at a good moment."""
    kill_often(kind, tmp_path / "states", rounds=3)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_killed_writers_leave_an_old_or_a_new_state_forty_times(kind: str, tmp_path: Path) -> None:
    kill_often(kind, tmp_path / "states", rounds=40)


def save_often(place: Path, saves: int) -> None:
    """Let eight threads save states of different sizes, and readers look all the time."""
    import threading

    store = StateStore.directory(place)
    store.save(AgentState(goal="0", key_findings=[""]))
    problems: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        try:
            for turn in range(saves // 8):
                size = (number * 997 + turn * 131) % 5000
                store.save(AgentState(goal=f"{size}", key_findings=["x" * size]), overwrite=True)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            problems.append(error)

    def read() -> None:
        try:
            while not done.is_set():
                check(store)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            problems.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert store.load().revision == 1 + saves // 8 * 8
    assert json.loads((place / "state.json.bak").read_text())["revision"] == saves // 8 * 8
    assert not [path for path in place.iterdir() if path.suffix == ".tmp"]


def test_eight_threads_do_not_tear_one_file(tmp_path: Path) -> None:
    """A fixed temporary name lets two writers interleave, and the next load fails."""
    save_often(tmp_path, 64)


@pytest.mark.slow
def test_eight_threads_do_not_tear_one_file_in_a_thousand_saves(tmp_path: Path) -> None:
    save_often(tmp_path, 1000)
