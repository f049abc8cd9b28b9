"""The contract of `Publisher`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stream_fs.errors import FencedError
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher
from tests.contracts.backend import Backend, Published
from tests.support.waiting import everything, owner, published, until


def records(topic: str, *values: bytes, partition: int | None = 0) -> list[OutgoingRecord]:
    return [OutgoingRecord(topic, b"key", value, partition=partition) for value in values]


def values(found: list[Published]) -> list[bytes | None]:
    return [record.value for record in found]


def publish(publisher: Publisher, topic: str, value: bytes) -> None:
    publisher.begin()
    publisher.send(records(topic, value))
    publisher.commit()


def assert_separate(backend: Backend, topic: str, make: Callable[[bool], Publisher]) -> None:
    """Legacy publishers and the others fence those of their own kind only."""
    old, present = owner(make(True)), owner(make(False))
    for publisher in (old, present):
        publish(publisher, topic, b"valid")
    owner(make(True)).close()
    with pytest.raises(FencedError):
        publish(old, topic, b"fenced")
    publish(present, topic, b"valid")
    assert values(published(backend, topic, 3)) == [b"valid"] * 3
    old.close()
    present.close()


class PublisherContract:
    """Tested by subclasses with a fixture `backend`."""

    def test_committed_records_are_published_together_and_not_before(
        self, backend: Backend
    ) -> None:
        topic = backend.topic()
        publisher = owner(backend.transport().publisher(Partition(topic, 0)))
        publisher.begin()
        publisher.send(records(topic, b"a", b"b"))
        assert backend.published(topic) == []
        publisher.send(records(topic, b"c"))
        assert backend.published(topic) == []
        publisher.commit()
        assert values(published(backend, topic, 3)) == [b"a", b"b", b"c"]
        publisher.close()

    def test_records_arrive_as_they_were_sent(self, backend: Backend) -> None:
        topic = backend.topic()
        headers = (("reason", b"why"), ("reason", b"again"), ("empty", None))
        publisher = owner(backend.transport().publisher(Partition(topic, 0)))
        publisher.begin()
        publisher.send(
            [
                OutgoingRecord(topic, b"key", b"value", headers, partition=0),
                OutgoingRecord(topic, b"tombstone", None, partition=0),
                OutgoingRecord(topic, None, b"", partition=0),
            ]
        )
        publisher.commit()
        assert published(backend, topic, 3) == [
            Published(b"key", b"value", headers),
            Published(b"tombstone", None),
            Published(None, b""),
        ]
        publisher.close()

    def test_an_empty_transaction(self, backend: Backend) -> None:
        publisher = owner(backend.transport().publisher(Partition(backend.topic(), 0)))
        publisher.begin()
        assert publisher.send([]) == []
        publisher.commit()
        publisher.close()

    def test_the_offsets_are_those_of_the_records_in_their_order(self, backend: Backend) -> None:
        partition = Partition(backend.topic(2), 0)
        state = backend.state_topic(partition.topic)
        publisher = owner(backend.transport().publisher(partition))
        publisher.begin()
        first = publisher.send(records(state, b"a", b"b") + records(partition.topic, b"x"))
        second = publisher.send(records(state, b"in 1", partition=1) + records(state, b"c"))
        publisher.commit()
        publisher.begin()
        third = publisher.send(records(state, b"d"))
        publisher.commit()
        log = backend.transport().state_log(partition)
        found = {record.offset: record.value for record in everything(log)}
        assert found == {first[0]: b"a", first[1]: b"b", second[1]: b"c", third[0]: b"d"}
        assert list(found) == sorted(found)
        assert first[2] == second[0] == 0
        log.close()
        publisher.close()

    def test_without_a_partition_the_key_decides(self, backend: Backend) -> None:
        topic = backend.topic(3)
        publisher = owner(backend.transport().publisher(Partition(topic, 0)))
        for value in (b"1", b"2", b"3"):
            publisher.begin()
            publisher.send(records(topic, value, partition=None))
            publisher.commit()

        def found() -> list[list[bytes | None]]:
            return sorted(values(backend.published(topic, number)) for number in range(3))

        until(lambda: sum(map(len, found())) >= 3, "the records are published")
        assert found() == [[], [], [b"1", b"2", b"3"]]
        publisher.close()

    def test_aborted_records_are_not_published(self, backend: Backend) -> None:
        topic = backend.topic()
        publisher = owner(backend.transport().publisher(Partition(topic, 0)))
        for value, end in (
            (b"a", publisher.commit),
            (b"b", publisher.abort),
            (b"c", publisher.commit),
        ):
            publisher.begin()
            publisher.send(records(topic, value))
            end()
        assert values(published(backend, topic, 2)) == [b"a", b"c"]
        publisher.close()

    def test_a_new_owner_aborts_the_open_transaction_of_the_old_one(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().publisher(Partition(topic, 0)))
        old.begin()
        old.send(records(topic, b"old"))
        new = owner(backend.transport().publisher(Partition(topic, 0)))
        new.begin()
        new.send(records(topic, b"new"))
        new.commit()
        # The new commit is visible: no open transaction precedes it.
        assert values(published(backend, topic, 1)) == [b"new"]
        with pytest.raises(FencedError):
            old.commit()
        assert values(backend.published(topic)) == [b"new"]
        old.close()
        new.close()

    def test_the_old_owner_is_fenced(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().publisher(Partition(topic, 0)))
        new = owner(backend.transport().publisher(Partition(topic, 0)))
        with pytest.raises(FencedError):
            publish(old, topic, b"old")
        publish(new, topic, b"new")
        assert values(published(backend, topic, 1)) == [b"new"]
        old.close()
        new.close()

    def test_a_fenced_publisher_can_acquire_again(self, backend: Backend) -> None:
        topic = backend.topic()
        first = owner(backend.transport().publisher(Partition(topic, 0)))
        second = owner(backend.transport().publisher(Partition(topic, 0)))
        with pytest.raises(FencedError):
            publish(first, topic, b"fenced")
        publish(owner(first), topic, b"again")
        with pytest.raises(FencedError):
            publish(second, topic, b"fenced, too")
        assert values(published(backend, topic, 1)) == [b"again"]
        first.close()
        second.close()

    def test_an_owner_can_acquire_again(self, backend: Backend) -> None:
        topic = backend.topic()
        publisher = owner(owner(backend.transport().publisher(Partition(topic, 0))))
        publish(publisher, topic, b"first")
        publish(owner(publisher), topic, b"second")
        assert values(backend.published(topic)) == [b"first", b"second"]
        publisher.close()

    def test_a_fenced_publisher_can_be_aborted_and_closed(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().publisher(Partition(topic, 0)))
        old.begin()
        new = owner(backend.transport().publisher(Partition(topic, 0)))
        with pytest.raises(FencedError):
            old.send(records(topic, b"old"))
        old.abort()
        old.close()
        new.close()

    def test_owners_of_other_partitions_and_groups_do_not_fence_each_other(
        self, backend: Backend
    ) -> None:
        topic = backend.topic(2)
        publishers = [
            owner(backend.transport(group).publisher(Partition(topic, number)))
            for group in ("group", "other")
            for number in (0, 1)
        ]
        for publisher in publishers:
            publisher.begin()
        for publisher in publishers:
            publisher.send(records(topic, b"value"))
        for publisher in publishers:
            publisher.commit()
        assert values(published(backend, topic, 4)) == [b"value"] * 4
        for publisher in publishers:
            publisher.close()

    def test_the_merge_has_its_own_owner(self, backend: Backend) -> None:
        topic = backend.topic()
        task = owner(backend.transport().publisher(Partition(topic, 0)))
        old = owner(backend.transport().merge_publisher())
        new = owner(backend.transport().merge_publisher())
        foreign = owner(backend.transport("other").merge_publisher())
        with pytest.raises(FencedError):
            publish(old, topic, b"old")
        for publisher in (new, task, foreign):
            publish(publisher, topic, b"valid")
        assert values(published(backend, topic, 3)) == [b"valid"] * 3
        for publisher in (old, new, task, foreign):
            publisher.close()

    def test_a_legacy_publisher_is_another_owner(self, backend: Backend) -> None:
        """Every stream of a group has its own owner; older releases had one for the group."""
        partition = Partition(backend.topic(), 0)
        transport = backend.transport()
        assert_separate(
            backend, partition.topic, lambda legacy: transport.publisher(partition, legacy=legacy)
        )

    def test_a_legacy_publisher_of_the_merge_is_another_owner(self, backend: Backend) -> None:
        transport = backend.transport()
        assert_separate(
            backend, backend.topic(), lambda legacy: transport.merge_publisher(legacy=legacy)
        )

    def test_closing_aborts_an_open_transaction(self, backend: Backend) -> None:
        topic = backend.topic()
        publisher = owner(backend.transport().publisher(Partition(topic, 0)))
        publisher.begin()
        publisher.send(records(topic, b"open"))
        publisher.close()
        publish(owner(backend.transport().publisher(Partition(topic, 0))), topic, b"next")
        assert values(published(backend, topic, 1)) == [b"next"]

    def test_a_publisher_that_was_not_acquired_can_be_closed(self, backend: Backend) -> None:
        backend.transport().publisher(Partition(backend.topic(), 0)).close()
