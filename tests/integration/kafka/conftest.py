"""A broker that these tests may stop, with short intervals and its own users and rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stream_fs.broker import BOOTSTRAP_VARIABLE, Broker, running_broker
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import Topics

SASL = "SASL_PLAINTEXT"
PASSWORD = "correct-horse"

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_PROPERTIES = {
    # Compaction and the abort of overdue transactions run often.
    "log.cleaner.backoff.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # Anonymous users have all rights, alice has only that to log in.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{SASL.lower()}.plain.sasl.jaas.config": (
        f'{_PLAIN} required user_alice="{PASSWORD}";'
    ),
}


@pytest.fixture
def backend(topics: Topics) -> KafkaBackend:
    """Topics and groups of one test, on the broker that all tests share."""
    return KafkaBackend(topics)


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that a test may stop, and leaves running."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        log_dir = tmp_path_factory.mktemp("own-kafka")
        with running_broker(
            log_dir=log_dir, listeners={SASL: SASL}, properties=_PROPERTIES
        ) as broker:
            yield broker


@pytest.fixture
def own_topics(own_broker: Broker) -> Iterator[Topics]:
    topics = Topics(own_broker.bootstrap)
    yield topics
    topics.remove()


@pytest.fixture
def own_backend(own_topics: Topics) -> KafkaBackend:
    return KafkaBackend(own_topics)
