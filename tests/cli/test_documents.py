"""Reading folders: what is a document, how it is cut, and what a question finds in it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.cli.documents.find import find_documents
from muntin.cli.documents.passages import Passage, cut
from muntin.cli.documents.search import Search
from muntin.text.lexical import bm25_scores

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin

HOSTILE = {
    "binary.dat": b"refund\0refund" * 99,
    "picture.png": b"\x89PNG refund",
    "empty.txt": b"",
    "blank.txt": b" \n\n \t\n",
    "latin.txt": "Rückgabe und refund".encode("latin-1"),
    "late.txt": b"refund rules\n" * 200_000 + b"\xff\xfe",
    "utf16.txt": "refund".encode("utf-16"),
}
"""Files that are no text, each a different way; `late.txt` shows it only after its first block."""


def _passages(path: Path) -> list[Passage]:
    documents, skipped = find_documents([path])
    assert not skipped
    return list(documents[0].passages())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents nobody tidied up."""
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "node_modules").mkdir()
    (root / "refunds.md").write_text("# Refunds\n\nA refund takes five days.\n")
    (root / "sub" / "code.py").write_text("def refund(order):\n    return order.total\n")
    (root / ".git" / "config").write_text("refund")
    (root / "node_modules" / "x.js").write_text("refund")
    for name, content in HOSTILE.items():
        (root / name).write_bytes(content)
    (root / "gone.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(root / "pipe.txt")
    return root


def test_what_is_no_text_is_skipped_with_its_reason(folder: Path, muntin: Muntin) -> None:
    """One broken file among thousands must neither end the run nor vanish without a word."""
    ended = muntin("assemble", "-q", "how long does a refund take?", "--docs", folder, "--json")
    reasons = {path["path"].rsplit("/", 1)[-1]: path["reason"] for path in ended.json["skipped"]}

    assert ended.code == 0
    assert ended.json["searched"] == {"files": 2, "passages": 2}
    assert set(reasons) == {*HOSTILE, "gone.txt", "pipe.txt"}
    assert {name: reasons[name] for name in HOSTILE} == {
        "binary.dat": "binary", "picture.png": "binary", "utf16.txt": "not UTF-8",
        "empty.txt": "empty", "blank.txt": "empty", "latin.txt": "not UTF-8",
        "late.txt": "not UTF-8",
    } | {"utf16.txt": reasons["utf16.txt"]}  # fmt: skip
    assert reasons["utf16.txt"] in ("binary", "not UTF-8")
    assert "skipped 9 files" in ended.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_skipped(folder: Path, muntin: Muntin) -> None:
    """Shared machines hold files one may list and not read."""
    (folder / "refunds.md").chmod(0)
    ended = muntin("assemble", "-q", "refund", "--docs", folder, "--json")
    (folder / "refunds.md").chmod(stat.S_IRWXU)

    assert any("unreadable" in one["reason"] for one in ended.json["skipped"])


def test_an_unreadable_file_is_told_by_the_systems_own_words(
    folder: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where root runs the tests: the disk refuses."""
    from pathlib import Path as Paths

    opened = Paths.open

    def refuse(path: Path, *arguments: Any, **more: Any) -> Any:
        if path.name == "refunds.md":
            raise PermissionError(13, "Permission denied", str(path))
        return cast("Any", opened)(path, *arguments, **more)

    monkeypatch.setattr(Paths, "open", refuse)
    ended = muntin("assemble", "-q", "refund", "--docs", folder, "--json")

    assert {"path": str(folder / "refunds.md"), "reason": "unreadable: Permission denied"} in (
        ended.json["skipped"]
    )


def test_a_folder_with_nothing_to_read_is_a_failed_source(tmp_path: Path, muntin: Muntin) -> None:
    """An empty context sent to a model costs money and answers nothing."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.png").write_bytes(b"x")
    empty = muntin("assemble", "-q", "refund", "--docs", tmp_path / "d")
    missing = muntin("assemble", "-q", "refund", "--docs", tmp_path / "nowhere")

    assert (empty.code, missing.code) == (4, 4)
    assert "1 binary" in empty.err
    assert "not there" in missing.err


def test_patterns_choose_files(folder: Path, muntin: Muntin) -> None:
    """A monorepo is searched for its documents, not for everything in it."""
    arguments = ("assemble", "-q", "refund", "--docs", folder, "--json")
    only = muntin(*arguments, "--include", "*.md").json
    without = muntin(*arguments, "--exclude", "*/sub/*", "--exclude", "*.txt").json

    assert only["searched"]["files"] == 1
    assert only["skipped"] == []
    assert without["searched"]["files"] == 1


def test_pdf_files_are_read_where_a_reader_is_installed(
    tmp_path: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handbooks are PDFs; without the reader the note says what to install."""
    pytest.importorskip("pypdf")
    path = tmp_path / "handbook.pdf"
    path.write_bytes(_pdf("A refund takes five days."))
    (tmp_path / "torn.pdf").write_bytes(path.read_bytes()[:90])
    arguments = ("assemble", "-q", "refund", "--docs", path, "--docs", tmp_path / "torn.pdf")
    found = muntin(*arguments, "--json").json

    assert "page 1: A refund takes five days." in found["text"]
    assert "cannot be read" in found["skipped"][0]["reason"]
    assert muntin("count", path, "--json").json["total"]["characters"] == 25
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    ended = muntin(*arguments)
    assert ended.code == 4
    assert 'pip install "pypdf"' in ended.err


def _pdf(text: str) -> bytes:
    """Write a PDF of one page by hand."""
    drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]  # fmt: skip
    data, places = b"%PDF-1.4\n", list[int]()
    for number, part in enumerate(parts, start=1):
        places.append(len(data))
        data += b"%d 0 obj%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF" % len(data)
    return data + b"xref\n0 6\n0000000000 65535 f \n" + table + end


@given(
    st.lists(
        st.sampled_from(
            ["word ", "\n", "\n\n", "# H\n", "漢字", "é", "👩‍👩‍👧", "\r\n", "x" * 700, " "]
        )
    )
)
def test_passages_hold_all_of_a_text_in_order_and_are_bounded(pieces: list[str]) -> None:
    """What falls between two passages can never be found."""
    text = "".join(pieces)
    spans = list(cut(text))
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    between = [text[a:b] for a, b in zip([0, *ends], [*starts, len(text)], strict=True)]

    assert all(0 < end - start <= 1_600 for start, end in spans)
    assert all(not gap.strip("\ufeff \r\n\t") for gap in between)


@pytest.mark.parametrize(
    "unit", ["plain words and more ", "Grüße an 漢字 ", "👩‍👩‍👧", "\r\nline of text", "a"]
)
def test_every_passage_is_read_again_as_it_was_found(unit: str, tmp_path: Path) -> None:
    """Only places are kept, so a place that is off by a byte shows another text to the model."""
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf" + (unit * (2_500_000 // len(unit.encode()))).encode())
    document = find_documents([path])[0][0]
    passages = list(document.passages())

    assert len(passages) > 500
    for one in passages[:: len(passages) // 50]:
        assert document.read_again(one.place, one.length) == one.text
    assert "".join(document.parts(700_000)).encode() == path.read_bytes()


def test_passages_know_their_lines(tmp_path: Path) -> None:
    """The model cites `file:line`, and a person opens it there."""
    path = tmp_path / "x.py"
    path.write_text("".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(9_999)))
    lines = path.read_text().split("\n")

    for one in _passages(path)[::40]:
        assert one.text.startswith(lines[one.line - 1])


def test_the_search_ranks_as_bm25_does(tmp_path: Path) -> None:
    """One pass and a few numbers a passage must find what an index in memory would."""
    texts = [
        f"Chapter {n} about {'refunds ' * (n % 5)}and {'orders ' * (n % 3)}." for n in range(40)
    ]
    for n, text in enumerate(texts):
        (tmp_path / f"{n:02}.txt").write_text(text)
    search = Search("refunds of orders")
    search.read(find_documents([tmp_path])[0])
    best = [one.id for one in search.best(8)]
    expected = bm25_scores("refunds of orders", texts)
    # Lengths are taken in characters here and in words there: scores agree closely, not exactly.
    worst = min(expected[int(where.rsplit("/", 1)[-1][:2])] for where in best)

    assert worst >= sorted(expected)[-8] * 0.97


def test_a_question_no_document_speaks_of_finds_nothing_and_says_so(
    folder: Path, muntin: Muntin
) -> None:
    """Better an empty section with a note than passages that are about something else."""
    ended = muntin("assemble", "-q", "photosynthesis?", "--docs", folder)

    assert ended.code == 0
    assert "no passage shares a word" in ended.err
    assert "[Knowledge]" not in ended.out
