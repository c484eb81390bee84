"""HTML pages, Word files and notebooks as documents, with their headings as names."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from muntin.cli.documents.find import find_documents
from muntin.cli.documents.search import Search

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_runs import Muntin
    from muntin.passages import Candidate

PICTURE = base64.b64encode(b"\x89PNG\r\n" + b"x" * 3000).decode()


def _html(path: Path) -> None:
    path.write_text(
        "<!doctype html><html><head><title>Shop</title><style>p{color:red}</style>"
        "<script>var refund = 1;</script></head><body><nav>Home refund</nav>"
        "<h1>Handbook</h1><p>All about the shop.</p>"
        "<h2>Refunds &amp; returns</h2><p>A refund takes <b>five</b> days.</p>"
        "<ul><li>In full for late orders.</li></ul>"
        "<table><tr><td>lamp</td><td>30 days</td></tr></table></body></html>",
        encoding="utf-8",
    )


def _docx(path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Handbook", 1)
    document.add_paragraph("All about the shop.")
    document.add_heading("Refunds & returns", 2)
    document.add_paragraph("A refund takes five days.")
    document.add_paragraph("In full for late orders.", style="List Bullet")
    row = document.add_table(rows=1, cols=2).rows[0]
    row.cells[0].text, row.cells[1].text = "lamp", "30 days"
    document.save(str(path))


def _notebook(path: Path) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Handbook\n", "All about it."]},
        {"cell_type": "markdown", "metadata": {},
         "source": "## Refunds & returns\nA refund takes five days.\n\nIn full for late orders."},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "days('lamp')",
         "outputs": [
             {"output_type": "stream", "name": "stdout", "text": ["lamp | 30 days\n"]},
             {"output_type": "display_data", "metadata": {},
              "data": {"image/png": PICTURE, "text/plain": ["<Figure size 640x480>"]}}]},
    ]  # fmt: skip
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))


KINDS = pytest.mark.parametrize(
    ("suffix", "write", "needs"),
    [(".html", _html, "bs4"), (".docx", _docx, "docx"), (".ipynb", _notebook, "json")],
    ids=["html", "docx", "notebook"],
)


def _found(path: Path, question: str) -> list[Candidate]:
    documents, skipped = find_documents([path])
    assert skipped == []
    search = Search(question)
    search.read(documents)
    assert search.skipped == []
    return search.best(5)


@KINDS
def test_the_section_that_answers_is_found_under_its_heading(
    suffix: str, write: Callable[[Path], None], needs: str, tmp_path: Path
) -> None:
    """A page read as markup spends its tokens on tags and names no place."""
    pytest.importorskip(needs)
    path = tmp_path / f"handbook{suffix}"
    write(path)
    best = _found(path, "how long does a refund take")[0]

    assert "A refund takes five days." in best.content
    assert "In full for late orders." in best.content
    assert "<" not in best.content
    assert "Refunds & returns" in best.content
    assert best.metadata["heading"] == "Refunds & returns"
    assert best.id.startswith(str(path))
    assert "30 days" in _found(path, "lamp days")[0].content


@KINDS
def test_neither_markup_nor_pictures_are_charged(
    suffix: str, write: Callable[[Path], None], needs: str, muntin: Muntin, tmp_path: Path
) -> None:
    """Two sentences beside a picture cost 1,069 tokens of JSON and base64."""
    pytest.importorskip(needs)
    write(tmp_path / f"handbook{suffix}")
    told = muntin("count", f"handbook{suffix}", "--json").json
    built = muntin("assemble", "-q", "refund lamp", "--docs", f"handbook{suffix}", "-w", "2k",
                   "--json").json  # fmt: skip

    assert 20 < told["total"]["tokens"]["estimate"] < 90
    assert PICTURE[:40] not in built["text"]
    assert "script" not in built["text"]
    assert built["report"]["used"] < 200


@KINDS
def test_a_broken_file_is_skipped_with_a_reason(
    suffix: str, write: Callable[[Path], None], needs: str, muntin: Muntin, tmp_path: Path
) -> None:
    """One torn file among many must neither end the run nor be read as text."""
    if suffix == ".html":
        pytest.skip("every text is a page to a parser of HTML")
    pytest.importorskip(needs)
    path = tmp_path / f"handbook{suffix}"
    write(path)
    path.write_bytes(path.read_bytes()[:60])
    (tmp_path / "other.md").write_text("# Refunds\n\nA refund takes five days.\n")
    ended = muntin("assemble", "-q", "refund", "--docs", tmp_path, "--json")

    assert ended.code == 0
    assert ["cannot be read" in one["reason"] for one in ended.json["skipped"]] == [True]


@pytest.mark.parametrize(("suffix", "module"), [(".html", "bs4"), (".docx", "docx")])
def test_a_missing_library_is_named_with_what_to_install(
    suffix: str, module: str, muntin: Muntin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is passed over without a word looks like an answer that is not there."""
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"handbook{suffix}").write_bytes(b"<p>A refund takes five days.</p>")
    ended = muntin("assemble", "-q", "refund", "--docs", tmp_path)

    assert ended.code == 4
    assert 'pip install "muntin[documents]"' in ended.err


def test_a_passage_deep_in_a_markdown_section_carries_its_heading(tmp_path: Path) -> None:
    """The line alone does not say what a paragraph is about."""
    path = tmp_path / "handbook.md"
    body = "\n\n".join(f"Paragraph {n} about lamps. " + "More words follow. " * 30
                       for n in range(9))  # fmt: skip
    path.write_text(f"# Shop\n\nIntro.\n\n## Returns\n\n{body}\n\nA refund takes five days.\n")
    best = _found(path, "refund")[0]

    assert best.metadata["heading"] == "Returns"
    assert best.id.endswith("(Returns)")
    assert (tmp_path / "code.py").write_text("# Returns\nx = 1\n\nrefund = 2\n")
    assert "heading" not in _found(tmp_path / "code.py", "refund")[0].metadata
