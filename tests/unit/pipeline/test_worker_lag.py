"""The lag of a partition counts from where its task continues."""

from __future__ import annotations

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from tests.support.simulated_process import TOPIC, SimulatedProcess, broker, fill, records, settings

PLACE = Partition(TOPIC, 0)
VALUES = list(records(100))


def test_the_lag_counts_records_that_were_not_received() -> None:
    made = broker()
    fill(made, VALUES[:60])
    process = SimulatedProcess(made, settings())
    assert process.worker.lags() == {}  # not restored yet
    assert process.run()
    assert process.worker.lags() == {PLACE: 0}
    fill(made, VALUES[60:70])
    assert process.worker.lags() == {PLACE: 10}
    process.worker.stop()
    assert process.worker.lags() == {}  # not held any more
    another = SimulatedProcess(made, settings())
    another.until(lambda: bool(another.of(events.Restored)))
    (restored,) = another.of(events.Restored)
    assert another.worker.lags() == {PLACE: 70 - restored.offset}
