"""What is published is complete, light, and has one version and one address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import muntin

ROOT = Path(__file__).resolve().parents[1]
SHIMS = sorted(path.parent for path in (ROOT / "integrations").glob("*/pyproject.toml"))


def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


PROJECT = _project(ROOT)


def test_every_distribution_has_the_version_of_the_library() -> None:
    """A shim that asks for another version installs another library."""
    assert {shim.name for shim in SHIMS} == {"langchain-muntin", "llama-index-muntin"}
    for shim in SHIMS:
        project = _project(shim)
        assert project["version"] == muntin.__version__
        (only,) = map(Requirement, project["dependencies"])
        assert only.name == "muntin"
        assert only.specifier == SpecifierSet(f"=={muntin.__version__}")
        assert only.extras <= PROJECT["optional-dependencies"].keys()


def test_the_changelog_has_a_section_for_the_version() -> None:
    """A release without its section leaves the reader to read the commits."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## {re.escape(muntin.__version__)}\b", text, re.MULTILINE)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_each_python_has_its_classifier_and_one_bound_of_numpy(python: str) -> None:
    """Numpy 1.26 has no wheels for 3.13: the oldest allowed version would be built from source."""
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    bounds = [
        one.specifier
        for one in map(Requirement, PROJECT["dependencies"])
        if one.name == "numpy"
        and (one.marker is None or one.marker.evaluate({"python_version": python}))
    ]
    assert len(bounds) == 1
    assert bounds[0].contains("1.26.4") == (python != "3.13")
    assert bounds[0].contains("2.3.0")


def test_links_of_the_readme_are_absolute_and_lead_home() -> None:
    """PyPI shows the README without the repository around it."""
    text = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", text)
    found = [one or other for one, other in links]
    assert found
    home = PROJECT["urls"]["Repository"]
    own = f"{home}/", home.replace("https://github.com", "https://raw.githubusercontent.com")
    assert [one for one in found if not one.startswith("https://")] == []
    for link in found:
        if link.startswith(own):
            path = re.sub(r"^https://[^/]+/[^/]+/[^/]+/(?:(?:blob|raw|tree)/)?main/?", "", link)
            assert (ROOT / path.partition("#")[0]).exists(), link


@pytest.mark.parametrize("name", ["README.md", "docs", "integrations", "CONTRIBUTING.md"])
def test_nothing_claims_to_be_on_pypi_yet(name: str) -> None:
    """`pip install muntin` fails, or installs somebody else's project, until it is published."""
    places = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*.md"))
    places = [path for path in places if path.name != "architecture.md"]  # docstrings of modules
    for path in places:
        text = path.read_text("utf-8")
        wrong = re.findall(r"pip install (?:-U )?[\"']?(?:langchain-|llama-index-)?muntin\S*", text)
        assert [one for one in wrong if " @ " not in text[text.index(one) :][:80]] == [], path


def test_the_data_of_the_figures_has_a_licence_for_each_source() -> None:
    """Share-alike text without its licence must not be passed on."""
    folder = ROOT / "benchmarks" / "data"
    if not folder.is_dir():
        pytest.skip("benchmarks/data is not here: a source distribution leaves it out")
    page = (folder / "README.md").read_text("utf-8")
    licences = {path.name for path in (folder / "licences").glob("*.txt")}
    named = set(re.findall(r"licences/([\w.-]+\.txt)", page))
    assert named <= licences
    texts = "".join((folder / "licences" / name).read_text("utf-8") for name in licences)
    for path in folder.iterdir():
        if path.is_file() and path.name != "README.md":
            assert f"`{path.name}`" in page
            assert path.name in texts
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 15_000_000


def test_the_distributions_leave_the_data_out() -> None:
    """Seven megabytes of share-alike text are of no use to an installation."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert "/benchmarks/data" in build["targets"]["sdist"]["exclude"]
    assert all("benchmarks" not in one for one in build["targets"]["wheel"]["packages"])
