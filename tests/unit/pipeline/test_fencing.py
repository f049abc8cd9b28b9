"""Being fenced is the end only where it happens again and again, and by somebody else."""

from __future__ import annotations

import pytest

from stream_fs.errors import FencedError, NoOwnership, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import MAX_FENCINGS
from stream_fs.pipeline.partition.task import PartitionTask
from stream_fs.pipeline.ports import Partition
from tests.support.simulated_process import (
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    undisturbed,
)

VALUES = list(records(250))


@pytest.mark.parametrize("outcome_unknown", [False, True])
def test_fences_in_a_row_are_the_end_where_another_is_to_blame(outcome_unknown: bool) -> None:
    made = broker()
    fill(made, VALUES)
    for _ in range(2 * MAX_FENCINGS):
        made.fail_next("begin", FencedError("again", outcome_unknown=outcome_unknown))
    process = SimulatedProcess(made, settings())
    if outcome_unknown:
        process.until(lambda: len(process.of(events.ChunkCommitted)) == 16, turns=20_000)
        assert len(process.of(events.Fenced)) == 2 * MAX_FENCINGS
        with undisturbed(VALUES) as expected:
            assert published(made) == published(expected)
        return
    with pytest.raises(NoOwnership):
        process.until(lambda: False, turns=10_000)


def test_what_hinders_a_restore_is_known_until_it_is_over() -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next("acquire", RetriableError("no coordinator"))
    process = SimulatedProcess(made, settings())
    process.until(lambda: bool(process.of(events.RestoreFailed)))
    assert process.worker.restore_error == "in/0: no coordinator"
    assert not process.worker.ready
    process.until(lambda: process.worker.ready)
    assert process.worker.restore_error is None


def test_readiness_can_be_asked_for_in_a_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """As other threads do, while the loop takes partitions and gives them up."""
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
