"""More than usual: a burst, slow updates, one hot partition among empty ones, the largest records.

The group must not lose sight of a member, its memory has a bound that follows from what is
configured, and what it publishes under load is what one publishes that finds everything there.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

from stream_fs.broker import Broker, running_broker
from stream_fs.wire.encoding import encode_record
from tests.campaign.account import Account, AddArgument
from tests.integration.topics import Topics
from tests.recovery import zombies
from tests.recovery.comparison import Published
from tests.recovery.content import CHUNK, CLUSTERS, DIMENSIONS, Content, good_records
from tests.recovery.figures import peak, usage
from tests.recovery.journey import Journey
from tests.recovery.life import Life
from tests.recovery.stage import Stage, stage
from tests.recovery.starting import Fresh, Start
from tests.recovery.subscriber import problems

MEMBER = '"session.timeout.ms" = 10000, "max.poll.interval.ms" = 60000'
"""Which is soon missed: by default only after 45 s, or 5 minutes without a poll."""
QUEUE_MEGABYTES = 64 + 50
"""Read ahead by the client (queued.max.messages.kbytes), and one answer more (fetch.max.bytes)."""
QUEUE_RECORDS, RECORD_OVERHEAD = 100_000, 512
"""Records that it reads ahead at most (queued.min.messages), and bytes that each costs besides."""
MODELS_HELD = 5
"""The model, the one that an update makes of it and what it needs for that, the snapshot of that in
bytes, and once more with the client until the broker has it."""
CHUNKS_HELD = 6
"""The records of a chunk in single precision, once more as they are handed on, and in double."""
SMALL, WIDE = 500, 20
"""Records in a chunk of small ones, and of large ones."""
WIDE_DIMENSIONS = {"a": 120_000, "b": 120_000}
WIDEST = 970_000
"""Bytes that a record may have there: little more than one has."""


@dataclass(frozen=True)
class Load:
    """Records for one partition of a topic, and how the stream is configured."""

    name: str
    chunks: int
    chunk: int
    values: Iterable[bytes]
    partitions: int = 1
    hot: int = 0
    dimensions: Mapping[str, int] | None = None
    settings: Sequence[str] = ()

    @property
    def views(self) -> Mapping[str, int]:
        return self.dimensions or DIMENSIONS

    def bound(self, snapshot: float) -> float:
        """Megabytes beyond those of an idle process, where a snapshot has so many of them."""
        features = sum(self.views.values())
        chunk = max(self.chunk, 20 * CLUSTERS) * features * 4
        queued = min(QUEUE_RECORDS * RECORD_OVERHEAD, self.chunks * self.chunk * RECORD_OVERHEAD)
        bytes_held = CHUNKS_HELD * chunk + queued
        return QUEUE_MEGABYTES + MODELS_HELD * snapshot + bytes_held / 1e6


def burst(count: int) -> Load:
    """So many small records at once."""
    some = list(itertools.islice(good_records(0), 5000))
    return Load(
        f"a burst of {count} records",
        chunks=count // SMALL,
        chunk=SMALL,
        values=itertools.islice(itertools.cycle(some), count),
    )


def hot(partitions: int, chunks: int) -> Load:
    """One partition has everything, the others nothing."""
    return Load(
        f"1 hot partition of {partitions}",
        chunks=chunks,
        chunk=SMALL,
        values=itertools.islice(good_records(1), chunks * SMALL),
        partitions=partitions,
        hot=partitions // 2,
    )


def wide(chunks: int) -> Load:
    """Records of almost a megabyte, and one of the first is larger than we take."""

    def values() -> Iterator[bytes]:
        rng = np.random.default_rng(2)
        for number in range(20 * CLUSTERS + (chunks - 1) * WIDE):
            group = rng.integers(CLUSTERS)
            views = {
                name: rng.random(dimension, np.float32) + group * (np.arange(dimension) % 2)
                for name, dimension in WIDE_DIMENSIONS.items()
            }
            yield encode_record(views, f"r{number}")
            if number == 5:
                yield encode_record(
                    views, "x" * (WIDEST + 10_000 - 4 * sum(map(len, views.values())))
                )

    return Load(
        "records of 0.96 MB, 1 above the limit",
        chunks=chunks,
        chunk=WIDE,
        values=values(),
        dimensions=WIDE_DIMENSIONS,
        settings=("output.top=50", f"limits.record_bytes={WIDEST}", "checkpoint.every_chunks=2"),
    )


def bear(broker: Broker, folder: Path, load: Load, pause: float, start: Start = Fresh) -> Account:
    """A process that waits for the load and gets it, and another one that finds it."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("load", partitions=load.partitions)
    content = Content(topic, load.chunks)
    settings = (f"chunk.records={load.chunk}", *load.settings)

    def journey(name: str) -> Journey:
        return Journey(
            broker.bootstrap, content, folder, name, start, MEMBER,
            settings=settings, dimensions=load.views,
        )  # fmt: skip

    wrong: list[str] = []
    shown = ""
    rankings = letters = None
    try:
        with journey("live") as live, journey("later") as later:
            life = live.start()
            life.until(lambda: len(life.log("task is running")) == load.partitions, "its work")
            time.sleep(pause)
            idle = usage(life.pid).megabytes
            began = time.monotonic()
            pour(broker.bootstrap, topic, load)
            found, wrong, most = followed(live, life)
            seconds = time.monotonic() - began
            expected, more, backlog = followed(later, later.start())
            wrong += more
            wrong += problems(message.value for message in found.rankings)
            saved = max(line.get("snapshot_bytes", 0) for line in life.log("chunk committed"))
            bound = load.bound(saved / 1e6)
            most = max(most, backlog)
            rate = load.chunks * load.chunk / seconds
            shown = f"{most:.0f} MB of at most {idle:.0f} + {bound:.0f}; {rate:.0f} records/s"
            if most > idle + bound:
                wrong.append(f"more memory than it may have: {shown}")
        rankings, letters = found.against(expected)
    except (AssertionError, TimeoutError) as error:
        wrong.append(str(error))
    finally:
        topics.remove()
    some = letters if letters is not None and letters.compared else None
    return Account(load.name, 1, rankings, some, shown, tuple(wrong))


