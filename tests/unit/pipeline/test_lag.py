"""The lag of a partition counts from where its task continues."""

from __future__ import annotations

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from tests.unit.pipeline.lives import TOPIC, Life, broker, fill, records, settings

PLACE = Partition(TOPIC, 0)
VALUES = list(records(100))


def test_it_is_what_was_not_received() -> None:
    made = broker()
    fill(made, VALUES[:60])
    life = Life(made, settings())
    assert life.worker.lags() == {}  # not restored yet
    assert life.run()
    assert life.worker.lags() == {PLACE: 0}
    fill(made, VALUES[60:70])
    assert life.worker.lags() == {PLACE: 10}
    life.worker.stop()
    assert life.worker.lags() == {}  # not held any more
    another = Life(made, settings())
    another.until(lambda: bool(another.of(events.Restored)))
    (restored,) = another.of(events.Restored)
    assert another.worker.lags() == {PLACE: 70 - restored.offset}
