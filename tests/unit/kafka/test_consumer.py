"""Partitions that are silent, slow or full of gaps, and closing during an outage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from stream_fs.errors import RetriableError
from stream_fs.kafka import consumer as module
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.message_batch import MessageBatch
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition

BUSY, QUIET = Partition("in", 0), Partition("in", 1)


class Record:
    """A message of the client."""

    def __init__(self, partition: Partition, offset: int) -> None:
        self._partition, self._offset = partition, offset

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return self._partition.topic

    def partition(self) -> int:
        return self._partition.number

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"value"


class End(Record):
    """The event at the end of a partition."""

    def error(self) -> KafkaError:  # type: ignore[override]  # an event in place of a record
        return KafkaError(KafkaError._PARTITION_EOF)


class FakeClient:
    """A consumer that delivers scripted messages and records seeks and assignments."""

    def __init__(self) -> None:
        self.arriving: list[Record] = []
        self.seeks: dict[Partition, list[int]] = defaultdict(list)
        self.cached: dict[Partition, int] = {}
        self.assigned: dict[Partition, int] = {}
        self.refusing: set[Partition] = set()

    def subscribe(self, _: Sequence[str], **callbacks: Any) -> None:
        self.assign = callbacks["on_assign"]

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        self.assigned |= {Partition(p.topic, p.partition): p.offset for p in places}

    def incremental_unassign(self, places: Sequence[TopicPartition]) -> None:
        for place in places:
            del self.assigned[Partition(place.topic, place.partition)]

    def pause(self, _: Sequence[TopicPartition]) -> None: ...

    def resume(self, _: Sequence[TopicPartition]) -> None: ...

    def list_topics(self, *_: object) -> None: ...

    def seek(self, where: TopicPartition) -> None:
        partition = Partition(where.topic, where.partition)
        if partition in self.refusing:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.seeks[partition].append(where.offset)

    def consume(self, _: int, __: float) -> list[Record]:
        arriving, self.arriving = self.arriving, []
        return arriving

    def unsubscribe(self) -> None: ...

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*partition) for partition in self.assigned]

    def close(self) -> None: ...

    def get_watermark_offsets(self, where: TopicPartition, **_: object) -> tuple[int, int]:
        partition = Partition(where.topic, where.partition)
        if partition not in self.cached:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, self.cached[partition]


class FakeOffsets:
    """The ends of partitions as the broker reports them, in place of `OffsetReader`."""

    def __init__(self) -> None:
        self.ends_by_partition: dict[Partition, int] = {BUSY: 0, QUIET: 0}
        self.answers = True

    def within(self, _: float) -> FakeOffsets:
        return self

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        if not self.answers:
            raise RetriableError("no answer")
        return {partition: self.ends_by_partition[partition] for partition in partitions}

    last_stable_offsets = ends


class IgnoredAssignment:
    def assigned(self, partitions: Sequence[Partition]) -> None: ...

    def revoked(self, partitions: Sequence[Partition]) -> None: ...

    def lost(self, partitions: Sequence[Partition]) -> None: ...


class Stage:
    """A consumer with two assigned partitions, a fake client and a fake clock."""

    def __init__(self, patch: pytest.MonkeyPatch, *, answers: bool = True) -> None:
        self.now = 1000.0
        self.beats = 0
        self.client, self.ends = FakeClient(), FakeOffsets()
        self.ends.answers = answers
        patch.setattr(module, "input_consumer", lambda *_: self.client)
        patch.setattr("stream_fs.kafka.consumer.time.monotonic", lambda: self.now)
        settings = ClientSettings("nowhere:1", "g")
        self.consumer = KafkaConsumer(
            settings,
            ["in"],
            IgnoredAssignment(),
            cast(OffsetReader, self.ends),
            chunk_records=1,
            heartbeat=self._beat,
        )
        places = [TopicPartition(*BUSY), TopicPartition(*QUIET)]
        self.client.assign(self.client, places)

    def _beat(self) -> None:
        self.beats += 1

    def poll(
        self, *records: tuple[Partition, int], seconds: float = 0.1
    ) -> dict[Partition, list[int]]:
        """The offsets that are delivered of these records."""
        return self.receive(*[Record(*one) for one in records], seconds=seconds)

    def receive(self, *messages: Record, seconds: float = 0.1) -> dict[Partition, list[int]]:
        """The offsets that are delivered of these messages and events."""
        self.now += seconds
        self.client.arriving = list(messages)
        batches = cast(Mapping[Partition, MessageBatch], self.consumer.poll(0.0))
        return {partition: list(batch.offsets()) for partition, batch in batches.items()}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_what_was_delivered_is_not_delivered_again(stage: Stage) -> None:
    stage.consumer.resume(BUSY, 6)
    assert stage.poll((BUSY, 6), (BUSY, 9)) == {BUSY: [6, 9]}
    assert stage.poll((BUSY, 9)) == {}
    assert stage.poll((BUSY, 9), (BUSY, 10)) == {BUSY: [10]}


def test_seeks_without_an_answer_are_repeated_at_growing_intervals(stage: Stage) -> None:
    stage.consumer.resume(QUIET, 5)
    times = []
    for _ in range(200):
        before = len(stage.client.seeks[QUIET])
        stage.poll(seconds=1.0)
        if len(stage.client.seeks[QUIET]) > before:
            times.append(stage.now - 1000.0)
    pauses = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    assert pauses[:4] == [6.0, 11.0, 21.0, 41.0]
    assert set(stage.client.seeks[QUIET]) == {5}


def running(stage: Stage) -> None:
    for partition in (BUSY, QUIET):
        stage.consumer.resume(partition, 0)
    stage.poll((BUSY, 0), (QUIET, 0))


def test_a_stalled_partition_is_noticed_beside_a_busy_one(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {BUSY: 1, QUIET: 1}
    stage.ends.ends_by_partition[QUIET] = 9
    for number in range(1, 12):
        stage.poll((BUSY, number), seconds=1.0)
    assert stage.client.seeks[QUIET] == [0, 1]
    assert stage.client.seeks[BUSY] == [0]
    assert stage.consumer.known_end(QUIET) == 9
    stage.poll((QUIET, 1))
    assert stage.consumer.known_end(QUIET) == 1  # from the client's fetch again


def test_a_partition_at_its_end_is_not_stalled(stage: Stage) -> None:
    running(stage)
    stage.ends.ends_by_partition[QUIET] = 1
    for _ in range(20):
        stage.poll(seconds=1.0)
    assert stage.client.seeks[QUIET] == [0]


def test_a_gap_is_verified_by_a_second_answer(stage: Stage) -> None:
    running(stage)
    assert stage.poll((BUSY, 50), (BUSY, 51)) == {}
    assert stage.client.seeks[BUSY] == [0, 1]
    assert stage.poll((BUSY, 1), (BUSY, 2)) == {BUSY: [1, 2]}  # they had been skipped
    assert stage.poll((BUSY, 50)) == {}
    assert stage.poll((BUSY, 50)) == {BUSY: [50]}


def test_gaps_of_transaction_markers_cost_one_seek(stage: Stage) -> None:
    running(stage)
    delivered = 0
    for number in range(2, 200, 2):
        for _ in range(2):
            if stage.poll((BUSY, number)):
                delivered += 1
                break
    assert delivered == 99
    assert stage.client.seeks[BUSY] == [0, 1]


def test_at_the_end_nothing_is_unread_until_the_broker_reports_a_later_one(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {BUSY: 1, QUIET: 3}
    assert stage.consumer.unread(QUIET, 1) == 2  # may be transaction markers
    assert stage.receive(End(QUIET, 3)) == {}
    assert stage.consumer.unread(QUIET, 1) == 0
    stage.client.cached[QUIET] = 8  # an open transaction
    assert stage.consumer.unread(QUIET, 1) == 0
    stage.consumer.pause(QUIET)
    stage.ends.ends_by_partition[QUIET] = 9
    for _ in range(12):
        stage.poll(seconds=1.0)
    assert stage.consumer.unread(QUIET, 1) == 6


def test_after_going_back_the_end_is_not_reached(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {BUSY: 1, QUIET: 9}
    stage.receive(End(QUIET, 9))
    stage.consumer.resume(QUIET, 0)
    assert stage.consumer.unread(QUIET, 0) == 9


def test_the_end_behind_an_unverified_gap_is_not_reached(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {BUSY: 1, QUIET: 9}
    assert (
        stage.receive(Record(QUIET, 5), End(QUIET, 9)) == {}
    )  # those from 1 on may have been skipped
    assert stage.client.seeks[QUIET] == [0, 1]
    assert stage.consumer.unread(QUIET, 1) == 8
    assert stage.receive(Record(QUIET, 5), End(QUIET, 9)) == {QUIET: [5]}  # they do not exist
    assert stage.consumer.unread(QUIET, 6) == 0


def test_the_end_of_a_partition_does_not_count_as_a_message(stage: Stage) -> None:
    running(stage)
    before = stage.consumer._batch_sizer.next
    stage.receive(End(QUIET, 1))
    assert stage.consumer._batch_sizer.next == before


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Partitions that were assigned during an outage, with unknown ends."""
    return Stage(monkeypatch, answers=False)


