"""The report's page in a real browser: it must work by mouse, by keyboard, on a phone, in the dark.

The pages are opened as files and never fetch anything. Playwright speaks to its driver over pipes,
but its event loop makes itself a pair of local sockets to wake up by; that alone is why this module
asks for `socket_enabled`.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from muntin import CallableSource, Candidate, ContextBuilder
from report_samples import (
    context_report,
    conversation_report,
    hostile_report,
    large_report,
    later_context_report,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from muntin.report import AssemblyReport

    Open = Callable[..., Page]

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("socket_enabled")]

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one Chromium for the module."""
    import pytest_socket

    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the playwright package")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a Chromium: none of {', '.join(NAMES)} is on the PATH")
    pytest_socket.enable_socket()
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=found, args=[*QUIET, "--disable-component-update"]
        )
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a page from a file; whatever its console complains about fails the test at its end."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []

    def opened(html: str, *, width: int = 1280, scheme: Any = "light", script: bool = True) -> Page:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints
    assert all(url.startswith(("file:", "data:")) for url in requests)


def items(page: Page) -> list[str]:
    """Read the first column of the rows that are drawn."""
    return page.locator(".mtn-decisions tbody .mtn-item").all_inner_texts()


@pytest.mark.parametrize("width", [1280, 400])
def test_the_panes_add_up_to_the_window_and_fill_the_bar(open_page: Open, width: int) -> None:
    """A bar that lies by a few pixels still lies about tokens."""
    report = later_context_report()
    page = open_page(report.to_html(), width=width)
    panes = page.locator(".mtn-view .mtn-pane").evaluate_all(
        "all => all.map(p => [Number(p.dataset.width), p.getBoundingClientRect().width])"
    )
    assert sum(tokens for tokens, _ in panes) == report.whole
    pixels = sum(drawn for _, drawn in panes)
    for tokens, drawn in panes:
        assert drawn == pytest.approx(pixels * tokens / report.whole, abs=0.75)


def test_columns_sort_by_click_both_ways(open_page: Open) -> None:
    page = open_page(context_report().to_html())
    button = page.get_by_role("button", name="Tokens")
    cells = page.locator(".mtn-decisions tbody tr td:nth-child(3)")
    whole = "all => all.map(c => Number(c.textContent.split(' ').pop().replace(',', '')))"
    for direction, reverse in (("descending", True), ("ascending", False)):
        button.click()
        tokens = cells.evaluate_all(whole)
        assert tokens == sorted(tokens, reverse=reverse)
        assert page.locator("[aria-sort]").get_attribute("aria-sort") == direction
    assert page.locator("[aria-sort]").count() == 1


def test_columns_sort_by_keyboard_alone(open_page: Open) -> None:
    """Not everyone has a mouse."""
    page = open_page(context_report().to_html())
    page.get_by_role("searchbox").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.key") == "score":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    header = page.get_by_role("columnheader", name="Score")
    assert header.get_attribute("aria-sort") == "ascending"
    assert page.locator(".mtn-decisions tbody tr").first.inner_text().count("–") > 0


