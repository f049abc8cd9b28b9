"""The broker in memory fulfils the contract of the pipeline's ports."""

from __future__ import annotations

import pytest

from stream_fs.pipeline.ports import Partition
from tests.contracts.backend import Published
from tests.contracts.transport import TransportContract
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport


class MemoryBackend:
    """A broker in memory as `tests.contracts.backend.Backend`."""

    def __init__(self) -> None:
        self._broker = MemoryBroker()
        self._topics: dict[str, str] = {}

    def topic(self, partitions: int = 1) -> str:
        name = f"topic-{len(self._topics)}"
        self._topics[name] = f"{name}.state"
        self._broker.create(name, partitions)
        self._broker.create(self._topics[name], partitions)
        return name

    def grow(self, topic: str, partitions: int) -> None:
        self._broker.grow(topic, partitions)

    def state_topic(self, topic: str) -> str:
        return self._topics[topic]

    def transport(self, group: str = "group") -> MemoryTransport:
        return MemoryTransport(self._broker, group, self._topics)

    def produce(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        return self._broker.produce(
            partition.topic,
            value,
            partition=partition.number,
            key=key,
            headers=headers,
            timestamp=1,
        )

    def delete_below(self, partition: Partition, offset: int) -> None:
        self._broker.delete_below(partition.topic, partition.number, offset)

    def published(self, topic: str, partition: int = 0) -> list[Published]:
        return [
            Published(message.key, message.value, message.headers)
            for message in self._broker.committed(topic)
            if message.partition == partition
        ]


class TestMemory(TransportContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
