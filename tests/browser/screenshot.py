"""`python -m tests.browser.screenshot`: the picture of the status page that the README shows.

A real service, fed with digits by a real broker, in a real browser.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from PIL import Image

from stream_fs.broker import running_broker
from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.service.configuration import load, toml
from stream_fs.service.topic_plans import topic_plans
from tests.browser.chromium import ABSENT, PROGRAM, Visit, running_browser
from tests.browser.digits import CHUNK, SECTIONS, records
from tests.integration.service.services import ROOT, Service
from tests.integration.topics import PATIENCE_SECONDS

PICTURE: Final = ROOT / "deploy" / "status-page.png"
PARTITIONS: Final = 3
CHUNKS: Final = 40
WIDTH, HEIGHT = 1280, 900


def main() -> None:
    """Make the picture; with `--all` also those of the dark scheme and of a phone, beside it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("picture", type=Path, nargs="?", default=PICTURE)
    arguments.add_argument("--all", action="store_true")
    given = arguments.parse_args()
    if PROGRAM is None:
        sys.exit(ABSENT)
    with tempfile.TemporaryDirectory() as folder, digits(Path(folder)) as service:
        address = service.address
        with running_browser() as browser:
            visit = Visit(browser, address, viewport={"width": WIDTH, "height": HEIGHT})
            take(visit, given.picture)
            if given.all:
                dark = Visit(
                    browser, address, color_scheme="dark", viewport=visit.page.viewport_size
                )
                take(dark, given.picture.with_suffix(".dark.png"), whole=True)
                phone = {"width": 390, "height": 844}
                take(
                    Visit(browser, address, viewport=phone, device_scale_factor=2),
                    given.picture.with_suffix(".phone.png"),
                    whole=True,
                )


def take(visit: Visit, path: Path, *, whole: bool = False) -> None:
    """A picture in few colours, which makes it small."""
    visit.page.locator(".view").first.wait_for()
    visit.page.wait_for_timeout(1000)
    taken = Image.open(io.BytesIO(visit.page.screenshot(full_page=whole)))
    taken.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size} bytes")


@contextmanager
def digits(folder: Path) -> Iterator[Service]:
    """A service that has read some chunks of every partition, and waits for more."""
    with running_broker(log_dir=folder) as broker:
        path = folder / "digits.toml"
        sections = {
            "stream": {"name": "digits", "topics": ["digits"]},
            "kafka": {"bootstrap": broker.bootstrap},
            **SECTIONS,
        }
        path.write_text("".join(f"{name} = {toml.value(v)}\n" for name, v in sections.items()))
        configuration = load(path, {})
        topics = KafkaTopics(configuration.kafka_settings())
        topics.create(topic_plans(configuration, topics, partitions=PARTITIONS))
        service = Service(path)
        try:
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            for partition in range(PARTITIONS):
                count = CHUNKS * CHUNK + CHUNK // 3 * (partition + 1)
                for value in records(count, seed=partition, bad=0.002):
                    producer.produce("digits", value, partition=partition)
                    producer.poll(0)
            producer.flush(PATIENCE_SECONDS)
            done = PARTITIONS * (CHUNKS - 1)
            service.comes_to(lambda: service.said.count("chunk committed") >= done, "chunks")
            yield service
        finally:
            service.kill()


if __name__ == "__main__":
    main()
