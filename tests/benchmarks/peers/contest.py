"""The service against its peers, by the clock on the wall.

Everybody consumes the same topic, which was filled before, cuts it into chunks of 500, calls the
same selector, publishes the same rankings and keeps its state so that a restart continues. Each is
a process of its own, and a reader of committed records looks at the clock when rankings come: the
time is that from the tenth ranking to the last, so that starting up does not count, and neither
does who commits in tens. They take turns, and every ranking of every run is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from stream_fs.broker import Broker
from stream_fs.kafka import Topics
from stream_fs.service.configuration import load
from stream_fs.service.topic_plans import topic_plans
from tests.benchmarks.capacity import dense
from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.contestants import EVERY, PEERS, SERVICE, STREAM, Contestant
from tests.benchmarks.peers.job import CHUNK, Job
from tests.benchmarks.serving import ROOT, SECONDS, processor_seconds

Orders = list[dict[str, list[int]]]
"""By ranking and view, the features in their order."""


@dataclass(frozen=True)
class Case:
    """A stream: its records, its chunks, and the selector's parameters."""

    name: str
    dimension: int
    """Features of each of two views; four bytes each."""
    chunks: int
    """A multiple of ten, as some commit in tens."""
    selector: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{8 * self.dimension / 1000:g} kB, {self.name}"


DEFAULT: Final[dict[str, Any]] = {"clusters": 10}
LIGHT: Final[dict[str, Any]] = {
    "clusters": 2,
    "min_iterations": 1,
    "max_iterations": 1,
    "reassignments": 0,
    "neighbours": 1,
    "sketch": 0,
}
"""The least that the selector can be asked for, so that the work beside it shows: two clusters, one
iteration, no reassignments, one neighbour, ranking by score alone."""

CASES: Final = (
    Case("default selector", 125, 60, DEFAULT),
    Case("default selector", 1250, 30, DEFAULT),
    Case("light selector", 125, 210, LIGHT),
    Case("light selector", 1250, 110, LIGHT),
)


@dataclass(frozen=True)
class Finish:
    """Seconds from the tenth ranking to the last: on the wall, and of processors."""

    wall: float
    processor: float
    orders: Orders


