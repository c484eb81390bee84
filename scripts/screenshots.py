"""Take the pictures of the report for README and docs, light and dark, and smaller ones to look at.

    python scripts/screenshots.py [--all FOLDER]

Needs a Chromium on this machine and the package playwright (both are in the developer set).
`--all` also writes the page at 400 pixels and as printed, for a look before a release.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
QUESTION = "How do I keep an agent's tool results inside the window?"


def report_page(folder: Path) -> Path:
    """Assemble a context from the documentation and write its report."""
    from muntin.__main__ import main

    path = folder / "report.html"
    arguments = ["demo", QUESTION, "--window", "8000", "--html", str(path)]
    try:
        main(arguments)
    except SystemExit as ended:
        if ended.code:
            raise
    return path


def pictures(page_file: Path, folder: Path | None) -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome")
         if (found := shutil.which(name))),
        None,
    )  # fmt: skip
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme, name in (("light", "report.png"), ("dark", "report-dark.png")):
            page: Any = browser.new_page(
                viewport={"width": 1100, "height": 760},
                color_scheme=scheme,  # pyright: ignore[reportArgumentType] - one of the literals
            )
            page.goto(page_file.as_uri())
            page.screenshot(path=IMAGES / name)
            if folder is not None:
                page.screenshot(path=folder / f"whole-{scheme}.png", full_page=True)
                page.set_viewport_size({"width": 400, "height": 900})
                page.screenshot(path=folder / f"narrow-{scheme}.png", full_page=True)
            page.close()
        if folder is not None:
            page = browser.new_page()
            page.goto(page_file.as_uri())
            page.pdf(path=folder / "printed.pdf")
        browser.close()


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Take pictures of the report.")
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.all is not None:
        options.all.mkdir(parents=True, exist_ok=True)
    pictures(report_page(Path(tempfile.mkdtemp())), options.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
