"""Every event states its line of the log, its metrics and its status consistently."""

from __future__ import annotations

from stream_fs.pipeline import events
from stream_fs.pipeline.events.instruments import INSTRUMENTS, PARTITION, STREAM
from stream_fs.pipeline.events.status import PartitionStatus, StatusContext, ViewLayout
from tests.support.make_events import HERE, merge_events, partition_events

OF_PARTITION = [*partition_events(), events.PartitionReleased(HERE)]
OF_MERGE = [*merge_events(), events.MergeReleased()]
CONTEXT = StatusContext(1000.0, {"fourier": ViewLayout(2, None, 2)})


def test_samples_have_the_labels_of_their_instrument() -> None:
    for event in [*OF_PARTITION, *OF_MERGE]:
        scope = PARTITION if isinstance(event, events.PartitionEvent) else STREAM
        for sample in event.samples(1000.0):
            assert sample.instrument in INSTRUMENTS
            assert sample.instrument.scope == scope
            assert len(sample.labels) == len(sample.instrument.labels)


def test_every_instrument_is_used() -> None:
    used = {s.instrument for event in [*OF_PARTITION, *OF_MERGE] for s in event.samples(0.0)}
    assert used == set(INSTRUMENTS)


def test_only_a_release_ends_what_is_known() -> None:
    released = {type(event) for event in [*OF_PARTITION, *OF_MERGE] if event.released}
    assert released == {events.PartitionReleased, events.MergeReleased}


def test_an_event_changes_nothing_that_it_does_not_state() -> None:
    event = events.GroupOffsetDiffers(HERE, group=90, state=100)
    status = PartitionStatus(since=0.0)
    assert event.update(status, CONTEXT) is status
    assert list(event.samples(0.0)) == []
    assert events.MergeAcquired(3).update(None, CONTEXT) is None


def test_a_line_starts_with_the_partition() -> None:
    lines = [line for event in OF_PARTITION if (line := event.log()) is not None]
    for line in lines:
        assert list(line.fields.items())[:2] == [("topic", "digits"), ("partition", 3)]
        assert None not in line.fields.values()
