"""The contract of `StateLogReader`."""

from __future__ import annotations

from stream_fs.pipeline.ports import OutgoingRecord, Partition
from tests.contracts.backend import Backend
from tests.support.waiting import everything, owner, until


def write(backend: Backend, partition: Partition, *values: bytes) -> None:
    """Commit records to the state of a partition."""
    topic = backend.state_topic(partition.topic)
    publisher = owner(backend.transport().publisher(partition))
    publisher.begin()
    publisher.send(
        [OutgoingRecord(topic, b"key", value, partition=partition.number) for value in values]
    )
    publisher.commit()
    publisher.close()


class StateLogReaderContract:
    """Tested by subclasses with a fixture `backend`."""

    def test_the_ends_are_those_of_the_logs(self, backend: Backend) -> None:
        one, two = backend.topic(2), backend.topic()
        write(backend, Partition(one, 1), b"a", b"b")
        write(backend, Partition(two, 0), b"c")
        transport = backend.transport()
        places = [Partition(one, 0), Partition(one, 1), Partition(two, 0)]
        logs = transport.state_log_reader()
        ends = logs.ends([one, two])
        assert sorted(ends) == sorted(places)
        for place in places:
            log = transport.state_log(place)
            assert ends[place] == log.end()
            log.close()
        assert ends[Partition(one, 0)] == 0
        logs.close()

    def test_the_ends_are_behind_open_transactions(self, backend: Backend) -> None:
        place = Partition(backend.topic(), 0)
        publisher = owner(backend.transport().publisher(place))
        publisher.begin()
        record = OutgoingRecord(backend.state_topic(place.topic), b"key", b"open", partition=0)
        (offset,) = publisher.send([record])
        logs = backend.transport().state_log_reader()
        assert logs.ends([place.topic])[place] == offset + 1
        logs.close()
        publisher.close()

    def test_partitions_are_read_in_turn(self, backend: Backend) -> None:
        topic = backend.topic(3)
        places = [Partition(topic, number) for number in range(3)]
        expected: dict[Partition, list[bytes | None]] = {place: [] for place in places}
        logs = backend.transport().state_log_reader()
        for turn in range(4):
            for place in places:
                value = f"{place.number} {turn}".encode()
                write(backend, place, value)
                expected[place].append(value)
            for place in places:
                log = logs.log(place)
                assert [record.value for record in everything(log)] == expected[place]
                log.close()
        logs.close()

    def test_an_abandoned_scan_does_not_affect_the_next(self, backend: Backend) -> None:
        topic = backend.topic(2)
        left, next_one = Partition(topic, 0), Partition(topic, 1)
        write(backend, left, *(b"left %d" % number for number in range(300)))
        write(backend, next_one, b"next")
        logs = backend.transport().state_log_reader()
        for _ in range(3):
            log = logs.log(left)
            records = log.scan(0, log.end())
            until(lambda found=records: next(found) is not None, "the first record")  # type: ignore[misc]  # bound here
            log.close()
            log = logs.log(next_one)
            assert [record.value for record in everything(log)] == [b"next"]
            log.close()
        logs.close()

    def test_a_scan_yields_none_after_a_few_records(self, backend: Backend) -> None:
        place = Partition(backend.topic(), 0)
        write(backend, place, *(b"%d" % number for number in range(200)))
        logs = backend.transport().state_log_reader()
        log = logs.log(place)
        run = longest = 0
        for record in log.scan(0, log.end()):
            run = 0 if record is None else run + 1
            longest = max(longest, run)
        assert 0 < longest <= 10
        log.close()
        logs.close()

    def test_partitions_that_are_added_are_found(self, backend: Backend) -> None:
        topic = backend.topic()
        old, new = Partition(topic, 0), Partition(topic, 1)
        write(backend, old, b"old")
        logs = backend.transport().state_log_reader()
        log = logs.log(old)
        assert len(everything(log)) == 1
        log.close()
        backend.grow(topic, 2)
        assert list(logs.ends([topic])) == [old], "the state topic has no such partition yet"
        backend.grow(backend.state_topic(topic), 2)
        until(lambda: list(logs.ends([topic])) == [old, new], "the new partition")
        write(backend, new, b"new")
        log = logs.log(new)
        assert [record.value for record in everything(log)] == [b"new"]
        log.close()
        logs.close()

    def test_logs_that_were_not_read_can_be_closed(self, backend: Backend) -> None:
        logs = backend.transport().state_log_reader()
        logs.log(Partition(backend.topic(), 0)).close()
        logs.close()
