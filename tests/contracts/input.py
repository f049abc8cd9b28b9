"""The contract of `Input`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stream_fs.errors import OffsetGone
from stream_fs.pipeline.ports import Input, Partition
from tests.contracts.backend import Backend
from tests.support.waiting import Member, until


def filled(backend: Backend, count: int, partitions: int = 1) -> list[Partition]:
    """The partitions of a new input topic with `count` records in each."""
    topic = backend.topic(partitions)
    found = [Partition(topic, number) for number in range(partitions)]
    for partition in found:
        for number in range(count):
            assert backend.produce(partition, b"%d" % number) == number
    return found


def joined(backend: Backend, partitions: Sequence[Partition]) -> tuple[Member, Input]:
    """A group member to which these partitions are assigned."""
    member = Member()
    source = backend.transport().input([partitions[0].topic], member)
    member.holds(source, set(partitions))
    return member, source


class InputContract:
    """Tested by subclasses with a fixture `backend`."""

    def test_messages_as_they_were_produced(self, backend: Backend) -> None:
        partition = Partition(backend.topic(), 0)
        headers = (("trace", b"1"), ("trace", None))
        backend.produce(partition, b"value", b"key", headers)
        backend.produce(partition, None)
        member, source = joined(backend, [partition])
        source.resume(partition, 0)
        first, second = member.receives(source, partition, 2)
        assert (first.topic, first.partition, first.offset) == (partition.topic, 0, 0)
        assert (first.key, first.value, first.headers) == (b"key", b"value", headers)
        assert first.timestamp > 0
        assert (second.key, second.value, second.headers) == (None, None, ())
        assert (second.offset, second.partition) == (1, 0)
        source.close()

    def test_a_partition_is_silent_until_it_is_resumed(self, backend: Backend) -> None:
        one, two = filled(backend, 10, partitions=2)
        member, source = joined(backend, [one, two])
        assert source.poll(0.2) == {}
        source.resume(one, 0)
        member.receives(source, one, 10)
        assert set(member.messages) == {one}
        source.resume(two, 0)
        member.receives(source, two, 10)
        assert member.offsets(one) == member.offsets(two) == list(range(10))
        source.close()

    def test_a_partition_is_delivered_from_the_offset_given(self, backend: Backend) -> None:
        one, two = filled(backend, 10, partitions=2)
        member, source = joined(backend, [one, two])
        source.resume(one, 7)
        source.resume(two, 9)
        member.receives(source, one, 3)
        member.receives(source, two, 1)
        assert member.offsets(one) == [7, 8, 9]
        assert member.offsets(two) == [9]
        source.close()

    def test_no_more_messages_than_requested(self, backend: Backend) -> None:
        (partition,) = filled(backend, 10)
        _, source = joined(backend, [partition])
        source.resume(partition, 0)
        offsets: list[int] = []

        def all_here() -> bool:
            messages = source.poll(0.05, 3).get(partition, ())
            assert len(messages) <= 3
            offsets.extend(message.offset for message in messages)
            return len(offsets) >= 10

        until(all_here, "ten messages")
        assert offsets == list(range(10))
        source.close()

    def test_a_partition_that_is_resumed_at_its_end_delivers_new_messages(
        self, backend: Backend
    ) -> None:
        (partition,) = filled(backend, 5)
        member, source = joined(backend, [partition])
        source.resume(partition, 5)
        assert source.poll(0.2) == {}
        backend.produce(partition, b"new")
        member.receives(source, partition, 1)
        assert member.offsets(partition) == [5]
        source.close()

    @pytest.mark.parametrize("place", [0, 500, 1990])
    def test_resuming_again_goes_to_the_new_offset(self, backend: Backend, place: int) -> None:
        (partition,) = filled(backend, 2000)
        member, source = joined(backend, [partition])
        source.resume(partition, 100)
        member.receives(source, partition, 1)  # more is fetched already
        assert member.offsets(partition)[0] == 100
        member.messages.clear()
        source.resume(partition, place)
        member.receives(source, partition, 2000 - place)
        assert member.offsets(partition) == list(range(place, 2000))
        source.close()

    def test_a_paused_partition_is_silent_until_it_is_resumed(self, backend: Backend) -> None:
        (partition,) = filled(backend, 1000)
        member, source = joined(backend, [partition])
        source.resume(partition, 0)
        member.receives(source, partition, 1)  # more is fetched already
        source.pause(partition)
        member.messages.clear()
        for _ in range(3):
            member.poll(source)
        assert member.messages == {}
        source.resume(partition, 700)
        member.receives(source, partition, 300)
        assert member.offsets(partition) == list(range(700, 1000))
        source.close()

    def test_nothing_is_unread_when_everything_was_delivered(self, backend: Backend) -> None:
        (partition,) = filled(backend, 7)
        member, source = joined(backend, [partition])
        source.resume(partition, 2)
        member.receives(source, partition, 5)
        assert source.unread(partition, 7) == 0
        assert source.connection_error() is None
        source.pause(partition)
        source.resume(partition, 4)
        assert source.unread(partition, 4) in (3, None), "all that is left, or unknown"
        member.receives(source, partition, 8)
        assert source.unread(partition, 7) == 0
        source.close()

    def test_a_long_partition_is_delivered_once_and_in_order(self, backend: Backend) -> None:
        partitions = filled(backend, 1500, partitions=2)
        member, source = joined(backend, partitions)
        for partition in partitions:
            source.resume(partition, 3)
        for partition in partitions:
            member.receives(source, partition, 1497)
            assert member.offsets(partition) == list(range(3, 1500))
        source.close()

    def test_a_deleted_offset_is_refused(self, backend: Backend) -> None:
        (partition,) = filled(backend, 10)
        backend.delete_below(partition, 5)
        member, source = joined(backend, [partition])
        until(lambda: source.bounds(partition) == (5, 10), "the records are deleted")
        source.resume(partition, 2)
        with pytest.raises(OffsetGone, match=rf"{partition}.*\b2\b"):
            member.receives(source, partition, 1)
        source.close()

    def test_the_records_after_a_deletion_are_delivered(self, backend: Backend) -> None:
        (partition,) = filled(backend, 10)
        backend.delete_below(partition, 5)
        member, source = joined(backend, [partition])
        until(lambda: source.bounds(partition) == (5, 10), "the records are deleted")
        source.resume(partition, 5)
        member.receives(source, partition, 5)
        assert member.offsets(partition) == [5, 6, 7, 8, 9]
        source.close()

    def test_bounds(self, backend: Backend) -> None:
        empty, full = Partition(backend.topic(), 0), filled(backend, 3)[0]
        _, source = joined(backend, [empty])
        assert source.bounds(empty) == (0, 0)
        assert source.bounds(full) == (0, 3)
        source.close()

    def test_committed_group_offsets_can_be_read(self, backend: Backend) -> None:
        one, two = filled(backend, 3, partitions=2)
        member, source = joined(backend, [one, two])
        assert source.group_offset(one) is None
        source.commit_group_offset({})
        source.commit_group_offset({one: 2, two: 0})

        def known() -> bool:
            member.poll(source, 0.01)
            return (source.group_offset(one), source.group_offset(two)) == (2, 0)

        until(known, "the offsets are committed")
        source.close()
        member, source = joined(backend, [one, two])
        assert (source.group_offset(one), source.group_offset(two)) == (2, 0)
        source.close()

    def test_group_offsets_do_not_decide_what_is_delivered(self, backend: Backend) -> None:
        (partition,) = filled(backend, 5)
        member, source = joined(backend, [partition])
        source.commit_group_offset({partition: 4})
        until(lambda: source.group_offset(partition) == 4, "the offset is committed")
        source.resume(partition, 1)
        member.receives(source, partition, 4)
        assert member.offsets(partition) == [1, 2, 3, 4]
        source.close()

    def test_closing_revokes_all_partitions(self, backend: Backend) -> None:
        partitions = filled(backend, 1, partitions=2)
        member, source = joined(backend, partitions)
        source.close()
        assert member.assignment == set()
        assert {event for event, _ in member.events} == {"assigned", "revoked"}

    def test_partitions_move_to_a_second_member_and_back(self, backend: Backend) -> None:
        partitions = filled(backend, 20, partitions=4)
        first, source = joined(backend, partitions)
        for partition in partitions:
            source.resume(partition, 0)
            first.receives(source, partition, 20)
        second = Member()
        other = backend.transport().input([partitions[0].topic], second)

        def shared() -> bool:
            first.poll(source)
            second.poll(other)
            apart = first.assignment.isdisjoint(second.assignment)
            return apart and len(first.assignment) == len(second.assignment) == 2

        until(shared, "both hold two partitions")
        assert first.assignment | second.assignment == set(partitions)
        assert "revoked" in {event for event, _ in first.events}
        for partition in second.assignment:
            other.resume(partition, 15)
            second.receives(other, partition, 5)
            assert second.offsets(partition) == [15, 16, 17, 18, 19]
        other.close()
        assert second.assignment == set()
        first.holds(source, set(partitions))
        first.messages.clear()
        for (
            partition
        ) in partitions:  # also of those that did not move: the caller decides the offset
            source.resume(partition, 18)
            first.receives(source, partition, 2)
            assert first.offsets(partition) == [18, 19]
        source.close()

    def test_a_partition_that_is_assigned_again_is_silent(self, backend: Backend) -> None:
        partitions = filled(backend, 5, partitions=2)
        first, source = joined(backend, partitions)
        for partition in partitions:
            source.resume(partition, 5)
        second = Member()
        other = backend.transport().input([partitions[0].topic], second)

        def shared() -> bool:
            first.poll(source)
            second.poll(other)
            return len(first.assignment) == len(second.assignment) == 1

        until(shared, "both hold a partition")
        (moved,) = second.assignment
        other.close()
        first.holds(source, set(partitions))
        backend.produce(moved, b"new")
        first.messages.clear()
        first.poll(source, 0.3)
        assert first.offsets(moved) == []
        source.close()

    def test_poll_raises_what_the_assignment_raises(self, backend: Backend) -> None:
        (partition,) = filled(backend, 5)

        class Broken(Member):
            def assigned(self, partitions: Sequence[Partition]) -> None:
                super().assigned(partitions)
                raise RuntimeError("broken on purpose")

        member = Broken()
        source = backend.transport().input([partition.topic], member)
        with pytest.raises(RuntimeError, match="broken on purpose"):
            member.holds(source, {partition})
        source.resume(partition, 0)
        member.receives(source, partition, 5)
        assert member.offsets(partition) == [0, 1, 2, 3, 4]
        source.close()

    def test_close_raises_what_the_assignment_raises(self, backend: Backend) -> None:
        (partition,) = filled(backend, 1)

        class Broken(Member):
            def revoked(self, partitions: Sequence[Partition]) -> None:
                super().revoked(partitions)
                raise RuntimeError("broken on purpose")

        member = Broken()
        source = backend.transport().input([partition.topic], member)
        member.holds(source, {partition})
        with pytest.raises(RuntimeError, match="broken on purpose"):
            source.close()
