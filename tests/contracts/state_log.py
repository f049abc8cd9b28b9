"""The contract of `StateLog`."""

from __future__ import annotations

from itertools import islice

from stream_fs.pipeline.ports import OutgoingRecord, Partition
from tests.contracts.backend import Backend
from tests.support.waiting import everything, owner, until


class StateLogContract:
    """Tested by subclasses with a fixture `backend`."""

    def test_an_empty_log(self, backend: Backend) -> None:
        log = backend.transport().state_log(Partition(backend.topic(), 0))
        assert (log.start(), log.end()) == (0, 0)
        assert list(log.scan(0, 0)) == []
        log.close()

    def test_committed_records_in_their_order(self, backend: Backend) -> None:
        state = State(backend)
        offsets = state.committed(b"a", b"b") + state.committed(b"c")
        state.aborted(b"void")
        offsets += state.committed(b"d")
        found = everything(state.log)
        assert [record.value for record in found] == [b"a", b"b", b"c", b"d"]
        assert [record.offset for record in found] == offsets
        assert {record.key for record in found} == {b"key"}
        state.close()

    def test_a_tombstone(self, backend: Backend) -> None:
        state = State(backend)
        state.committed(None)
        assert [record.value for record in everything(state.log)] == [None]
        state.close()

    def test_a_part_of_the_log(self, backend: Backend) -> None:
        state = State(backend)
        _, second, third, fourth = state.committed(b"1", b"2", b"3", b"4")
        found = everything(state.log, second, fourth)
        assert [record.offset for record in found] == [second, third]
        assert everything(state.log, third, third) == []
        assert everything(state.log, fourth, second) == []
        state.close()

    def test_partitions_are_separate(self, backend: Backend) -> None:
        state = State(backend, partitions=2)
        state.committed(b"own")
        other = backend.transport().state_log(Partition(state.partition.topic, 1))
        assert other.end() == 0
        other.close()
        state.close()

    def test_it_can_be_scanned_again_and_again(self, backend: Backend) -> None:
        state = State(backend)
        offsets = state.committed(*(b"%d" % number for number in range(10)))
        for start in (7, 0, 9, 3):
            found = everything(state.log, offsets[start])
            assert [record.offset for record in found] == offsets[start:]
        state.close()

    def test_a_scan_may_be_abandoned(self, backend: Backend) -> None:
        state = State(backend)
        offsets = state.committed(*(b"%d" % number for number in range(1000)))
        records = (record for record in state.log.scan(0, state.log.end()) if record is not None)
        assert [record.offset for record in islice(records, 3)] == offsets[:3]
        assert [record.offset for record in everything(state.log, offsets[998])] == offsets[998:]
        state.close()

    def test_later_records_are_found_by_a_later_scan(self, backend: Backend) -> None:
        state = State(backend)
        state.committed(b"old")
        end = state.log.end()
        assert [record.value for record in everything(state.log)] == [b"old"]
        state.committed(b"new")
        assert [record.value for record in everything(state.log, end)] == [b"new"]
        assert [record.value for record in everything(state.log, 0, end)] == [b"old"]
        state.close()

    def test_a_log_of_aborted_records_only(self, backend: Backend) -> None:
        state = State(backend)
        state.aborted(b"void", b"void")
        assert state.log.end() >= 2
        assert everything(state.log) == []
        state.close()

    def test_the_end_is_behind_open_transactions(self, backend: Backend) -> None:
        state = State(backend)
        state.publisher.begin()
        (offset,) = state.publisher.send(state.records(b"open"))
        assert state.log.end() > offset
        state.publisher.abort()
        assert state.log.end() > offset
        state.close()

    def test_a_commit_behind_a_foreign_open_transaction_is_found(self, backend: Backend) -> None:
        state = State(backend)
        state.committed(b"before")
        foreign = owner(backend.transport("foreign").publisher(state.partition))
        foreign.begin()
        foreign.send(state.records(b"foreign"))
        state.committed(b"behind")
        found = []
        waited = 0
        for record in state.log.scan(0, state.log.end()):
            if record is not None:
                found.append(record.value)
                continue
            waited += 1
            if waited == 3:  # it is still undecided, and the scan has not ended
                foreign.abort()
        assert found == [b"before", b"behind"]
        assert waited >= 3
        foreign.close()
        state.close()

    def test_a_scan_below_a_foreign_open_transaction_does_not_wait(self, backend: Backend) -> None:
        state = State(backend)
        state.committed(b"before")
        end = state.log.end()
        foreign = owner(backend.transport("foreign").publisher(state.partition))
        foreign.begin()
        foreign.send(state.records(b"foreign"))
        assert [record.value for record in everything(state.log, 0, end)] == [b"before"]
        foreign.close()
        state.close()

    def test_deleted_records_are_not_found(self, backend: Backend) -> None:
        state = State(backend)
        _, second, _ = state.committed(b"1", b"2", b"3")
        place = Partition(backend.state_topic(state.partition.topic), 0)
        backend.delete_below(place, second)
        until(lambda: state.log.start() == second, "the start moves")
        assert [record.value for record in everything(state.log)] == [b"2", b"3"]
        backend.delete_below(place, state.log.end())
        until(lambda: state.log.start() == state.log.end(), "the start moves")
        assert everything(state.log) == []
        state.close()

    def test_a_log_that_was_not_scanned_can_be_closed(self, backend: Backend) -> None:
        log = backend.transport().state_log(Partition(backend.topic(), 0))
        log.close()


class State:
    """A state partition, its owner and its log."""

    def __init__(self, backend: Backend, partitions: int = 1) -> None:
        self.partition = Partition(backend.topic(partitions), 0)
        self._topic = backend.state_topic(self.partition.topic)
        self.publisher = owner(backend.transport().publisher(self.partition))
        self.log = backend.transport().state_log(self.partition)

    def records(self, *values: bytes | None) -> list[OutgoingRecord]:
        return [OutgoingRecord(self._topic, b"key", value, partition=0) for value in values]

    def committed(self, *values: bytes | None) -> list[int]:
        self.publisher.begin()
        offsets = self.publisher.send(self.records(*values))
        self.publisher.commit()
        return offsets

    def aborted(self, *values: bytes) -> None:
        self.publisher.begin()
        self.publisher.send(self.records(*values))
        self.publisher.abort()

    def close(self) -> None:
        self.log.close()
        self.publisher.close()
