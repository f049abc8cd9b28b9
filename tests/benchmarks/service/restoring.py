"""Restoring a snapshot, against reading its bytes with a bare client."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from typing import TypeVar

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.model import Model, progress_record, snapshot_records
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.state_owner import locate
from stream_fs.selector import State, initial_state, read_chunk, update
from tests.benchmarks.measure import Comparison, Goal
from tests.benchmarks.service.input_topics import TIMEOUT, Stream, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.working import transactional

TWICE = Goal("<", 2)
_BYTES_PER_FEATURE = 768
"""Of a snapshot with ten clusters, about."""
T = TypeVar("T")


def restoring(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """From a new client to the model, against from a new client to the last byte."""
    top = {"output": {"top": 10}}  # all would not fit into a message
    mix = Mix(plan.snapshot_bytes // _BYTES_PER_FEATURE, views=1)
    with workspace.source(mix, 1) as source, workspace.stream(source, top) as stream:
        size, count = _save(stream)
        taken = plan.turns_of(
            {"restore": partial(_restored, stream), "raw": partial(_raw, stream, count)},
        )
    yield Comparison(
        "restoring",
        "progress and snapshot restored",
        f"{size / 1e6:.1f} MB in {count} records",
        "restore",
        "the same bytes read",
        taken["restore"],
        taken["raw"],
        TWICE,
    )


def _save(stream: Stream) -> tuple[int, int]:
    """Commit the state of a stream as the service does; bytes and records of the snapshot."""
    settings = stream.configuration.stream_settings()
    partition = Partition(stream.source.topic, 0)
    model = Model(_trained(stream), 1, None, settings.chunk_policy)
    records, size = snapshot_records(settings, partition, model, 0)
    with closing(transactional(stream).publisher(partition)) as publisher:
        while not publisher.acquire():
            pass
        publisher.begin()
        place = SnapshotPlace(0, model.state.chunk, publisher.send(records)[0])
        progress = Progress(
            chunk=model.state.chunk,
            from_offset=0,
            next_offset=1,
            snapshots=(place,),
            digest=None,
            fingerprint=settings.params.fingerprint,
            owner=settings.owner,
        )
        publisher.send([progress_record(settings, partition, progress)])
        publisher.commit()
    return size, len(records)


def _trained(stream: Stream) -> State:
    """A model after one chunk."""
    chosen = stream.configuration.params()
    rng = np.random.default_rng(7)
    rows = {
        view.name: rng.random((chosen.first_chunk_rows, view.dimension), np.float32)
        for view in chosen.views
    }
    state, _ = update(initial_state(chosen), read_chunk(chosen.views, rows))
    return state


def _restored(stream: Stream) -> float:
    settings = stream.configuration.stream_settings()
    partition = Partition(stream.source.topic, 0)
    transport = transactional(stream)
    with closing(transport.state_log(partition)) as log:
        log.end()  # the administrative client of the service is connected already
    begin = time.perf_counter()
    with closing(transport.state_log(partition)) as log:
        found = _ended(locate(log, partition, settings.owner, transport.group_offset))
        progress = found.progress
        assert progress is not None
        restored, passed_over = _ended(
            read_usable_snapshot(log, found.keys, progress, settings.params)
        )
        seconds = time.perf_counter() - begin
    assert passed_over is None
    assert restored.state.chunk == progress.chunk
    return seconds


def _ended(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _raw(stream: Stream, count: int) -> float:
    """From a new client to the last record of the snapshot, without decoding."""
    settings = stream.configuration.kafka_settings()
    (topic,) = stream.configuration.state_topics().values()
    begin, found = time.perf_counter(), 0
    consumer = Consumer(settings.state_reader())
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        while found < count:
            found += sum(m.error() is None for m in consumer.consume(count - found, 1.0))
            assert time.perf_counter() < begin + TIMEOUT
        return time.perf_counter() - begin
