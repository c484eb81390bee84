"""Pages are written so that the site shows them as they are meant."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_fence_with_options_is_one_the_site_reads() -> None:
    """The site takes a fence such as `python continues="yes"` for running text, code and all."""
    places = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    places += (ROOT / "integrations").rglob("*.py")
    unread = [
        f"{path.relative_to(ROOT)}: {fence}"
        for path in places
        for fence in re.findall(r"^ *```\w+ +\S.*$", path.read_text("utf-8"), re.MULTILINE)
    ]

    assert unread == [], 'write {.python .continued continues="yes"}'


def test_a_block_that_continues_the_one_before_shows_it() -> None:
    """A reader who copies the second block alone gets a NameError."""
    silent = [
        f"{path.relative_to(ROOT)}: {fence}"
        for path in (ROOT / "docs").rglob("*.md")
        for fence in re.findall(r"^ *```.*continues=.*$", path.read_text("utf-8"), re.MULTILINE)
        if ".continued" not in fence
    ]
    style = (ROOT / "docs" / "stylesheets" / "muntin.css").read_text("utf-8")

    assert silent == []
    assert ".continued::before" in style
