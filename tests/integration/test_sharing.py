"""Test processes share one broker, which runs until the last one has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from stream_fs.broker.node import BrokerNotOwned
from stream_fs.broker.session import ExternalBroker
from tests.support.shared_broker import shared_broker


class StoppableBroker(ExternalBroker):
    """The broker of the process that starts it."""

    def stop(self) -> None:
        pass

    def kill(self) -> None:
        pass


def test_one_broker_serves_all_and_outlives_its_users(tmp_path: Path) -> None:
    events: list[str] = []
    owners: list[int] = []
    all_use_it = threading.Barrier(3, timeout=60)
    owner_leaves = threading.Event()

    @contextmanager
    def start() -> Iterator[Broker]:
        events.append("started")
        owners.append(threading.get_ident())
        yield StoppableBroker("address:1", "a test")
        events.append("ended")

    def use() -> None:
        with shared_broker(tmp_path, start) as broker:
            assert broker.bootstrap == "address:1"
            all_use_it.wait()
            for end in (broker.stop, broker.kill):
                with pytest.raises(BrokerNotOwned):
                    end()
            if threading.get_ident() in owners:
                owner_leaves.set()
            else:
                assert owner_leaves.wait(60)
                events.append("used")

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert events == ["started", "used", "used", "ended"]

    with shared_broker(tmp_path, start):
        pass
    assert events[4:] == ["started", "ended"]
