"""The state log beyond its contract: compaction, and missing topics."""

from __future__ import annotations

from itertools import count

import pytest

from stream_fs.errors import FatalError, RetriableError
from stream_fs.kafka import KafkaTransport
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from tests.integration.kafka.backend import KafkaBackend
from tests.support.waiting import everything, owner, until


def test_a_compacted_log_has_gaps(own_backend: KafkaBackend) -> None:
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.001",
        "segment.bytes": str(2**20),
        "segment.ms": "100",
    }
    state = own_backend.topics.create("compacted", config=config)
    transport = KafkaTransport(own_backend.settings(), "stream", lambda _: state)
    partition = Partition("input", 0)
    publisher = owner(transport.publisher(partition))
    log = transport.state_log(partition)
    keys = (b"progress", b"part-1", b"part-2")
    numbers = count()
    newest: dict[bytes, tuple[int, bytes | None]] = {}

    def publish(*keys: bytes) -> None:
        """Publish these keys again; a new segment allows the old ones to be compacted."""
        publisher.begin()
        values = [next(numbers).to_bytes(4, "big") + bytes(200_000) for _ in keys]
        sent = [
            OutgoingRecord(state, *pair, partition=0) for pair in zip(keys, values, strict=True)
        ]
        offsets = publisher.send(sent)
        publisher.commit()
        newest.update(zip(keys, zip(offsets, values, strict=True), strict=True))

    def compacted() -> bool:
        publish(*keys)
        records = everything(log)
        found = {record.key: (record.offset, record.value) for record in records}
        assert found == newest
        assert [record.offset for record in records] == sorted(r.offset for r in records)
        return records[0].offset == 0 and records[1].offset > 20

    publish(b"once")
    for _ in range(20):
        publish(*keys)
    until(compacted, "the log is compacted")
    assert everything(log, 1, 20) == []
    assert [record.key for record in everything(log, 0, 20)] == [b"once"]
    log.close()
    publisher.close()


def test_a_missing_state_topic(backend: KafkaBackend) -> None:
    missing = backend.topics.unique("missing")
    log = KafkaTransport(backend.settings(), "stream", lambda _: missing).state_log(
        Partition("input", 0)
    )
    with pytest.raises(RetriableError, match=rf"{missing}/0.*stream-fs topics create"):
        log.end()
    log.close()


def test_an_offset_behind_the_end_is_an_error(backend: KafkaBackend) -> None:
    partition = Partition(backend.topic(), 0)
    log = backend.transport().state_log(partition)
    with pytest.raises(FatalError, match=rf"{backend.state_topic(partition.topic)}/0 has no.* 50"):
        everything(log, 50, 60)
    log.close()
