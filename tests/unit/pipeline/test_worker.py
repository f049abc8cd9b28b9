"""What a worker reports of its partitions."""

from __future__ import annotations

import pytest

from stream_fs.errors import RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.partition.task import PartitionTask
from stream_fs.pipeline.ports import Partition
from tests.support.simulated_process import (
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    records,
    settings,
)

VALUES = list(records(250))


def test_the_restore_error_is_known_until_the_partition_is_restored() -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next("acquire", RetriableError("no coordinator"))
    process = SimulatedProcess(made, settings())
    process.until(lambda: bool(process.of(events.RestoreFailed)))
    assert process.worker.restore_error == "in/0: no coordinator"
    assert not process.worker.ready
    process.until(lambda: process.worker.ready)
    assert process.worker.restore_error is None


def test_readiness_can_be_read_during_a_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """By other threads, while the loop changes the tasks."""
    made = broker(3)
    process = SimulatedProcess(made, settings())
    process.until(lambda: process.worker.ready)
    gone = iter([Partition(TOPIC, 2)])

    def moving(task: PartitionTask) -> events.Phase:
        for partition in gone:
            process.worker.lost([partition])
        return task._state.phase

    monkeypatch.setattr(PartitionTask, "phase", property(moving))
    assert process.worker.ready
