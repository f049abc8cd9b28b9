"""The status page in a real browser, over generated events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.service.observability.status_document import Health
from tests.browser.chromium import PATIENCE
from tests.browser.conftest import MakeVisit
from tests.browser.status_server import READY, StatusServer, configured

expect.set_options(timeout=PATIENCE)

INSPECTION = Path(__file__).with_name("inspection.js").read_text(encoding="utf-8")
HOSTILE = '<img src=x onerror="window.fooled=1">'
VIEWS: list[dict[str, Any]] = [
    {"name": "pixels", "dimension": 12, "shape": [3, 4]},
    {"name": HOSTILE, "dimension": 3, "names": [f"{HOSTILE}{n}" for n in range(3)]},
    {
        "name": "words" * 20,
        "dimension": 30,
        "names": [f"averyveryverylongword{n}" * 5 for n in range(30)],
    },
]
FIRST = Partition("pumps", 0)
WIDE = {"width": 1280, "height": 900}
PHONES = [{"width": 360, "height": 740}, {"width": 390, "height": 844}]


@pytest.fixture
def server(tmp_path: Path) -> StatusServer:
    """One partition after three chunks."""
    made = StatusServer(configured(tmp_path, {"views": VIEWS}))
    made.take(FIRST)
    for chunk in (1, 2, 3):
        made.publish(FIRST, chunk, {"malformed": 2} if chunk == 2 else None)
    return made


@pytest.fixture
def address(server: StatusServer) -> Iterator[str]:
    with server.serving() as address:
        yield address


def overflow(page: Page) -> int:
    """Pixels that stick out to the right."""
    # Not beyond innerWidth: a phone shows a page that is too wide in small.
    assert page.viewport_size is not None
    width = int(page.evaluate("document.documentElement.scrollWidth"))
    return width - page.viewport_size["width"]


def open_everything(page: Page) -> None:
    page.locator("details.ranking").first.wait_for()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.locator(".view").first.wait_for()


def test_the_page_shows_the_status(server: StatusServer, address: str, visit: MakeVisit) -> None:
    page = visit(address).page
    expect(page).to_have_title("pumps: ready")
    expect(page.get_by_role("heading", level=1)).to_have_text("pumps")
    row = page.get_by_role("table", name="partitions").get_by_role("row").nth(1)
    cells = dict(
        zip(
            page.get_by_role("table", name="partitions")
            .get_by_role("columnheader")
            .all_inner_texts(),
            row.locator("th, td").all_inner_texts(),
            strict=True,
        )
    )
    assert cells["Partition"] == "pumps / 0"
    assert cells["State"] == "Running"
    assert (cells["Records"], cells["Bad"], cells["Chunk"]) == ("302", "2", "20 / 100")
    assert (cells["Lag"], cells["Ranking"], cells["Offsets"]) == ("40", "3", "200–300")
    assert cells["Snapshot"] == "1, 2.0 kB"
    expect(row.get_by_role("meter")).to_have_attribute("aria-valuenow", "20")
    letters = page.get_by_role("table", name="Dead letters").get_by_role("row").nth(1)
    expect(letters).to_contain_text("malformed")
    expect(letters).to_contain_text("pumps / 0, offsets 100–200")
    last = server.publish(FIRST, 4)
    expect(page.locator(".ranking .note").first).to_contain_text("ranking 4 · 400 records")
    shown = page.locator(".view").first.locator("li .value").all_inner_texts()
    assert shown == [
        f"{last.ranking['pixels'].scores[i]:.3f}" for i in last.ranking["pixels"].order[:10]
    ]


def test_names_are_escaped(address: str, visit: MakeVisit) -> None:
    page = visit(address).page
    expect(page.get_by_role("heading", level=4).nth(1)).to_have_text(HOSTILE)
    expect(page.locator(".view").nth(1).locator("li .name").first).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 1, "the icon"
    assert page.evaluate("window.fooled") is None


@pytest.mark.parametrize("viewport", PHONES, ids=lambda size: str(size["width"]))
def test_a_phone_never_scrolls_sideways(
    server: StatusServer, address: str, visit: MakeVisit, viewport: dict[str, int]
) -> None:
    long = "abrokerwithaverylongname" * 10
    server.health = Health(alive=True, ready=False, reason=f"waiting for the broker: {long}")
    page = visit(address, viewport=viewport, is_mobile=True, has_touch=True).page
    open_everything(page)
    assert overflow(page) == 0
    page.locator(".ranking > summary").first.tap()
    expect(page.locator(".view").first).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONES[1]], ids=["wide", "phone"])
def test_the_page_passes_the_accessibility_inspection(
    server: StatusServer, address: str, visit: MakeVisit, scheme: str, viewport: dict[str, int]
) -> None:
    """Structure, alternatives in text, and contrast."""
    states: list[events.Phase] = ["taking_over", "restoring", "replaying", "running"]
    for number, phase in enumerate(states, start=1):
        server.observe(events.PhaseChanged(Partition("pumps", number), phase))
    server.observe(events.Fenced(Partition("pumps", 5), "epoch", final=False))
    server.observe(events.RestoreFailed(Partition("pumps", 6), "timed out"))
    page = visit(address, viewport=viewport, color_scheme=scheme).page
    open_everything(page)
    assert page.evaluate(INSPECTION) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 24)"
    assert dark == (scheme == "dark")


def test_partitions_are_labelled_as_those_of_this_process(
    server: StatusServer, address: str, visit: MakeVisit
) -> None:
    page = visit(address).page
    value = page.locator("#figures div", has_text="Partitions here").locator(".value")
    expect(value).to_have_text("1")
    server.observe.stream_partitions({FIRST.topic: 4})
    expect(value).to_have_text("1 of 4")
    heading = page.get_by_role("heading", name="Partitions of this process")
    expect(heading).to_be_visible()


def test_the_page_is_usable_by_keyboard_alone(
    server: StatusServer, address: str, visit: MakeVisit
) -> None:
    server.take(Partition("pumps", 1))
    server.publish(Partition("pumps", 1), 1)
    page = visit(address, viewport=WIDE).page
    page.locator(".view").first.wait_for()
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() == 0:
            break
        reached.append(focused.inner_text() or str(focused.get_attribute("aria-label")))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", reached[-1]
    assert reached[0] == "Skip to the rankings"
    assert [text.split("\n")[0] for text in reached[1:5]] == [
        "Partitions of this process",
        "pumps / 0",
        "pumps / 1",
        "pumps / 0",
    ]
    assert any("arrow keys" in text for text in reached)
    assert reached[-1] == "/readyz"

    # A ranking is opened from its partition, read cell by cell, and closed.
    page.get_by_role("link", name="pumps / 1").press("Enter")
    second = page.locator("details.ranking").nth(1)
    expect(second.locator("summary")).to_be_focused()
    assert second.evaluate("element => element.open")
    page.keyboard.press("Tab")
    expect(second.locator("canvas").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    best = server.observe.status(READY, None).rankings[1].views[0].features[0]
    expect(second.locator(".readout").first).to_contain_text(f"{best.relevance:.3f} at [")
    for key in ["ArrowUp"] * 3 + ["ArrowLeft"] * 4 + ["ArrowRight"]:
        page.keyboard.press(key)
    expect(second.locator(".readout").first).to_contain_text("at [0, 1], feature 1")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(second.locator(".view").first).to_be_hidden()


def test_open_blocks_and_focus_are_kept(
    server: StatusServer, address: str, visit: MakeVisit
) -> None:
    server.take(Partition("pumps", 1))
    server.publish(Partition("pumps", 1), 1)
    page = visit(address).page
    second = page.locator("details.ranking").nth(1)
    second.locator("summary").press("Enter")
    server.publish(Partition("pumps", 1), 2)
    server.take(Partition("earlier", 0))
    server.publish(Partition("earlier", 0), 1)
    third = page.locator("details.ranking").nth(2)
    expect(third.locator("summary .note")).to_contain_text("ranking 2")
    expect(third.locator(".view").first).to_be_visible()
    expect(third.locator("summary")).to_be_focused()
    server.observe(events.PartitionReleased(FIRST))
    expect(page.locator("details.ranking")).to_have_count(2)
    expect(page.locator("details.ranking").nth(1).locator("summary")).to_be_focused()


def test_many_partitions_are_summarised(
    server: StatusServer, address: str, visit: MakeVisit
) -> None:
    for number in range(1, 32):
        server.take(Partition("pumps", number))
        server.publish(Partition("pumps", number), 1)
    server.observe(events.PhaseChanged(Partition("pumps", 32), "restoring"))
    page = visit(address, viewport=WIDE).page
    expect(page.locator("#partitions-states")).to_have_text("32 running, 1 restoring")
    assert page.locator("#partitions").evaluate("element => element.open") is False
    expect(page.locator("details.ranking")).to_have_count(32)
    assert page.locator(".view").count() == len(VIEWS), "what is closed is not drawn"
    page.locator("#partitions > summary").press("Enter")
    expect(page.get_by_role("table", name="partitions").get_by_role("row")).to_have_count(34)
    assert overflow(page) == 0


def test_the_page_shows_since_when_it_is_outdated(server: StatusServer, visit: MakeVisit) -> None:
    with server.serving() as address:
        there = visit(address)
        page = there.page
        expect(page.locator("#state")).to_have_text("Ready")
        expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#notice")).to_contain_text(
        "Not up to date: the service has not answered since"
    )
    expect(page).to_have_title("Not up to date")
    expect(page.locator("body")).to_have_class("old")
    server.publish(FIRST, 4)
    with server.serving():
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator(".ranking .note").first).to_contain_text("ranking 4")
        expect(page.locator("body")).not_to_have_class("old")
    # The browser itself logs the refused connection.
    assert all("Failed to load resource" in error for error in there.console_errors)
    there.console_errors.clear()


def test_a_hidden_page_sends_no_request(address: str, visit: MakeVisit) -> None:
    def prepare(page: Page) -> None:
        page.clock.install()
        page.add_init_script(
            "window.away = false;"
            "Object.defineProperty(document, 'hidden', { get: () => window.away })"
        )

    there = visit(address, prepare)
    page = there.page
    expect(page.locator("#state")).to_have_text("Ready")

    def asked() -> int:
        return sum(url.endswith("/api/status") for url in there.requests)

    page.evaluate("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
    before = asked()
    page.clock.run_for(120_000)
    assert asked() == before
    with page.expect_response("**/api/status"):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    with page.expect_response("**/api/status"):
        page.clock.run_for(2_000)


def test_reduced_motion_is_respected(address: str, visit: MakeVisit) -> None:
    def moving(page: Page) -> int:
        page.locator(".view").first.wait_for()
        script = (
            "[...document.querySelectorAll('*')]"
            ".filter(one => getComputedStyle(one).transitionDuration !== '0s').length"
        )
        return int(page.evaluate(script))

    assert moving(visit(address, reduced_motion="reduce").page) == 0
    assert moving(visit(address).page) > 0
