"""Measure `muntin trim` over many files: files a second, and memory that does not grow.

    python benchmarks/bench_cli.py --files 10000 --workers 2 [--picture docs/images/many-files.svg]

Writes conversations of 4 to 60 messages in several forms, trims them into a folder of results on a
terminal of its own, and reads the memory of the command and of each worker from the system.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def _write(folder: Path, files: int) -> int:
    """Write the conversations; returns their bytes."""
    total = 0
    for n in range(files):
        rounds = 1 + n % 15
        messages: list[dict[str, Any]] = [{"role": "system", "content": "You track orders."}]
        for at in range(rounds):
            asked = {"name": "find", "arguments": json.dumps({"order": at})}
            call = {"id": f"c{at}", "type": "function", "function": asked}
            log = f"order A-{at} late by {n % 9} days\n" + "line of the log\n" * (20 + n % 50)
            messages += [
                {"role": "user", "content": f"Where is order A-{at} of customer {n}?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{at}", "content": log},
                {"role": "assistant", "content": f"Order A-{at} is late by {n % 9} days."},
            ]
        if n % 3 == 0:
            text = json.dumps({"id": n, "messages": messages})
        elif n % 3 == 1:
            text = "".join(f"{json.dumps(one)}\n" for one in messages)
        else:
            turns = [{"from": "human" if m["role"] == "user" else "gpt", "value": m["content"]}
                     for m in messages if m["role"] != "tool" and m["content"]]  # fmt: skip
            text = json.dumps([{"conversations": turns}])
        path = folder / f"{n % 100:02}" / f"{n:05}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        total += len(text)
    return total


def _resident(process: int) -> int:
    """Return the memory of a process in bytes; 0 where the system does not know it."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s*(\d+)", status)
    return int(found[1]) << 10 if found else 0


def _children(process: int) -> list[int]:
    try:
        return [
            int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()
        ]
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class _Sample:
    files: int
    """Files that were done."""
    command: int
    """Bytes of the command's own process."""
    worker: int
    """Bytes of its largest worker process."""


class _Watch(threading.Thread):
    """Note the memory of a command and of its workers while it runs."""

    def __init__(self, process: int, done: Path) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.done = done
        self.samples: list[_Sample] = []
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.5):
            files = self.done.read_bytes().count(b"\n") if self.done.exists() else 0
            workers = max(map(_resident, _children(self.process)), default=0)
            if workers:
                self.samples.append(_Sample(files, _resident(self.process), workers))

    def after(self, files: int) -> _Sample:
        """Return the sample taken next to this number of files."""
        return min(self.samples, key=lambda one: abs(one.files - files))


def _run(folder: Path, out: Path, workers: int) -> tuple[float, _Watch, bytes]:
    mine, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "92", "LINES": "24"}
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "muntin", "trim", folder.name, "--budget", "800",
         "--out-dir", str(out), "--workers", str(workers)],
        stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, cwd=folder.parent, env=environment,
    )  # fmt: skip
    os.close(theirs)
    watch = _Watch(process.pid, out / ".muntin-run.jsonl")
    watch.start()
    shown = b""
    while True:
        try:
            part = os.read(mine, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    code = process.wait()
    seconds = time.monotonic() - start
    watch.ended.set()
    if code:
        raise SystemExit(f"muntin trim ended with {code}:\n{shown[-2000:].decode()}")
    return seconds, watch, shown


def _picture(shown: bytes, files: int, workers: int) -> str:
    """Draw what the terminal showed: the bar in the middle of the run, and the table at the end."""
    from rich.console import Console
    from rich.text import Text

    text = re.sub(r"\x1b\[\?25[lh]|\x1b\[\d*[AK]|\x1b\[2K", "", shown.decode())
    frames = [one for one in re.split(r"[\r\n]+", text) if "trimming" in one]
    table = text[text.rindex("trimming") :].split("\n", 1)[1].replace("\r", "").rstrip()
    console = Console(record=True, width=92, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(f"$ muntin trim chats --budget 800 --out-dir small --workers {workers}")
    console.print(Text.from_ansi(frames[len(frames) // 2]))
    console.print(f"[dim]... {files:,} files later[/dim]")
    console.print(Text.from_ansi(table))
    drawn = console.export_svg(title="muntin trim")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # it loads no font


def main() -> int:
    """Run the measurement and print its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "chats"
        folder.mkdir()
        size = _write(folder, given.files)
        seconds, watch, shown = _run(folder, Path(name) / "out", given.workers)
    print(f"{given.files:,} files, {size / 1e6:.0f} MB, {given.workers} workers")
    print(f"{seconds:.0f} s, {given.files / seconds:.0f} files/s, {size / seconds / 1e6:.1f} MB/s")
    for share in (0.2, 0.5, 1):
        sample = watch.after(round(given.files * share))
        print(f"memory after {sample.files:,} files: command {sample.command / 1e6:.0f} MB, "
              f"a worker {sample.worker / 1e6:.0f} MB")  # fmt: skip
    if given.picture:
        given.picture.write_text(_picture(shown, given.files, given.workers), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
