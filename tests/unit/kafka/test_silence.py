"""Partitions that are silent, slow or full of gaps, as a client of ours is told of them."""

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

HOT, STILL = Partition("in", 0), Partition("in", 1)


class Record:
    """As the client delivers it."""

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
    """What the client delivers at the end of a partition."""

    def error(self) -> KafkaError:  # type: ignore[override]  # in place of a record
        return KafkaError(KafkaError._PARTITION_EOF)


class Client:
    """A consumer that delivers what the test says, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.coming: list[Record] = []
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
        coming, self.coming = self.coming, []
        return coming

    def unsubscribe(self) -> None: ...

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*partition) for partition in self.assigned]

    def close(self) -> None: ...

    def get_watermark_offsets(self, where: TopicPartition, **_: object) -> tuple[int, int]:
        partition = Partition(where.topic, where.partition)
        if partition not in self.cached:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, self.cached[partition]


class Ends:
    """What the broker says of the ends, in place of `OffsetReader`."""

    def __init__(self) -> None:
        self.real: dict[Partition, int] = {HOT: 0, STILL: 0}
        self.answers = True
        self.progressed = 0

    def progress(self) -> None:
        self.progressed += 1

    def within(self, _: float) -> Ends:
        return self

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        if not self.answers:
            raise RetriableError("no answer")
        return {partition: self.real[partition] for partition in partitions}

    last_stable_offsets = ends


class Nobody:
    def assigned(self, partitions: Sequence[Partition]) -> None: ...

    def revoked(self, partitions: Sequence[Partition]) -> None: ...

    def lost(self, partitions: Sequence[Partition]) -> None: ...


class Stage:
    """An input that holds two partitions, and its surroundings."""

    def __init__(self, patch: pytest.MonkeyPatch, *, answers: bool = True) -> None:
        self.now = 1000.0
        self.client, self.ends = Client(), Ends()
        self.ends.answers = answers
        patch.setattr(module, "input_consumer", lambda *_: self.client)
        patch.setattr("stream_fs.kafka.consumer.time.monotonic", lambda: self.now)
        settings = ClientSettings("nowhere:1", "g")
        self.input = KafkaConsumer(settings, ["in"], Nobody(), cast(OffsetReader, self.ends))
        places = [TopicPartition(*HOT), TopicPartition(*STILL)]
        self.client.assign(self.client, places)

    def poll(
        self, *coming: tuple[Partition, int], seconds: float = 0.1
    ) -> dict[Partition, list[int]]:
        """The offsets that are delivered."""
        return self.receive(*[Record(*one) for one in coming], seconds=seconds)

    def receive(self, *coming: Record, seconds: float = 0.1) -> dict[Partition, list[int]]:
        """The same, of records and ends of partitions."""
        self.now += seconds
        self.client.coming = list(coming)
        batches = cast(Mapping[Partition, MessageBatch], self.input.poll(0.0))
        return {partition: list(batch.offsets()) for partition, batch in batches.items()}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_what_was_delivered_is_not_delivered_again(stage: Stage) -> None:
    stage.input.resume(HOT, 6)
    assert stage.poll((HOT, 6), (HOT, 9)) == {HOT: [6, 9]}
    assert stage.poll((HOT, 9)) == {}
    assert stage.poll((HOT, 9), (HOT, 10)) == {HOT: [10]}


def test_reminders_of_a_slow_partition_leave_time_for_an_answer(stage: Stage) -> None:
    stage.input.resume(STILL, 5)
    times = []
    for _ in range(200):
        before = len(stage.client.seeks[STILL])
        stage.poll(seconds=1.0)
        if len(stage.client.seeks[STILL]) > before:
            times.append(stage.now - 1000.0)
    pauses = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    assert pauses[:4] == [6.0, 11.0, 21.0, 41.0]
    assert set(stage.client.seeks[STILL]) == {5}


def running(stage: Stage) -> None:
    for partition in (HOT, STILL):
        stage.input.resume(partition, 0)
    stage.poll((HOT, 0), (STILL, 0))


def test_a_busy_neighbour_does_not_hide_one_that_stands_still(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {HOT: 1, STILL: 1}
    stage.ends.real[STILL] = 9
    for number in range(1, 12):
        stage.poll((HOT, number), seconds=1.0)
    assert stage.client.seeks[STILL] == [0, 1]
    assert stage.client.seeks[HOT] == [0]
    assert stage.input.known_end(STILL) == 9
    stage.poll((STILL, 1))
    assert stage.input.known_end(STILL) == 1  # what the client has fetched, again


def test_who_is_at_the_end_is_left_alone(stage: Stage) -> None:
    running(stage)
    stage.ends.real[STILL] = 1
    for _ in range(20):
        stage.poll(seconds=1.0)
    assert stage.client.seeks[STILL] == [0]


def test_a_gap_is_believed_when_it_is_seen_twice(stage: Stage) -> None:
    running(stage)
    assert stage.poll((HOT, 50), (HOT, 51)) == {}
    assert stage.client.seeks[HOT] == [0, 1]
    assert stage.poll((HOT, 1), (HOT, 2)) == {HOT: [1, 2]}  # they were there after all
    assert stage.poll((HOT, 50)) == {}
    assert stage.poll((HOT, 50)) == {HOT: [50]}


def test_gaps_as_transactions_leave_them_cost_one_question(stage: Stage) -> None:
    running(stage)
    delivered = 0
    for number in range(2, 200, 2):
        for _ in range(2):
            if stage.poll((HOT, number)):
                delivered += 1
                break
    assert delivered == 99
    assert stage.client.seeks[HOT] == [0, 1]


def test_at_the_end_nothing_is_unread_until_the_broker_names_a_later_one(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {HOT: 1, STILL: 3}
    assert stage.input.unread(STILL, 1) == 2  # transaction markers, as far as is known
    assert stage.receive(End(STILL, 3)) == {}
    assert stage.input.unread(STILL, 1) == 0
    stage.client.cached[STILL] = 8  # an open transaction
    assert stage.input.unread(STILL, 1) == 0
    stage.input.pause(STILL)
    stage.ends.real[STILL] = 9
    for _ in range(12):
        stage.poll(seconds=1.0)
    assert stage.input.unread(STILL, 1) == 6


def test_who_goes_back_has_not_reached_the_end(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {HOT: 1, STILL: 9}
    stage.receive(End(STILL, 9))
    stage.input.resume(STILL, 0)
    assert stage.input.unread(STILL, 0) == 9


def test_the_end_behind_records_that_are_asked_for_again_was_not_reached(stage: Stage) -> None:
    running(stage)
    stage.client.cached = {HOT: 1, STILL: 9}
    assert stage.receive(Record(STILL, 5), End(STILL, 9)) == {}  # those from 1 on are missing
    assert stage.client.seeks[STILL] == [0, 1]
    assert stage.input.unread(STILL, 1) == 8
    assert stage.receive(Record(STILL, 5), End(STILL, 9)) == {STILL: [5]}  # they are gone
    assert stage.input.unread(STILL, 6) == 0


def test_the_end_of_a_partition_counts_as_no_message(stage: Stage) -> None:
    running(stage)
    before = stage.input._batches.next
    stage.receive(End(STILL, 1))
    assert stage.input._batches.next == before


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The partitions were assigned in an outage, so that their ends were not known."""
    return Stage(monkeypatch, answers=False)


