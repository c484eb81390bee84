"""Check every link of the built site: pages, files and anchors.

    python scripts/check_links.py site      # exit with 1 and a list if a link leads nowhere

Links to other hosts are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ("dead_links",)


class _Page(HTMLParser):
    """Collect the links and the anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read one tag."""
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif (name == "href" and tag in ("a", "link")) or name == "src":
                self.links.append(value)


def dead_links(site: Path) -> list[str]:
    """Return the links of a site that lead nowhere, each as "page: link"."""
    pages = {path.resolve(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    dead: list[str] = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            found = pages.get(target.resolve())
            missing_anchor = (
                parts.fragment and found and unquote(parts.fragment) not in found.anchors
            )
            if not target.exists() or missing_anchor:
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
    sys.stdout.write("".join(f"dead link: {link}\n" for link in found))
    raise SystemExit(bool(found))
