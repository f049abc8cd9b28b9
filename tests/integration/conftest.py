"""One broker for all integration tests, and topics of its own for each.

With pytest-xdist, ``--dist loadgroup`` sends all tests of this folder to one worker, so that they
share one broker and leave the other cores to the other tests. Under another distribution every
worker that runs one of them starts its own broker: slower, and as right.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from stream_fs.broker import Broker, running_broker
from tests.integration.topics import PATIENCE_SECONDS, Topics

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("broker"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        brokers = {k: v for k, v in item.funcargs.items() if isinstance(v, Broker)}
        for name, broker in brokers.items():
            report.sections.append((f"end of the log of {name}", broker.log_tail()))
    return report


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker that all tests share: it must not be stopped."""
    with running_broker(log_dir=tmp_path_factory.mktemp("broker")) as broker:
        warm_up(broker)
        yield broker


@pytest.fixture
def topics(broker: Broker) -> Iterator[Topics]:
    """Topics of this test's own, and an admin client."""
    topics = Topics(broker.bootstrap)
    yield topics
    topics.remove()


def warm_up(broker: Broker) -> None:
    """Let the broker make its internal topics now: the first group and transaction take seconds."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("warm-up")
    address = {"bootstrap.servers": broker.bootstrap}
    producer = Producer({**address, "transactional.id": topics.unique("warm-up")})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"warm")
    producer.commit_transaction(PATIENCE_SECONDS)
    group = {"group.id": topics.unique("warm-up"), "auto.offset.reset": "earliest"}
    consumer = Consumer({**address, **group})
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_SECONDS)
    consumer.close()
    topics.remove()
    assert message is not None
    assert message.value() == b"warm"
