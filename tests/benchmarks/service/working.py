"""The pipeline in this process, on a real broker, with either way to publish."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from stream_fs.kafka import KafkaTransport
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Transport
from stream_fs.pipeline.transaction import Runtime
from stream_fs.pipeline.worker import Worker
from stream_fs.service.process.executor import CommitThreads
from tests.benchmarks.service.input_topics import TIMEOUT, Settings, Stream, Workspace
from tests.benchmarks.service.records import Mix
from tests.support.topics import flush

WARM_CHUNK = 40
WARM: Settings = {
    "chunk": {"records": WARM_CHUNK},
    "selector": {"clusters": 2, "min_iterations": 1, "max_iterations": 1, "reassignments": 0},
    "output": {"linger_seconds": 0.0},
}
"""A stream whose time is that of its transactions."""


def process_chunks(stream: Stream, transport: Transport) -> float:
    """Seconds that all chunks behind the first take, from commit to commit."""
    commits: list[float] = []

    def observe(event: events.Event) -> None:
        if isinstance(event, events.ChunkCommitted):
            commits.append(time.perf_counter())

    worker = Worker(
        stream.configuration.stream.topics,
        stream.configuration.stream_settings(),
        transport,
        # Transactions run concurrently with the next update, as in the service.
        Runtime(time.monotonic, observe, executor=CommitThreads()),
        jitter=lambda: 1.0,
        grace=0.0,
    )
    deadline = time.monotonic() + TIMEOUT
    try:
        while len(commits) < stream.chunks:
            assert time.monotonic() < deadline, f"{len(commits)} of {stream.chunks} chunks"
            worker.run_once()
    finally:
        worker.stop()
    return commits[-1] - commits[0]


def warm_up(workspace: Workspace, chunks: int) -> None:
    """Let the broker commit so many small chunks.

    Its just-in-time compiler takes a core for a minute or two, which would slow down only the
    programs that are measured with the broker.
    """
    mix = Mix(dimension=20, views=2)
    with (
        workspace.source(mix, (1 + chunks) * WARM_CHUNK) as source,
        workspace.stream(source, WARM) as stream,
    ):
        process_chunks(stream, transactional(stream))


def transactional(stream: Stream) -> KafkaTransport:
    """The transport of the service."""
    configuration = stream.configuration
    states = configuration.state_topics()
    return KafkaTransport(
        configuration.kafka_settings(),
        configuration.stream.name,
        states.__getitem__,
        chunk_records=configuration.chunk.records,
    )


class PlainTransport(KafkaTransport):
    """The same without transactions: records are produced and flushed, and visible one by one."""

    def __init__(self, stream: Stream) -> None:
        configuration = stream.configuration
        settings = configuration.kafka_settings()
        states = configuration.state_topics()
        super().__init__(
            settings,
            configuration.stream.name,
            states.__getitem__,
            chunk_records=configuration.chunk.records,
        )
        # Without the properties that exactly-once delivery needs.
        self._plain = {
            "bootstrap.servers": settings.bootstrap,
            "linger.ms": 0,
            "log_level": 3,  # its topics are deleted before it is closed
            "message.max.bytes": settings.transactional_producer("any")["message.max.bytes"],
        }

    def publisher(
        self,
        partition: Partition,  # noqa: ARG002  # a plain producer owns nothing
        *,
        legacy: bool = False,  # noqa: ARG002  # likewise
    ) -> KafkaPublisher:
        return _PlainPublisher(Producer(self._plain))


class _PlainPublisher(KafkaPublisher):
    """A publisher without transactions."""

    def __init__(self, producer: Producer) -> None:
        self._plain = producer

    def acquire(self) -> bool:
        return True

    def begin(self) -> None:
        pass

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        offsets = [-1] * len(records)

        def delivered(place: int, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets[place] = message.offset() or 0

        for place, record in enumerate(records):
            self._plain.produce(
                record.topic,
                record.value,
                record.key,
                -1 if record.partition is None else record.partition,
                on_delivery=partial(delivered, place),
                headers=list(record.headers),
            )
        flush(self._plain, TIMEOUT)
        return offsets

    def commit(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def close(self) -> None:
        flush(self._plain, TIMEOUT)