@dataclass
class Results:
    """Everybody's finishes in a case, turn by turn."""

    case: Case
    finishes: dict[str, list[Finish]] = field(default_factory=dict)

    def add(self, name: str, finish: Finish) -> None:
        """Note a finish. Raises where its rankings are not those of the first one."""
        first = next(iter(self.finishes.values()), [finish])[0]
        for number, (found, expected) in enumerate(zip(finish.orders, first.orders, strict=True)):
            if found != expected:
                raise RuntimeError(f"{self.case}: ranking {number + 1} of {name} is another one")
        self.finishes.setdefault(name, []).append(finish)

    def comparisons(self, peers: Sequence[Contestant]) -> Iterator[Comparison]:
        """By the clock on the wall: what the contest is about."""
        for peer in peers:
            ours, theirs = (
                tuple(finish.wall for finish in self.finishes[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison(
                "peers", peer.name, str(self.case), "ours", "theirs", ours, theirs, peer.goal
            )

    def processors(self, peers: Sequence[Contestant]) -> Iterator[Comparison]:
        """By the time of processors: a busy machine changes it less, and waiting is free."""
        for peer in peers:
            ours, theirs = (
                tuple(finish.processor for finish in self.finishes[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison("", peer.name, str(self.case), "ours", "theirs", ours, theirs)


def peers(broker: Broker, turns: int) -> list[Comparison]:
    """The service against everybody who can be had here; the ratio is ours over theirs."""
    there = [peer for peer in PEERS if peer.missing is None]
    found = [contest(broker.bootstrap, case, there, turns) for case in CASES]
    return [comparison for results in found for comparison in results.comparisons(there)]


def contest(bootstrap: str, case: Case, contestants: Sequence[Contestant], turns: int) -> Results:
    """So many turns of the service and these; who begins goes round."""
    results = Results(case)
    everybody = [SERVICE, *contestants]
    with filled_topic(bootstrap, case) as topic:
        for turn in range(turns):
            first = turn % len(everybody)
            for contestant in everybody[first:] + everybody[:first]:
                finish = run(bootstrap, case, topic, contestant)
                results.add(contestant.name, finish)
                print(
                    f"{case}, turn {turn + 1}, {contestant.name}: "
                    f"{finish.wall:.2f} s, {finish.processor:.2f} s of processors",
                    file=sys.stderr,
                )
    return results


@contextmanager
def filled_topic(bootstrap: str, case: Case) -> Iterator[str]:
    """A topic with the records of a case."""
    topic = f"peers-{uuid.uuid4().hex[:8]}"
    records = list(dense(case.dimension, "msgpack"))
    with _topics(bootstrap, topic, {topic: {}}):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
        for number in range(case.chunks * CHUNK):
            while True:
                try:
                    producer.produce(topic, records[number % len(records)], partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(SECONDS) == 0
        yield topic


def run(bootstrap: str, case: Case, topic: str, contestant: Contestant) -> Finish:
    """One life of a contestant, from an empty state to the last ranking."""
    name = f"run-{uuid.uuid4().hex[:8]}"
    with TemporaryDirectory() as kept:
        folder = Path(kept)
        job = Job(
            bootstrap=bootstrap,
            run=name,
            topic=topic,
            rankings=f"{name}.rankings",
            folder=kept,
            origin=f"{STREAM}/{topic}/0",
            dimension=case.dimension,
            selector=case.selector,
            exactly_once=contestant.exactly_once,
            every=contestant.every,
        )
        command = contestant.command(job, folder)
        compacted = {"cleanup.policy": "compact"}
        made = {job.rankings: compacted, f"{name}.state": compacted}
        with _topics(bootstrap, name, {} if contestant is SERVICE else made):
            if contestant is SERVICE:
                configuration = load(Path(command[-1]), {})
                topics = Topics(configuration.kafka_settings())
                topics.create(topic_plans(configuration, topics, partitions=1))
            return _timed(command, folder / "log", job, case.chunks)


@contextmanager
def _topics(bootstrap: str, mark: str, made: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Topics with one partition; at the end all are gone that have the mark in their name."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, num_partitions=1, config=dict(c)) for name, c in made.items()]
    for created in admin.create_topics(wanted).values() if wanted else ():
        created.result(SECONDS)
    try:
        yield
    finally:
        ours = [name for name in admin.list_topics(timeout=SECONDS).topics if mark in name]
        for deleted in admin.delete_topics(ours).values():
            deleted.result(SECONDS)


def _timed(command: Sequence[str], log: Path, job: Job, chunks: int) -> Finish:
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment = {**os.environ, **one_thread, "PYTHONPATH": str(ROOT)}
    reader = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": f"{job.run}-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    reader.assign([TopicPartition(job.rankings, 0, 0)])
    with log.open("wb") as to:
        process = subprocess.Popen(command, env=environment, cwd=log.parent, stderr=to, stdout=to)
    try:
        values: list[bytes] = []
        marks: list[tuple[float, float]] = []
        deadline = time.monotonic() + SECONDS
        while len(values) < chunks:
            for message in reader.consume(chunks, 0.02):
                if (error := message.error()) is not None:
                    raise KafkaException(error)
                values.append(message.value() or b"")
            if len(marks) < (len(values) >= EVERY) + (len(values) == chunks):
                marks.append((time.monotonic(), processor_seconds(process.pid)))
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command}: {log.read_text(encoding='utf-8')[-2000:]}")
    finally:
        process.kill()
        process.wait()
        reader.close()
    start, end = marks
    return Finish(end[0] - start[0], end[1] - start[1], [_order(value) for value in values])


def _order(value: bytes) -> dict[str, list[int]]:
    views = json.loads(value)["views"]
    return {view["name"]: [feature["index"] for feature in view["features"]] for view in views}
