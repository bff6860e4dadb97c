"""The report's page in a browser: what people do with it, by mouse and by keyboard, and whether everybody can.

Skipped where there is no Chromium, or not the `browser` extra; no browser is downloaded. Set `KESCO_CHROMIUM` to use
another than the one on PATH.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from by_hand import FunctionResult, Op, diamond, region, result

from kesco.ir.timeline import Bar, Lane, Timeline
from kesco.model.forecast import Prices
from kesco.model.timeline import timeline
from kesco.pipeline import Compilation
from kesco.report.page import page, timeline_page
from kesco.report.page.index import Entry, index

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SOURCE = b"// a page\n" * 30 + b"  first<<<1, 1>>>(a);\n  left<<<1, 1>>>(a, b);\n" + b"// the end\n" * 30
TEXT = SOURCE.replace(b"<<<1, 1>>>", b"<<<1, 1, 0, kesco->stream[0]>>>").replace(
    b"  left",
    b"  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for first (RAW on a)\n  left",
)


def runs_of(function: FunctionResult) -> tuple[Timeline, ...]:
    serial = timeline("serial", function.region, Prices())
    return serial, timeline("concurrent", function.region, Prices(), function.schedule, function.plan)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra 'browser' is not installed")
    pytest.importorskip("axe_playwright_python", reason="the extra 'browser' is not installed")
    program = os.environ.get("KESCO_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=program, args=_QUIET, headless=True)
        yield made
        made.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    first = result(region(diamond()))
    second = result(region([Op("update", r="a b", w="b"), Op("other", r="c", w="c d")], loop=(2, 1)))
    span = replace(second.region.span, line=40)
    functions = (replace(second, region=replace(second.region, span=span)), first)
    text = page(Compilation("a.cu", SOURCE, TEXT, functions, (), timelines=tuple(map(runs_of, functions))))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text, "utf-8")
    return path


Opened = Callable[..., "Page"]


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Opened]:
    """Opens the page, or another file; the test fails if the page says anything on its console."""
    said: list[str] = []
    contexts = []

    def open_(path: Path = file, **settings: object) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1300, "height": 850}, **settings))
        made: Page = contexts[-1].new_page()
        made.on("console", lambda message: said.append(message.text))
        made.on("pageerror", lambda error: said.append(str(error)))
        made.on("request", lambda request: None if request.url.startswith("file:") else said.append(request.url))
        made.goto(path.as_uri())
        return made

    yield open_
    for one in contexts:
        one.close()
    assert said == []


def focused(page: Page) -> str:
    return page.evaluate(
        "document.activeElement.id || document.activeElement.dataset.op || document.activeElement.tagName"
    )


def test_a_mouse_finds_reasons_and_places(opened: Opened) -> None:
    page = opened()
    assert page.locator("#function").input_value() == "1"  # the function with the most operations comes first
    node = page.locator("#g1-4")
    node.hover()
    assert page.locator("#tip").inner_text().splitlines() == ["last, stream 1", "r b", "r c", "r a", "w d"]
    assert page.locator("#gv-1 .near").count() == 7  # three dependences, the operations they begin at, itself
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden() and page.locator(".near").count() == 0
    page.locator("#e1-3-4").dispatch_event("click")
    details = page.locator("#details")
    assert details.locator("h2").inner_text() == "right → last"
    assert "RAW on c: right writes it, last reads it" in details.inner_text()
    assert (
        details.locator("p").first.inner_text()
        == {
            "wait": "A wait for an event: stream 1 waits for stream 0",
            "stream": "No wait: right and last are on stream 1",
        }[(page.locator("#e1-3-4").get_attribute("class") or "").split()[2]]
    )
    assert "right: a.cu:13:3, stream 1" in details.inner_text()
    details.get_by_role("button", name="right", exact=True).click()
    assert details.locator("h2").inner_text() == "right" and focused(page) == "g1-3"
    details.get_by_role("button", name="Timeline").click()
    assert page.locator("#tab-timeline").get_attribute("aria-selected") == "true"
    assert page.locator("#panel-graph").is_hidden() and page.locator('.bar-item.sel[data-op="1-3"]').count() == 2
    page.select_option("#function", "0", force=True)
    assert page.locator('[data-function="1"] .bar-item').first.is_hidden()


def test_a_drawing_can_be_zoomed_moved_and_simplified(opened: Opened) -> None:
    page = opened()
    tools, svg = page.locator('[data-zooms="gv-1"]'), page.locator("#gv-1 > svg")
    before = svg.bounding_box()["width"]
    for _ in range(6):
        tools.get_by_role("button", name="Zoom into").click()
    assert svg.bounding_box()["width"] == pytest.approx(before * 1.25**6, rel=0.01)
    view = page.locator("#gv-1").bounding_box()
    place = view["x"] + 20, view["y"] + 200
    page.mouse.move(*place)
    page.mouse.down()
    page.mouse.move(place[0] - 5, place[1] - 90, steps=3)
    page.mouse.up()
    assert page.evaluate("document.getElementById('gv-1').scrollTop") > 60
    for _ in range(16):
        tools.get_by_role("button", name="Zoom out").click()
    assert page.locator("#gv-1 .small").first.is_hidden()
    tools.get_by_role("button", name="Fit").click()
    assert svg.bounding_box()["width"] == pytest.approx(before, rel=0.01)
    assert page.locator("#gv-1 .item.removed").first.is_visible()
    tools.get_by_role("button", name="Waits not needed").click()
    assert page.locator("#gv-1 .item.removed").first.is_hidden()
    page.locator("#tab-timeline").click()
    wide = page.locator("#r1-1-v > svg")
    before = wide.bounding_box()["width"]
    page.locator('[data-zooms="r1-1-v"]').get_by_role("button", name="Zoom into").click()
    assert wide.bounding_box()["width"] == pytest.approx(before * 1.5, rel=0.01)


def test_a_keyboard_reaches_everything(opened: Opened) -> None:
    page = opened()
    page.locator("#tab-graph").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "tab-timeline"
    page.keyboard.press("Home")
    page.locator("#gv-1").focus()
    page.keyboard.press("Tab")
    assert focused(page) == "g1-1"
    page.keyboard.press("ArrowDown")
    below = focused(page)
    assert below in ("g1-2", "g1-3") and page.locator("#tip").is_visible()
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('.box')).strokeWidth") == "3px"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert focused(page) == "details" and page.locator("#details").is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Close details"
    page.keyboard.press("Escape")
    assert page.locator("#details").is_hidden() and focused(page).startswith("g1-")
    assert page.locator("#gv-1 [tabindex='0']").count() == 1
    width = page.locator("#gv-1 > svg").bounding_box()["width"]
    page.keyboard.press("+")
    assert page.locator("#gv-1 > svg").bounding_box()["width"] > width


def test_arrows_go_from_bar_to_bar_however_narrow(opened: Opened, tmp_path: Path) -> None:
    bars = tuple(Bar("a rather long name of a kernel", "kernel", n * 2.0, n * 2.0 + 1) for n in range(200))
    path = tmp_path / "timeline.html"
    path.write_text(timeline_page("run", [], [Timeline("run", (Lane("stream 7", bars),), 400.0)]), "utf-8")
    page = opened(path)
    page.locator("#m-0-v").focus()
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#tip").inner_text() == "a rather long name of a kernel\n1.00 µs, from 6.00 µs on"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert "from 4.00 µs on" in page.locator("#details").inner_text()


def test_source_lines_explain_themselves_and_unchanged_ones_are_folded(opened: Opened) -> None:
    page = opened()
    page.locator("#tab-source").click()
    assert page.locator("label:has(#function)").is_hidden()
    assert page.locator("#l1").is_hidden() and page.locator("#l31").is_visible()
    page.get_by_role("button", name="26 unchanged lines").first.click()
    assert page.locator("#l1").is_visible()
    page.locator("#next").click()
    assert page.locator("#details").inner_text().splitlines()[-1] == "Runs on stream 0."
    page.locator("#next").click()
    assert "Stream 1 pauses here until event 0 has passed, and the host goes on: wait for first" in (
        page.locator("#details").inner_text()
    )
    page.locator("#previous").click()
    page.keyboard.press("ArrowDown")
    assert page.locator("#tip").inner_text().startswith("Stream 1 pauses")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_somebody_chooses(opened: Opened, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    first, button = page.evaluate(colour), page.locator("#theme")
    assert button.inner_text() == {"light": "Dark", "dark": "Light"}[scheme]
    page.emulate_media(color_scheme={"light": "dark", "dark": "light"}[scheme])
    assert page.evaluate(colour) != first
    page.emulate_media(color_scheme=scheme)
    button.click()
    assert page.evaluate(colour) != first and button.inner_text() == scheme.capitalize()
    button.click()
    assert page.evaluate(colour) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 420])
def test_everybody_can_use_it(browser: Browser, file: Path, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # what looks at the page is a script that the page itself does not allow
    made = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 850}, bypass_csp=True)
    made.goto(file.as_uri())
    for name in ("graph", "timeline", "source", "findings"):
        made.click(f"#tab-{name}")
        items = made.locator(f"#panel-{name} .item:not(.edge):visible")
        if items.count():
            items.first.click(force=True)
        found = Axe().run(made).response
        assert len(found["passes"]) > 15
        assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found["violations"]] == []
    sideways = made.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert sideways <= 0
    made.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_page_of_traces_and_the_index(
    opened: Opened, browser: Browser, tmp_path: Path, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    bars = tuple(Bar("kernel", "copy" if n % 2 else "kernel", n * 2.0, n * 2.0 + 1, critical=n == 3) for n in range(9))
    table = ("Numbers", ("", "serial"), (("span", "18 µs"),))
    texts = {
        "traces": timeline_page("run", [], [Timeline("run", (Lane("stream 9", bars, 9),), 18.0)], [table]),
        "index": index("project", "build", [Entry("a.cu", "a.cu.html", "rewritten", "1", "4", "2", "K206"),
                                            Entry("b.cu", "", "failed", codes="K100")]),
    }  # fmt: skip
    for name, text in texts.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, "utf-8")
        made = opened(path, color_scheme=scheme)
        assert made.locator("table").is_visible()
        looked_at = browser.new_page(color_scheme=scheme, bypass_csp=True)
        looked_at.goto(path.as_uri())
        found = Axe().run(looked_at).response
        assert len(found["passes"]) > 8
        assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found["violations"]] == []
        looked_at.close()
    assert made.get_by_role("link", name="a.cu").get_attribute("href") == "a.cu.html"


def test_a_line_in_what_was_lost_leads_to_the_source(opened: Opened) -> None:
    page = opened()
    page.locator("#tab-findings").click()
    link = page.locator("#panel-findings a.line").first
    number = link.inner_text().removeprefix("line ")
    link.click()
    assert page.locator("#tab-source").get_attribute("aria-selected") == "true"
    assert page.locator(f"#l{number}").is_visible()
    page.locator("#tab-graph").click()
    dash = page.get_by_role("button", name="Waits not needed").locator("visible=true")
    before = dash.evaluate("one => getComputedStyle(one).color")
    dash.click()
    page.mouse.move(2, 2)
    assert dash.evaluate("one => getComputedStyle(one).color") != before  # pressed or not can be seen


def test_without_a_script_all_of_it_is_there(opened: Opened) -> None:
    page = opened(java_script_enabled=False)
    for place in ("#g0-1", "#g1-4", "#panel-timeline", "#panel-findings", "#l1"):
        assert page.locator(place).is_visible()


def test_a_text_that_is_a_script_is_not_run(opened: Opened, tmp_path: Path) -> None:
    evil = "</script><script>console.log('run')</script><img src=x onerror=console.log('run')>"
    function = result(region([Op(evil, w="a"), Op("k", r="a", w=evil.replace(" ", ""))]))
    path = tmp_path / "evil.html"
    path.write_text(
        page(Compilation(evil, evil.encode(), evil.encode(), (function,), (), timelines=(runs_of(function),)))
    )
    made = opened(path)
    made.locator("#g0-1").click()
    assert evil in made.locator("#details h2").inner_text()
