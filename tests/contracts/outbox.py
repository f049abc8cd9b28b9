"""What every `Publisher` promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stream_fs.errors import FencedError
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher
from tests.contracts.backend import Backend, Published
from tests.contracts.waiting import everything, owner, published, until


def records(topic: str, *values: bytes, partition: int | None = 0) -> list[OutgoingRecord]:
    return [OutgoingRecord(topic, b"key", value, partition=partition) for value in values]


def values(found: list[Published]) -> list[bytes | None]:
    return [record.value for record in found]


def publish(outbox: Publisher, topic: str, value: bytes) -> None:
    outbox.begin()
    outbox.send(records(topic, value))
    outbox.commit()


def assert_separate(backend: Backend, topic: str, make: Callable[[bool], Publisher]) -> None:
    """A legacy owner and the present one do not fence each other, but those of their kind."""
    old, present = owner(make(True)), owner(make(False))
    for outbox in (old, present):
        publish(outbox, topic, b"sound")
    owner(make(True)).close()
    with pytest.raises(FencedError):
        publish(old, topic, b"fenced")
    publish(present, topic, b"sound")
    assert values(published(backend, topic, 3)) == [b"sound"] * 3
    old.close()
    present.close()


class OutboxContract:
    """Run on a backend by a subclass with a fixture `backend`."""

    def test_what_is_committed_is_published_at_once_and_not_before(self, backend: Backend) -> None:
        topic = backend.topic()
        outbox = owner(backend.transport().outbox(Partition(topic, 0)))
        outbox.begin()
        outbox.send(records(topic, b"a", b"b"))
        assert backend.published(topic) == []
        outbox.send(records(topic, b"c"))
        assert backend.published(topic) == []
        outbox.commit()
        assert values(published(backend, topic, 3)) == [b"a", b"b", b"c"]
        outbox.close()

    def test_records_arrive_as_they_were_sent(self, backend: Backend) -> None:
        topic = backend.topic()
        headers = (("reason", b"why"), ("reason", b"again"), ("empty", None))
        outbox = owner(backend.transport().outbox(Partition(topic, 0)))
        outbox.begin()
        outbox.send(
            [
                OutgoingRecord(topic, b"key", b"value", headers, partition=0),
                OutgoingRecord(topic, b"tombstone", None, partition=0),
                OutgoingRecord(topic, None, b"", partition=0),
            ]
        )
        outbox.commit()
        assert published(backend, topic, 3) == [
            Published(b"key", b"value", headers),
            Published(b"tombstone", None),
            Published(None, b""),
        ]
        outbox.close()

    def test_nothing_to_send_is_fine(self, backend: Backend) -> None:
        outbox = owner(backend.transport().outbox(Partition(backend.topic(), 0)))
        outbox.begin()
        assert outbox.send([]) == []
        outbox.commit()
        outbox.close()

    def test_the_offsets_are_those_of_the_records_in_their_order(self, backend: Backend) -> None:
        partition = Partition(backend.topic(2), 0)
        state = backend.state_topic(partition.topic)
        outbox = owner(backend.transport().outbox(partition))
        outbox.begin()
        first = outbox.send(records(state, b"a", b"b") + records(partition.topic, b"x"))
        second = outbox.send(records(state, b"in 1", partition=1) + records(state, b"c"))
        outbox.commit()
        outbox.begin()
        third = outbox.send(records(state, b"d"))
        outbox.commit()
        log = backend.transport().state_log(partition)
        found = {record.offset: record.value for record in everything(log)}
        assert found == {first[0]: b"a", first[1]: b"b", second[1]: b"c", third[0]: b"d"}
        assert list(found) == sorted(found)
        assert first[2] == second[0] == 0
        log.close()
        outbox.close()

    def test_without_a_partition_the_key_decides(self, backend: Backend) -> None:
        topic = backend.topic(3)
        outbox = owner(backend.transport().outbox(Partition(topic, 0)))
        for value in (b"1", b"2", b"3"):
            outbox.begin()
            outbox.send(records(topic, value, partition=None))
            outbox.commit()

        def found() -> list[list[bytes | None]]:
            return sorted(values(backend.published(topic, number)) for number in range(3))

        until(lambda: sum(map(len, found())) >= 3, "the records are not published")
        assert found() == [[], [], [b"1", b"2", b"3"]]
        outbox.close()

    def test_what_is_aborted_never_happened(self, backend: Backend) -> None:
        topic = backend.topic()
        outbox = owner(backend.transport().outbox(Partition(topic, 0)))
        for value, end in ((b"a", outbox.commit), (b"b", outbox.abort), (b"c", outbox.commit)):
            outbox.begin()
            outbox.send(records(topic, value))
            end()
        assert values(published(backend, topic, 2)) == [b"a", b"c"]
        outbox.close()

    def test_a_new_owner_voids_what_the_old_one_left_open(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().outbox(Partition(topic, 0)))
        old.begin()
        old.send(records(topic, b"old"))
        new = owner(backend.transport().outbox(Partition(topic, 0)))
        new.begin()
        new.send(records(topic, b"new"))
        new.commit()
        # The new one's commit is seen: nothing open lies before it.
        assert values(published(backend, topic, 1)) == [b"new"]
        with pytest.raises(FencedError):
            old.commit()
        assert values(backend.published(topic)) == [b"new"]
        old.close()
        new.close()

    def test_the_old_owner_can_publish_nothing_more(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().outbox(Partition(topic, 0)))
        new = owner(backend.transport().outbox(Partition(topic, 0)))
        with pytest.raises(FencedError):
            publish(old, topic, b"old")
        publish(new, topic, b"new")
        assert values(published(backend, topic, 1)) == [b"new"]
        old.close()
        new.close()

    def test_who_was_fenced_may_take_over_again(self, backend: Backend) -> None:
        topic = backend.topic()
        first = owner(backend.transport().outbox(Partition(topic, 0)))
        second = owner(backend.transport().outbox(Partition(topic, 0)))
        with pytest.raises(FencedError):
            publish(first, topic, b"fenced")
        publish(owner(first), topic, b"again")
        with pytest.raises(FencedError):
            publish(second, topic, b"fenced, too")
        assert values(published(backend, topic, 1)) == [b"again"]
        first.close()
        second.close()

    def test_an_owner_may_take_over_once_more(self, backend: Backend) -> None:
        topic = backend.topic()
        outbox = owner(owner(backend.transport().outbox(Partition(topic, 0))))
        publish(outbox, topic, b"first")
        publish(owner(outbox), topic, b"second")
        assert values(backend.published(topic)) == [b"first", b"second"]
        outbox.close()

    def test_a_fenced_outbox_can_be_aborted_and_closed(self, backend: Backend) -> None:
        topic = backend.topic()
        old = owner(backend.transport().outbox(Partition(topic, 0)))
        old.begin()
        new = owner(backend.transport().outbox(Partition(topic, 0)))
        with pytest.raises(FencedError):
            old.send(records(topic, b"old"))
        old.abort()
        old.close()
        new.close()

    def test_owners_of_other_partitions_and_groups_live_side_by_side(
        self, backend: Backend
    ) -> None:
        topic = backend.topic(2)
        outboxes = [
            owner(backend.transport(group).outbox(Partition(topic, number)))
            for group in ("group", "other")
            for number in (0, 1)
        ]
        for outbox in outboxes:
            outbox.begin()
        for outbox in outboxes:
            outbox.send(records(topic, b"value"))
        for outbox in outboxes:
            outbox.commit()
        assert values(published(backend, topic, 4)) == [b"value"] * 4
        for outbox in outboxes:
            outbox.close()

    def test_the_merge_has_an_owner_of_its_own(self, backend: Backend) -> None:
        topic = backend.topic()
        task = owner(backend.transport().outbox(Partition(topic, 0)))
        old = owner(backend.transport().merge_outbox())
        new = owner(backend.transport().merge_outbox())
        foreign = owner(backend.transport("other").merge_outbox())
        with pytest.raises(FencedError):
            publish(old, topic, b"old")
        for outbox in (new, task, foreign):
            publish(outbox, topic, b"sound")
        assert values(published(backend, topic, 3)) == [b"sound"] * 3
        for outbox in (old, new, task, foreign):
            outbox.close()

    def test_a_legacy_owner_is_another_one(self, backend: Backend) -> None:
        """Streams of one group have owners of their own; older releases had one for the group."""
        partition = Partition(backend.topic(), 0)
        transport = backend.transport()
        assert_separate(
            backend, partition.topic, lambda legacy: transport.outbox(partition, legacy=legacy)
        )

    def test_so_is_the_legacy_owner_of_the_merge(self, backend: Backend) -> None:
        transport = backend.transport()
        assert_separate(
            backend, backend.topic(), lambda legacy: transport.merge_outbox(legacy=legacy)
        )

    def test_closing_voids_an_open_transaction(self, backend: Backend) -> None:
        topic = backend.topic()
        outbox = owner(backend.transport().outbox(Partition(topic, 0)))
        outbox.begin()
        outbox.send(records(topic, b"open"))
        outbox.close()
        publish(owner(backend.transport().outbox(Partition(topic, 0))), topic, b"next")
        assert values(published(backend, topic, 1)) == [b"next"]

    def test_an_outbox_that_never_took_over_can_be_closed(self, backend: Backend) -> None:
        backend.transport().outbox(Partition(backend.topic(), 0)).close()
