"""A real broker for tests: one that a whole test run shares, or one that a test may stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from stream_fs.broker import BOOTSTRAP_VARIABLE, Broker, BrokerUnavailable, running_broker
from tests.support.shared_broker import shared_broker
from tests.support.topics import TIMEOUT_SECONDS, Topics


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Broker]:
    """The broker that all tests share: it must not be stopped."""
    base = tmp_path_factory.getbasetemp()
    # Every worker of pytest-xdist has a folder of its own in that of the run.
    directory = (base if worker_id == "master" else base.parent) / "broker"
    with shared_broker(directory, lambda: warm_broker(directory)) as broker:
        yield broker


@contextmanager
def warm_broker(log_dir: Path) -> Iterator[Broker]:
    with running_broker(log_dir=log_dir) as broker:
        warm_up(broker)
        yield broker


@contextmanager
def stoppable_broker(log_dir: Path) -> Iterator[Broker]:
    """A broker of a test's own; without one the test is skipped."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        try:
            broker = stack.enter_context(warm_broker(log_dir))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        yield broker


def warm_up(broker: Broker) -> None:
    """Let the broker create its internal topics: the first group and transaction take seconds."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("warm-up")
    address = {"bootstrap.servers": broker.bootstrap}
    producer = Producer({**address, "transactional.id": topics.unique("warm-up")})
    producer.init_transactions(TIMEOUT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"warm")
    producer.commit_transaction(TIMEOUT_SECONDS)
    group = {"group.id": topics.unique("warm-up"), "auto.offset.reset": "earliest"}
    consumer = Consumer({**address, **group})
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_SECONDS)
    consumer.close()
    topics.remove()
    assert message is not None
    assert message.value() == b"warm"