def test_the_client_is_never_left_to_look_up_an_end(unanswered: Stage) -> None:
    assert unanswered.client.assigned == {HOT: 0, STILL: 0}


def test_transaction_markers_cost_one_question_also_after_an_assignment_in_an_outage(
    unanswered: Stage,
) -> None:
    running(unanswered)
    delivered = 0
    for number in range(2, 200, 2):
        for _ in range(2):
            if unanswered.poll((HOT, number)):
                delivered += 1
                break
    assert delivered == 99
    assert unanswered.client.seeks[HOT] == [0, 1]


def test_a_partition_in_which_the_client_refuses_to_seek_is_assigned_again(
    unanswered: Stage,
) -> None:
    unanswered.client.refusing = {STILL}
    running(unanswered)
    unanswered.input.resume(STILL, 5)
    for _ in range(4):
        unanswered.poll()
    assert unanswered.client.assigned == {HOT: 0, STILL: 0}
    unanswered.poll(seconds=6.0)
    assert unanswered.client.assigned == {HOT: 0, STILL: 5}
    assert unanswered.poll((STILL, 5)) == {STILL: [5]}


def test_leaving_a_group_that_does_not_answer_makes_progress(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is short; all of them, and the end of the client, take longer."""
    running(stage)
    progressed: list[int] = []

    def note(*_: float) -> list[Record]:
        stage.now += 1.0
        progressed.append(stage.ends.progressed)
        return []

    monkeypatch.setattr(stage.client, "consume", note)
    monkeypatch.setattr(stage.client, "close", note)
    stage.input.close()
    assert len(progressed) > 5
    assert progressed == list(range(1, len(progressed) + 1))


def test_leaving_a_group_does_not_wait_for_a_broker_that_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(stage)
    steps = []

    def broken(*_: float) -> list[Record]:
        stage.now += 1.0
        steps.append(stage.now)
        stage.input.connection.unanswered(KafkaError(KafkaError._TRANSPORT))
        return []

    monkeypatch.setattr(stage.client, "consume", broken)
    stage.input.close()
    assert len(steps) == 1
