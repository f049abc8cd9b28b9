"""`python -m tests.browser.screenshot`: the picture of the status page that the README shows.

A real service, fed with digits by a real broker, in a real browser.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, Self

from confluent_kafka import Producer
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from stream_fs.broker import Broker, running_broker
from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.service.configuration import load, problems
from stream_fs.service.topics import topic_specs
from tests.browser.chromium import ABSENT, PROGRAM, Visit, running_browser
from tests.browser.digits import CHUNK, SECTIONS, records
from tests.integration.service.services import ROOT, Service
from tests.support.topics import TIMEOUT_SECONDS

PICTURE: Final = ROOT / "deploy" / "status-page.png"
SOURCES: Final = ROOT / "stream_fs" / "service" / "page"
AGAIN: Final = "make setup && .venv/bin/python -m tests.browser.screenshot"
LARGEST: Final = 200_000
"""Bytes."""
PARTITIONS: Final = 3
PORTIONS: Final = 8
CHUNKS: Final = 5
"""In a portion; the partitions are merged after it."""
WINDOW: Final = {"width": 1200, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
SCALE: Final = 2


def main() -> None:
    """Make the picture; with `--all` also those of the dark scheme and of a phone, beside it."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("picture", type=Path, nargs="?", default=PICTURE)
    arguments.add_argument("--all", action="store_true")
    given = arguments.parse_args()
    if PROGRAM is None:
        sys.exit(ABSENT)
    looks: dict[str, dict[str, Any]] = {".png": {"viewport": WINDOW}}
    if given.all:
        looks[".dark.png"] = {"viewport": WINDOW, "color_scheme": "dark"}
        looks[".phone.png"] = {"viewport": PHONE}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_broker(log_dir=Path(folder)) as broker,
        running_browser() as browser,
        Digits(Path(folder), broker) as digits,
    ):
        for suffix, look in looks.items():
            digits.feed(CHUNK)
            path = given.picture.with_suffix(suffix)
            visit = Visit(browser, digits.service.address, device_scale_factor=SCALE, **look)
            take(visit, path)
            print(f"{path}: {path.stat().st_size} bytes")


def take(visit: Visit, path: Path) -> None:
    """A picture of the whole page in few colours, which makes it small."""
    visit.page.locator(".view").first.wait_for()
    taken = Image.open(io.BytesIO(visit.page.screenshot(full_page=True, animations="disabled")))
    about = PngInfo()
    about.add_text("sources", sources())
    few = taken.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True, pnginfo=about)


def sources() -> str:
    """A digest of the files that the page is made of: the picture says which ones it shows."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.iterdir()):
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()


class Digits:
    """A service that has read some chunks of every partition, and waits for more."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        path = folder / "digits.toml"
        sections = {
            "stream": {"name": "digits", "topics": ["digits"]},
            "kafka": {"bootstrap": broker.bootstrap},
            "merge": {"every_seconds": 0.5},
            "checkpoint": {"every_chunks": CHUNKS},
            **SECTIONS,
        }
        path.write_text(
            "".join(f"{name} = {problems.toml_value(v)}\n" for name, v in sections.items())
        )
        configuration = load(path, {})
        topics = KafkaTopics(configuration.kafka_settings())
        topics.create(topic_specs(configuration, topics, partitions=PARTITIONS))
        # Silent: it outlives the broker.
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._seed = 0
        self._chunks = 0
        self.service = Service(path)

    def __enter__(self) -> Self:
        for _ in range(PORTIONS):
            self.feed(CHUNKS * CHUNK)
        return self

    def __exit__(self, *_: object) -> None:
        self.service.kill()

    def feed(self, count: int) -> None:
        """So many records more for every partition, and some for open chunks; until published."""
        for partition in range(PARTITIONS):
            self._seed += 1
            for value in records(count + 25 * partition, self._seed, bad=0.002):
                self._producer.produce("digits", value, partition=partition)
                self._producer.poll(0)
        self._producer.flush(TIMEOUT_SECONDS)
        # The bad ones fill no chunk, so the last one may not be full.
        self._chunks += PARTITIONS * (count // CHUNK)
        self.service.wait_for(
            lambda: self.service.output.count("chunk committed") >= self._chunks - PARTITIONS,
            "the chunks are not published",
        )
        self.service.wait_for(self._settled, "there is nothing to look at yet")

    def _settled(self) -> bool:
        """Whether all snapshots are in the ranking of the whole stream, and all lags are known."""
        status = json.loads(self.service.get("/api/status")[1])
        partitions = status["partitions"]
        if any(one["lag"] is None or one["snapshot"] is None for one in partitions):
            return False
        kept = CHUNK * sum(one["snapshot"]["sequence"] for one in partitions)
        first = status["rankings"][0]
        return bool(first["scope"] == "merged" and first["records"] >= kept)


if __name__ == "__main__":
    main()