def pour(bootstrap: str, topic: str, load: Load) -> None:
    """Write everything as fast as the broker takes it."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in load.values:
        while True:
            try:
                producer.produce(topic, value, partition=load.hot)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(60)
    assert not left, f"{left} records were not written"


def followed(journey: Journey, life: Life) -> tuple[Published, list[str], float]:
    """To the end of the stream: what is published, what was wrong, the most memory it had."""
    for goal in range(1, journey.content.chunks + 1, 20):  # patience is for each step of these
        journey.reach(life, goal)
    journey.reach(life, journey.content.chunks)
    wrong = expelled(life)
    most = peak(life.pid)
    return journey.finish(life), wrong, most


def expelled(life: Life) -> list[str]:
    """Whether the group has taken anything from a member that is still at work."""
    signs = ("partition given up", "taken over by another owner")
    return [f"{sign}, without need" for sign in signs if life.log(sign)]


def slow_down(staged: Stage, chunks: int, seconds: float) -> Account:
    """Updates take so long that those of one poll take longer than a member may be silent."""
    silence = 500 / CHUNK * seconds
    wrong: list[str] = []
    with staged.journey("slow", zombies.NAMELESS) as journey:
        try:
            life = journey.start(more=["--slow", str(seconds)])
            journey.reach(life, chunks)
            wrong = expelled(life)
            life.stop()
            found = journey.complete()
        except (AssertionError, TimeoutError) as error:
            wrong.append(str(error))
            found = Published(journey.rankings.messages, journey.letters.messages)
    rankings, letters = found.against(staged.expected)
    shown = f"a poll's chunks take {silence:.0f} s, {zombies.SESSION_SECONDS} s of silence allowed"
    return Account(
        f"updates slower by {seconds:g} s", chunks, rankings, letters, shown, tuple(wrong)
    )


def run(options: Namespace) -> Iterator[Account]:
    """One load after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-load-") as name,
        running_broker() as broker,
    ):
        folder = Path(name)
        yield bear(broker, folder, burst(options.burst), options.burst_pause)
        with stage(broker, folder, options.slow_chunks + 20, Fresh) as staged:
            yield slow_down(staged, options.slow_chunks, seconds=0.5)
        yield bear(broker, folder, hot(32, options.hot_chunks), 0)
        yield bear(broker, folder, wide(options.wide_chunks), 0)


def arguments(add: AddArgument) -> None:
    add("--burst", type=int, default=1_000_000, help="records that come at once")
    add("--burst-pause", type=float, default=30.0, help="seconds of nothing before them")
    add("--slow-chunks", type=int, default=100, help="chunks with slow updates")
    add("--hot-chunks", type=int, default=200, help="chunks in the only partition that has any")
    add("--wide-chunks", type=int, default=20, help="chunks of the largest records")