def test_the_client_never_looks_up_an_end_itself(unanswered: Stage) -> None:
    assert unanswered.client.assigned == {BUSY: 0, QUIET: 0}


def test_transaction_markers_cost_one_seek_also_after_an_assignment_in_an_outage(
    unanswered: Stage,
) -> None:
    running(unanswered)
    delivered = 0
    for number in range(2, 200, 2):
        for _ in range(2):
            if unanswered.poll((BUSY, number)):
                delivered += 1
                break
    assert delivered == 99
    assert unanswered.client.seeks[BUSY] == [0, 1]


def test_a_partition_in_which_the_client_refuses_to_seek_is_assigned_again(
    unanswered: Stage,
) -> None:
    unanswered.client.refusing = {QUIET}
    running(unanswered)
    unanswered.consumer.resume(QUIET, 5)
    for _ in range(4):
        unanswered.poll()
    assert unanswered.client.assigned == {BUSY: 0, QUIET: 0}
    unanswered.poll(seconds=6.0)
    assert unanswered.client.assigned == {BUSY: 0, QUIET: 5}
    assert unanswered.poll((QUIET, 5)) == {QUIET: [5]}


def test_leaving_a_group_that_does_not_answer_reports_heartbeats(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is short; all of them, and closing the client, take longer."""
    running(stage)
    beats: list[int] = []

    def note(*_: float) -> list[Record]:
        stage.now += 1.0
        beats.append(stage.beats)
        return []

    monkeypatch.setattr(stage.client, "consume", note)
    monkeypatch.setattr(stage.client, "close", note)
    stage.consumer.close()
    assert len(beats) > 5
    assert beats == list(range(1, len(beats) + 1))


def test_leaving_a_group_does_not_wait_for_a_broker_that_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(stage)
    steps = []

    def broken(*_: float) -> list[Record]:
        stage.now += 1.0
        steps.append(stage.now)
        stage.consumer.connection.record_timeout(KafkaError(KafkaError._TRANSPORT))
        return []

    monkeypatch.setattr(stage.client, "consume", broken)
    stage.consumer.close()
    assert len(steps) == 1
