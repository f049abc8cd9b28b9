"""During an outage of the broker the service waits, and nothing is lost or duplicated."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.integration.service.conftest import MakeService
from tests.integration.service.stream import CHUNK, Stream
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.real_broker import stoppable_broker
from tests.support.topics import Topics

PARTITIONS = 4
PATIENCE = 12.0
"""Seconds that a call waits: for one of each partition together longer than the watchdog does, so
that they must not wait for one another."""
SETTINGS = {
    # A transaction is held open until the broker has stopped, which may take a while.
    "kafka.transaction_timeout": 40.0,
    "kafka.call_timeout": PATIENCE,
    "service.watchdog_seconds": 45.0,
    "service.grace_seconds": 1.0,
    # Every partition stays here until it has tried.
    "kafka.properties": {"heartbeat.interval.ms": 300, "session.timeout.ms": 90_000},
}

PROGRAM = f"""
import sys, time
from pathlib import Path
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.service.configuration import load
from stream_fs.service.run import run
from stream_fs.service.process.signals import SignalHandler

path = Path(sys.argv[-1])
poll = KafkaConsumer.poll

def poll_for_all(self, timeout, max_records=None):
    # Two chunks for each, in one turn: every partition then has something to publish.
    found = {{}}
    while True:
        for partition, messages in poll(self, timeout, max_records).items():
            found[partition] = [*found.get(partition, ()), *messages]
        count = sum(map(len, found.values()))
        if not path.with_suffix(".hold").exists() or count in (0, {2 * CHUNK * PARTITIONS}):
            return found

KafkaConsumer.poll = poll_for_all

def hold(step):
    if step == "records sent" and path.with_suffix(".hold").exists():
        print("holding a transaction open", file=sys.stderr, flush=True)
        while path.with_suffix(".hold").exists():
            time.sleep(0.02)

with SignalHandler() as stopping:
    code = run(load(path, {{}}), stopping, crash_hook=hold)
sys.exit(code)
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """One that may be stopped."""
    with stoppable_broker(tmp_path) as broker:
        yield broker


def test_the_service_waits_during_an_outage(
    own_broker: Broker, tmp_path: Path, service: MakeService
) -> None:
    stream = Stream(Topics(own_broker.bootstrap), tmp_path, SETTINGS, partitions=PARTITIONS)
    stream.feed_all(2)
    one = service(stream, program=("-c", PROGRAM))
    one.wait_for(lambda: one.output.count("chunk committed") == 2 * PARTITIONS, "two chunks each")
    assert one.ready()

    hold = one.configuration.with_suffix(".hold")
    hold.touch()
    stream.feed_all(2, seed=1)
    one.wait_for_output("holding a transaction open")
    own_broker.stop()
    hold.unlink()
    one.wait_for(lambda: failures(one.output) >= PARTITIONS, "every partition tries")
    one.wait_for(lambda: waiting(one.get("/readyz")), "it is ready without a broker")
    assert one.get("/healthz") == (200, "ok\n")

    own_broker.start()
    one.wait_for(one.ready, "it is not ready again")
    stream.feed_all(1, seed=2)
    one.wait_for(lambda: published(stream) == 5 * PARTITIONS, "five chunks each")
    assert_undisturbed(stream, 5)

    # The grace time is too short for all snapshots; the others are not written.
    own_broker.stop()
    one.send(signal.SIGTERM)
    assert one.wait() == 0, one.output
    assert one.output.count("transaction given up") == 1


def waiting(page: tuple[int, str]) -> bool:
    """Whether it is not ready because no broker answers."""
    status, reason = page
    return status == 503 and reason.startswith("waiting for the broker: ")


def failures(said: str) -> int:
    return said.count("transaction retried") + said.count("transaction aborted")


def published(stream: Stream) -> int:
    return sum(map(len, stream.rankings().values()))
