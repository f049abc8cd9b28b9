"""The status page of a real service with a real broker, against what was published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from stream_fs.broker import Broker
from tests.browser.chromium import PATIENCE
from tests.browser.conftest import MakeVisit
from tests.browser.digits import CHUNK, SECTIONS, records
from tests.browser.screenshot import AGAIN, LARGEST, PICTURE, sources, take
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream
from tests.support.processes import wait_until
from tests.support.real_broker import stoppable_broker
from tests.support.schemas import errors_in
from tests.support.topics import Topics

expect.set_options(timeout=PATIENCE)

PARTITIONS = 2
SECRET = "correct-horse"
PROPERTIES = {"heartbeat.interval.ms": 300, "session.timeout.ms": 6000, "sasl.password": SECRET}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """One that may be stopped."""
    with stoppable_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def stream(own_broker: Broker, tmp_path: Path) -> Stream:
    changes = {
        **SECTIONS,
        "kafka.properties": PROPERTIES,
        # So that the ranking of the whole stream, too, comes to the last chunk.
        "checkpoint.every_chunks": 1,
    }
    return Stream(Topics(own_broker.bootstrap), tmp_path, changes, partitions=PARTITIONS)


@pytest.fixture
def service(stream: Stream) -> Iterator[Service]:
    service = Service(stream.file())
    yield service
    service.kill()


def feed(stream: Stream, chunks: int, seed: int, bad: float = 0.0) -> None:
    for number, partition in enumerate(stream.partitions):
        stream.feed(list(records(chunks * CHUNK, 10 * seed + number, bad)), partition)


def newest(stream: Stream) -> list[dict[str, Any]]:
    """The last published ranking of every partition."""
    published = stream.rankings()
    return [json.loads(published[place][-1].value or b"") for place in stream.partitions]


def of_partitions(page: Page) -> Locator:
    """The rankings of the partitions; that of the whole stream stands before them."""
    whole = page.get_by_role("heading", name="Whole stream")
    return page.locator("details.ranking").filter(has_not=whole)


def reach(page: Page, sequence: int) -> None:
    """Wait until the page shows this ranking of every partition."""
    for number in range(PARTITIONS):
        about = of_partitions(page).nth(number).locator("summary .note")
        expect(about).to_contain_text(f"ranking {sequence} ")


def assert_merged_comes_first(page: Page, stream: Stream, chunk: int) -> None:
    """Whether the newest ranking of the whole stream is there, before all others.

    It is the last one when all of its sources have come to this chunk.
    """

    def complete() -> bool:
        found = stream.merged()
        sources = found[-1]["sources"] if found else []
        return [source["sequence"] for source in sources] == [chunk] * PARTITIONS

    wait_until(complete, f"a merged ranking of chunk {chunk} of every partition")
    ranking = stream.merged()[-1]
    block = page.locator("details.ranking").first
    expect(block.get_by_role("heading", level=3)).to_have_text("Whole stream")
    expect(block.locator("summary .note")).to_contain_text(f"ranking {ranking['sequence']} ")
    if not block.evaluate("element => element.open"):
        block.locator("summary").press("Enter")
    for place, view in enumerate(ranking["views"]):
        card = block.locator(".view").nth(place)
        expect(card.get_by_role("heading", level=4)).to_have_text(view["name"])
        # It is of no chunk, so nothing is missing from it.
        trends = card.locator(".trend:visible .label").all_inner_texts()
        assert [trend.split()[0] for trend in trends] == ["Weight", "Top"]
        assert not card.locator(".imputed").is_visible()
        assert card.locator(".features .value").all_inner_texts() == [
            f"{feature['relevance']:.3f}" for feature in view["features"][:10]
        ]


def assert_shown(block: Locator, ranking: dict[str, Any]) -> None:
    """Compare the page with a published ranking."""
    if not block.evaluate("element => element.open"):
        block.locator("summary").press("Enter")
    expect(block.get_by_role("heading", level=3)).to_have_text(
        f"{ranking['topic']} / {ranking['partition']}"
    )
    for place, view in enumerate(ranking["views"]):
        card = block.locator(".view").nth(place)
        expect(card.get_by_role("heading", level=4)).to_have_text(view["name"])
        missing = ranking["records"]["missing"][view["name"]] / ranking["records"]["chunk"]
        overlap = ranking["selection"][view["name"]]["overlap"]
        weight, lacking, stable = card.locator(".trend-value").all_inner_texts()
        assert weight == f"{view['weight']:.3f}"
        assert float(lacking.removesuffix("%")) == pytest.approx(100 * missing, abs=0.051)
        assert float(stable.removesuffix("%")) == pytest.approx(100 * overlap, abs=0.051)
        imputed = ranking["records"]["imputed"][view["name"]]
        assert card.locator(".imputed").inner_text() == (
            f"{imputed['rows']} rows imputed · weight n/j {imputed['weight']:.3f}"
        )
        first = view["features"][:10]
        rows = card.locator(".features li")
        assert [row.get_attribute("data-index") for row in rows.all()] == [
            str(feature["index"]) for feature in first
        ]
        assert card.locator(".features .value").all_inner_texts() == [
            f"{feature['relevance']:.3f}" for feature in first
        ]
        names = [feature["name"] for feature in first if "name" in feature]
        assert not names or card.locator(".features .name").all_inner_texts() == names
        assert card.locator("canvas").is_visible() == (view["name"] != "profile")


def assert_status(status: dict[str, Any], rankings: list[dict[str, Any]]) -> None:
    """Compare `/api/status` with the published rankings, to the last bit."""
    assert errors_in("status", status) == []
    assert [found["sequence"] for found in status["partitions"]] == [
        ranking["sequence"] for ranking in rankings
    ]
    partitions = [one for one in status["rankings"] if one["scope"] == "partition"]
    for place, shown, ranking in zip(status["partitions"], partitions, rankings, strict=True):
        for key in ("scope", "topic", "partition", "sequence", "preset", "score", "model"):
            assert shown[key] == ranking[key]
        assert shown["records"] == ranking["records"]["total"]
        assert place["commit"]["offsets"] == ranking["offsets"]
        for view, published in zip(shown["views"], ranking["views"], strict=True):
            assert (view["name"], view["weight"]) == (published["name"], published["weight"])
            assert view["imputed"] == ranking["records"]["imputed"][view["name"]]
            assert view["overlap"] == ranking["selection"][view["name"]]["overlap"]
            assert view["top"] == len(published["features"])
            features = [{k: v for k, v in f.items() if v is not None} for f in view["features"]]
            assert features == published["features"][:10]
            if view["shape"] is not None:
                assert {
                    f["index"]: pytest.approx(f["relevance"]) for f in published["features"]
                } == {f["index"]: view["scores"][f["index"]] for f in published["features"]}


def test_the_page_of_a_service(
    own_broker: Broker, stream: Stream, service: Service, visit: MakeVisit, tmp_path: Path
) -> None:
    feed(stream, 3, seed=0)
    there = visit(service.address)
    page = there.page
    expect(page.locator("#state")).to_have_text("Ready")
    reach(page, 3)
    rankings = newest(stream)
    for number, ranking in enumerate(rankings):
        assert_shown(of_partitions(page).nth(number), ranking)
    assert_status(json.loads(service.get("/api/status")[1]), rankings)
    for path in ("/", "/api/status"):
        assert SECRET not in service.get(path)[1], path

    picture = tmp_path / "page.png"
    take(there, picture)
    assert 10_000 < picture.stat().st_size < LARGEST

    # It goes on by itself; bad records are shown by reason.
    feed(stream, 1, seed=1, bad=0.05)
    feed(stream, 1, seed=2)
    reach(page, 4)
    letters = sum(map(len, stream.letters().values()))
    assert letters > 0
    expect(page.locator("#figures div", has_text="Dead letters").locator(".value")).to_have_text(
        str(letters)
    )
    expect(page.get_by_role("table", name="Dead letters")).to_contain_text("malformed")

    # Without a broker it says so, and shows what it knows.
    own_broker.stop()
    expect(page.locator("#state")).to_have_text("Waiting for the broker")
    expect(page.locator("#notice")).to_contain_text("Waiting for the broker: ")
    expect(page.locator("#partitions-states")).to_have_text(f"{PARTITIONS} waiting for the broker")
    rows = page.get_by_role("table", name="partitions").locator("td[data-label=State]")
    expect(rows).to_have_text(["Waiting for the broker"] * PARTITIONS)
    expect(of_partitions(page)).to_have_count(PARTITIONS)

    # And with the broker it is as before.
    own_broker.start()
    expect(page.locator("#state")).to_have_text("Ready")
    expect(page.locator("#partitions-states")).to_have_text(f"{PARTITIONS} running")
    expect(page.locator("#notice")).to_be_hidden()
    feed(stream, 1, seed=3)
    reach(page, 5)
    rankings = newest(stream)
    for number, ranking in enumerate(rankings):
        assert_shown(of_partitions(page).nth(number), ranking)
    assert_status(json.loads(service.get("/api/status")[1]), rankings)
    assert_merged_comes_first(page, stream, 5)


def test_the_picture_of_the_readme_is_small_and_of_this_page() -> None:
    assert PICTURE.stat().st_size < LARGEST
    with Image.open(PICTURE, formats=["PNG"]) as picture:
        shown = picture.info.get("sources")
    assert shown == sources(), f"the page has changed since its picture was taken: {AGAIN}"
