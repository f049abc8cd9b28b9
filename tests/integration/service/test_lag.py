"""The lag behind transactional producers, whose markers and aborted records are never delivered."""

from __future__ import annotations

import json

from tests.integration.kafka.backend import KafkaBackend
from tests.integration.service.conftest import MakeService
from tests.integration.service.scraping import Scraped
from tests.integration.service.services import Service
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks

PROGRAM = """
import sys, time
from pathlib import Path
from stream_fs.service.configuration import load
from stream_fs.service.run import run
from stream_fs.service.process.signals import SignalHandler

path = Path(sys.argv[-1])

def hold(step):
    if step == "records sent":
        while path.with_suffix(".hold").exists():
            time.sleep(0.02)

with SignalHandler() as stopping:
    code = run(load(path, {}), stopping, crash_hook=hold)
sys.exit(code)
"""
"""The service, which does not end a transaction while there is a certain file."""


def lag(service: Service, stream: Stream) -> int | None:
    """The lag of the only partition in the metrics, if the status page agrees."""
    measured = Scraped(service, stream)("stream_fs_lag_records")
    partitions = json.loads(service.get("/api/status")[1])["partitions"]
    shown = [partition["lag"] for partition in partitions]
    return shown[0] if shown == [measured] else None


def test_the_lag_is_zero_when_everything_was_read_and_positive_otherwise(
    stream: Stream, service: MakeService
) -> None:
    backend = KafkaBackend(stream.topics)
    producer = backend.transactional_producer()
    values = chunks(2)
    for written, commit in ((values[:FIRST], True), (values[:5], False), (values[FIRST:], True)):
        backend.transaction(producer, stream.only, written, commit=commit)
    for count in (3, 2):
        backend.transaction(producer, stream.only, values[:count], commit=False)
    one = service(stream, program=("-c", PROGRAM))
    one.wait_for(lambda: one.output.count("chunk committed") == 2, "two chunks")
    one.wait_for(lambda: lag(one, stream) == 0, "the lag of a partition that was read")

    hold = one.configuration.with_suffix(".hold")
    hold.touch()

    def more_arrives_than_is_read() -> bool:
        """With a transaction of its own open, the service pauses the partition after a while."""
        backend.transaction(producer, stream.only, values[:CHUNK], commit=True)
        return (lag(one, stream) or 0) > CHUNK

    one.wait_for(more_arrives_than_is_read, "a lag")
    hold.unlink()
    one.wait_for(lambda: lag(one, stream) == 0, "the lag of a backlog that was read")
