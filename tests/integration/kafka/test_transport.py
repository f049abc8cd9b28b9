"""The Kafka adapter keeps the contract of the ports, in every rebalance protocol."""

from __future__ import annotations

import pytest

from stream_fs.kafka import Rebalance
from tests.contracts.input import InputContract
from tests.contracts.transport import TransportContract
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import Topics


class TestKafka(TransportContract):
    @pytest.fixture
    def backend(self, topics: Topics) -> KafkaBackend:
        return KafkaBackend(topics)


class TestEagerGroups(InputContract):
    @pytest.fixture
    def backend(self, topics: Topics) -> KafkaBackend:
        return KafkaBackend(topics, Rebalance.EAGER)


class TestKip848Groups(InputContract):
    @pytest.fixture
    def backend(self, topics: Topics) -> KafkaBackend:
        return KafkaBackend(topics, Rebalance.CONSUMER)
