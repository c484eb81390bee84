"""Check the distributions in `dist/`: their contents, their metadata, one version everywhere.

    python scripts/check_dist.py [--tag v0.2.0] [--repository owner/name]

The release workflow passes the tag and the repository it runs in, so that nothing is published
under another version or with links to another place.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
SHIMS = ("langchain-muntin", "llama-index-muntin")
PACKAGES = ("muntin", "langchain_muntin", "llama_index_muntin")
DATA = ("page.css", "page.html", "page.js", "py.typed")
"""Names of files besides Python modules that the library reads."""
_RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)[^)]+\)")


def problems(dist: Path, *, tag: str | None = None, repository: str | None = None) -> Iterator[str]:
    """Yield what is wrong with the distributions of a folder, one sentence each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = version_of_library()
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, the version is {version}"
    home: str = project["urls"]["Repository"]
    if repository is not None and not home.endswith(f"/{repository}"):
        yield f"project.urls names {home}, this is {repository}"
    for shim in SHIMS:
        name = shim.replace("-", "_")
        if not (dist / f"{name}-{version}-py3-none-any.whl").exists():
            yield f"there is no wheel of {shim} {version}"
    wheel = dist / f"muntin-{version}-py3-none-any.whl"
    source = dist / f"muntin-{version}.tar.gz"
    for path in (wheel, source):
        if not path.exists():
            yield f"{path.name} is not there: run `make dist`"
            return
    yield from _wheel_problems(wheel, version)
    yield from _source_problems(source)


def version_of_library() -> str:
    """Read the version without importing the package."""
    text = (ROOT / "src/muntin/__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("src/muntin/__init__.py has no __version__")
    return found[1]


def _wheel_problems(path: Path, version: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        text = wheel.read(f"muntin-{version}.dist-info/METADATA").decode()
    allowed = (*PACKAGES, f"muntin-{version}.dist-info")
    for name in names:
        if name.partition("/")[0] not in allowed:
            yield f"the wheel contains {name}"
    for package in PACKAGES:
        if f"{package}/py.typed" not in names:
            yield f"the wheel has no {package}/py.typed"
    for name in DATA:
        if not any(one.endswith(f"/{name}") for one in names):
            yield f"the wheel has no {name}"
    if not any("licenses/LICENSE" in name for name in names):
        yield "the wheel has no licence"
    metadata = message_from_string(text)
    body = str(metadata.get_payload())
    for link in _RELATIVE_LINK.findall(body):
        yield f"README has a relative link, which PyPI cannot follow: {link}"


def _source_problems(path: Path) -> Iterator[str]:
    with tarfile.open(path) as source:
        names = [name.partition("/")[2] for name in source.getnames()]
    for name in names:
        if name.startswith("benchmarks/data/"):
            yield f"the source distribution contains {name}"
    for name in ("LICENSE", "README.md", "src/muntin/__init__.py", "tests/conftest.py"):
        if name not in names:
            yield f"the source distribution has no {name}"


def main() -> int:
    """Print the problems; the exit code is 1 when there are any."""
    parser = argparse.ArgumentParser(description="Check the distributions in dist/.")
    parser.add_argument("--tag")
    parser.add_argument("--repository")
    options = parser.parse_args()
    found = list(problems(ROOT / "dist", tag=options.tag, repository=options.repository))
    for one in found:
        sys.stderr.write(f"{one}\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