def test_search_and_chips_narrow_the_list_and_can_be_cleared(open_page: Open) -> None:
    page = open_page(context_report().to_html())
    status = page.get_by_role("status")
    assert status.inner_text() == "48 of 48 candidates"
    page.get_by_role("searchbox").fill("RAG-00")
    assert set(items(page)) == {item for item in items(page) if item.startswith("rag-00")}
    page.get_by_role("button", name="near duplicate").click()
    assert status.inner_text() == "3 of 48 candidates"
    page.get_by_role("searchbox").fill("no such passage")
    assert status.inner_text() == "0 of 48 candidates"
    page.get_by_role("button", name="Clear search and filters").click()
    assert status.inner_text() == "48 of 48 candidates"
    assert page.locator(".mtn-chip[aria-pressed=true]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("report", [context_report(), conversation_report()], ids=lambda r: r.kind)
def test_nothing_overflows_a_phone(open_page: Open, report: Any, scheme: str) -> None:
    html = report.to_html(previous=later_context_report())
    page = open_page(html, width=400, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for selector in (".mtn-decisions", ".mtn-sources", ".mtn-parts", ".mtn-chips"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400


CONTRAST = """() => {
  // A canvas turns every notation of a colour into numbers.
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  let looked = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim()) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    looked += 1;
    const back = behind(element);
    const ink = rgba(getComputedStyle(element).color);
    const fade = Number(getComputedStyle(element).opacity);
    const seen = ink.map((c, i) => c * fade + back[i] * (1 - fade));
    const [high, low] = [light(seen), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.className} ${walk.currentNode.data}`);
  }
  return {looked, poor};
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("report", [context_report(), conversation_report()], ids=lambda r: r.kind)
def test_every_text_has_contrast(open_page: Open, report: Any, scheme: str) -> None:
    """4.5 to 1 is what tired eyes need, in both themes and on every pane."""
    page = open_page(report.to_html(previous=later_context_report()), scheme=scheme)
    found = page.evaluate(CONTRAST)
    assert found["looked"] > 100
    assert found["poor"] == []


def test_the_theme_can_be_switched_against_the_system(open_page: Open) -> None:
    page = open_page(context_report().to_html(), scheme="dark")
    colour = "getComputedStyle(document.querySelector('.muntin')).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Use the light theme").click()
    assert page.evaluate(colour) != dark
    page.get_by_role("button", name="Use the dark theme").click()
    assert page.evaluate(colour) == dark


def test_ten_thousand_decisions_scroll_with_few_rows_in_the_page(open_page: Open) -> None:
    """Ten thousand rows in the page would take seconds to sort and stutter under the thumb."""
    page = open_page(large_report().to_html())
    most = page.evaluate("""async () => {
      const scroller = document.querySelector('.mtn-scroll');
      const frame = () => new Promise(requestAnimationFrame);
      let most = 0;
      scroller.scrollIntoView({block: 'center'});
      for (let step = 0; step <= 60; step += 1) {
        scroller.scrollTop = scroller.scrollHeight * step / 60;
        await frame(); await frame();
        most = Math.max(most, scroller.querySelectorAll('tbody tr').length);
        const box = scroller.getBoundingClientRect();
        const seen = document.elementFromPoint(box.left + 40, box.bottom - 60);
        if (!seen.closest('tbody tr')) throw new Error(`blank at step ${step}`);
      }
      return most;
    }""")
    assert most < 60
    assert items(page)[-1] == "rag:9999"
    assert page.locator(".mtn-decisions").get_attribute("aria-rowcount") == "10001"
    took = page.evaluate("""() => {
      const before = performance.now();
      document.querySelector('[data-key=tokens]').click();
      return performance.now() - before;
    }""")
    assert took < 1000


def test_the_slider_shows_another_budget_everywhere(open_page: Open) -> None:
    """Bar, table and chips must speak of the same budget."""
    import dataclasses

    def replay(budget: int) -> Any:
        return dataclasses.replace(later_context_report(), budget=budget)

    report = dataclasses.replace(context_report(), replay=replay)
    page = open_page(report.to_html(what_if=[6_000]))
    slider = page.get_by_role("slider", name="What if the budget were")
    assert slider.get_attribute("aria-valuetext") == "6,400 tokens"
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "6,000 tokens"
    assert "5,735 of 6,000 tokens are used" in page.locator(".mtn-lead").inner_text()
    page.get_by_role("searchbox").fill("rag-0001")
    assert "over quota" in page.locator(".mtn-decisions tbody tr").inner_text()
    slider.press("ArrowRight")
    assert "6,250 of 6,400 tokens are used" in page.locator(".mtn-lead").inner_text()
    assert "placed" in page.locator(".mtn-decisions tbody tr").first.inner_text()


def test_hostile_documents_are_shown_and_not_run(open_page: Open) -> None:
    page = open_page(hostile_report().to_html(previous=hostile_report()))
    assert page.title() == "</script><script>document.title='owned'</script>"
    assert page.locator("img, main script:not(.mtn-data)").count() == 0
    assert "<script>alert(1)</script>" in items(page)


def test_several_reports_in_one_notebook_work_each_for_itself(open_page: Open) -> None:
    from muntin.report.html import to_fragment

    both = to_fragment(context_report()) + to_fragment(conversation_report())
    page = open_page(f"<!doctype html><html lang=en><body><table><tr><td>theirs</table>{both}")
    first, second = page.locator(".muntin").all()
    second.get_by_role("searchbox").fill("recalled")
    assert second.get_by_role("status").inner_text() == "1 of 60 messages"
    assert first.get_by_role("status").inner_text() == "48 of 48 candidates"
    assert (
        page.locator("td:text('theirs')").evaluate("e => getComputedStyle(e).textAlign") != "right"
    )


def test_the_page_reads_without_scripts(open_page: Open) -> None:
    page = open_page(large_report(300).to_html(), script=False)
    assert page.locator(".mtn-decisions tbody tr").count() == 100
    assert page.get_by_text("200 more are listed when scripts are allowed.").is_visible()
    assert not page.locator(".mtn-search").is_visible()


def test_it_prints_all_rows_and_no_controls(open_page: Open) -> None:
    page = open_page(context_report().to_html())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".mtn-decisions tbody tr").count() == 48
    assert not page.locator(".mtn-chips").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")


def _read_report(passage: str) -> AssemblyReport:
    source = CallableSource(
        "rag", lambda _query: [Candidate(passage, 0.9, id="first"), Candidate("Next.", 0.8)]
    )
    return ContextBuilder().assemble("What?", sources=[source], budget=2000).report


def test_a_click_shows_the_whole_passage_and_the_search_covers_it(open_page: Open) -> None:
    """A preview of 120 characters does not show whether the passage has the answer."""
    passage = f"{'Beginning. ' * 30}\nThe lighthouse is here."
    page = open_page(_read_report(passage).to_html(texts=True))
    page.get_by_role("searchbox").fill("lighthouse")
    assert items(page) == ["first"]
    page.locator(".mtn-decisions tbody tr").first.click()
    dialog = page.locator(".mtn-dialog")
    assert dialog.is_visible()
    assert dialog.locator(".mtn-dialog-text").text_content() == passage
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.locator(".mtn-decisions tbody tr").first.focus()
    page.keyboard.press("Enter")
    assert dialog.is_visible()


def test_a_page_holds_whole_passages_only_when_asked(open_page: Open) -> None:
    """A report may go where the documents may not."""
    html = _read_report(f"{'Beginning. ' * 30}\nThe lighthouse is here.").to_html()
    assert "lighthouse" not in html
    page = open_page(html)
    page.locator(".mtn-decisions tbody tr").first.click()
    assert (page.locator(".mtn-dialog-text").text_content() or "").startswith("Beginning.")


def test_kept_only_prints_without_what_was_dropped(open_page: Open) -> None:
    """A printed list of a thousand dropped passages hides the few that were used."""
    page = open_page(context_report().to_html())
    page.evaluate("window.print = () => dispatchEvent(new Event('beforeprint'))")
    assert "dropped" in page.locator(".mtn-decisions tbody").inner_text()
    page.get_by_role("button", name="Print kept only").click()
    kinds = page.locator(".mtn-decisions tbody tr").evaluate_all(
        "all => all.map(r => r.dataset.kind)"
    )
    assert kinds
    assert "dropped" not in kinds
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "dropped" in page.locator(".mtn-decisions tbody").inner_text()


def test_text_that_runs_right_to_left_does_not_turn_its_row(open_page: Open) -> None:
    """An Arabic passage would otherwise move its tokens and its reason to the other side."""
    page = open_page(_read_report("تسليم الطرود (10) أيام.").to_html())
    cell = page.locator(".mtn-decisions tbody .mtn-text").first
    assert cell.get_attribute("dir") == "auto"
    assert cell.evaluate("c => getComputedStyle(c).direction") == "rtl"
    row = page.locator(".mtn-decisions tbody tr").first
    assert row.evaluate("r => getComputedStyle(r).direction") == "ltr"


@pytest.mark.parametrize("width", [400, 640])
def test_the_page_does_not_scroll_sideways_when_narrow(open_page: Open, width: int) -> None:
    """A reader on a phone must not push the page around to read a row."""
    page = open_page(_read_report("word " * 200).to_html(texts=True), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(".mtn-decisions tbody tr").first.click()
    box = page.locator(".mtn-dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
