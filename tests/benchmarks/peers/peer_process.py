"""The process of a program, and its rankings as a reader of committed records sees them."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from stream_fs.kafka import Topics
from stream_fs.service.configuration import load
from stream_fs.service.topics import topic_specs
from tests.benchmarks.capacity import dense
from tests.benchmarks.peers.catalogue import EVERY, SERVICE, STREAM, Program
from tests.benchmarks.peers.job import CHUNK, Job
from tests.benchmarks.serving import ROOT, SECONDS, processor_seconds
from tests.support.topics import flush

_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


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


@dataclass(frozen=True)
class PublishedRanking:
    """A ranking: its number, and by view the features in their order."""

    sequence: int
    order: Mapping[str, list[int]]


@dataclass(frozen=True)
class Timing:
    """Seconds of the chunks behind the tenth: wall-clock and processor time."""

    wall: float
    processor: float
    rankings: Sequence[PublishedRanking]


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
        flush(producer, SECONDS)
        yield topic


def run(bootstrap: str, case: Case, topic: str, program: Program) -> Timing:
    """Time one process, from an empty state to the last ranking."""
    with _program_run(bootstrap, case, topic, program) as program_run, program_run.process() as pid:
        program_run.read_until(lambda values: len(values) >= program.begin)
        start, spent = time.monotonic(), processor_seconds(pid)
        program_run.read_until(lambda values: len(values) == case.chunks)
        wall, processor = time.monotonic() - start, processor_seconds(pid) - spent
    share = (case.chunks - EVERY) / (case.chunks - program.begin)
    return Timing(
        wall * share, processor * share, [_read_ranking(value) for value in program_run.values]
    )


def run_twice(bootstrap: str, case: Case, topic: str, program: Program) -> list[PublishedRanking]:
    """All rankings of a process that is killed half way, and of the one that continues."""
    with _program_run(bootstrap, case, topic, program) as program_run:
        with program_run.process():
            program_run.read_until(lambda values: len(values) >= case.chunks // 2)
        with program_run.process():
            program_run.read_until(lambda values: _read_ranking(values[-1]).sequence == case.chunks)
    return [_read_ranking(value) for value in program_run.values]


class _ProgramRun:
    """A program with its folder, and the reader of its rankings (`values`)."""

    def __init__(self, command: Sequence[str], folder: Path, reader: Consumer) -> None:
        self._command = command
        self._log = folder / "log"
        self._reader = reader
        self._running: subprocess.Popen[bytes] | None = None
        self.values: list[bytes] = []

    @contextmanager
    def process(self) -> Iterator[int]:
        """Run the program until the end of the block; its process id."""
        environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": str(ROOT)}
        with self._log.open("wb") as to:
            self._running = subprocess.Popen(
                self._command, env=environment, cwd=self._log.parent, stderr=to, stdout=to
            )
        try:
            yield self._running.pid
        finally:
            self._running.kill()
            self._running.wait()

    def read_until(self, enough: Callable[[list[bytes]], bool]) -> None:
        """Read rankings until there are enough."""
        deadline = time.monotonic() + SECONDS
        while not self.values or not enough(self.values):
            message = self._reader.poll(0.1)
            if message is not None:
                if (error := message.error()) is not None:
                    raise KafkaException(error)
                self.values.append(message.value() or b"")
            ended = self._running is None or self._running.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(self._log.read_text(encoding="utf-8")[-2000:])


@contextmanager
def _program_run(bootstrap: str, case: Case, topic: str, program: Program) -> Iterator[_ProgramRun]:
    """A program with topics and a folder of its own, which are removed at the end."""
    name = f"run-{uuid.uuid4().hex[:8]}"
    compacted = {"cleanup.policy": "compact"}
    made = {f"{name}.rankings": compacted, f"{name}.state": compacted}
    is_service = program is SERVICE
    with TemporaryDirectory() as folder, _topics(bootstrap, name, {} if is_service else made):
        job = Job(
            bootstrap=bootstrap,
            run=name,
            topic=topic,
            rankings=f"{name}.rankings",
            folder=folder,
            origin=f"{STREAM}/{topic}/0",
            dimension=case.dimension,
            selector=case.selector,
            exactly_once=program.exactly_once,
            every=program.every,
        )
        command = program.command(job, Path(folder))
        if is_service:
            configuration = load(Path(command[-1]), {})
            topics = Topics(configuration.kafka_settings())
            topics.create(topic_specs(configuration, topics, partitions=1))
        with closing(_reader(job)) as reader:
            yield _ProgramRun(command, Path(folder), reader)


def _reader(job: Job) -> Consumer:
    """A reader of committed rankings, from the first one on."""
    reader = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": f"{job.run}-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    reader.assign([TopicPartition(job.rankings, 0, 0)])
    return reader


def _read_ranking(value: bytes) -> PublishedRanking:
    ranking = json.loads(value)
    order = {
        view["name"]: [feature["index"] for feature in view["features"]]
        for view in ranking["views"]
    }
    return PublishedRanking(ranking["sequence"], order)


@contextmanager
def _topics(bootstrap: str, mark: str, made: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Topics with one partition; at the end all topics with the mark in their name are deleted."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, num_partitions=1, config=dict(c)) for name, c in made.items()]
    for created in admin.create_topics(wanted).values() if wanted else ():
        created.result(SECONDS)
    try:
        yield
    finally:
        marked = [name for name in admin.list_topics(timeout=SECONDS).topics if mark in name]
        for deleted in admin.delete_topics(marked).values():
            deleted.result(SECONDS)
