"""A broker that all tests of a run share, and topics of its own for each."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from stream_fs.broker import Broker
from tests.support.real_broker import broker
from tests.support.topics import Topics

__all__ = ["broker"]


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


@pytest.fixture
def topics(broker: Broker) -> Iterator[Topics]:
    """Topics of this test's own, and an admin client."""
    topics = Topics(broker.bootstrap)
    yield topics
    topics.remove()
