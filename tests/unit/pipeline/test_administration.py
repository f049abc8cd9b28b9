"""Operations of an operator on a partition that a process is working on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stream_fs.checkpoint import decode_progress, read_manifest
from stream_fs.errors import ConfigurationChanged, InvalidParameter
from stream_fs.pipeline import events
from stream_fs.pipeline.administration import (
    export_model,
    import_model,
    read_position,
    reset,
    reset_to_offset,
)
from stream_fs.pipeline.ports import Partition
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryPublisher, MemoryStateLog, MemoryTransport
from tests.support.simulated_process import (
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    undisturbed,
)

PLACE = Partition(TOPIC, 0)
VALUES = list(records(120))


def begun() -> SimulatedProcess:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings())
    assert process.run()
    return process


def sequences(process: SimulatedProcess) -> list[int]:
    return [json.loads(value)["sequence"] for _, value, _ in published(process.broker)]


def test_the_position_has_the_progress_and_the_bounds_of_the_input() -> None:
    process = begun()
    found = read_position(transport(process.broker), settings(), PLACE)
    assert found.progress is not None
    assert (found.first, found.end) == (0, 120)
    assert found.next_offset == found.progress.next_offset == 20 + 6 * 15
    assert found.progress.chunk == 7


def test_before_the_first_chunk_the_position_is_the_start_of_the_input() -> None:
    made = broker()
    fill(made, VALUES[:5])
    made.delete_below(TOPIC, 0, 2)
    found = read_position(transport(made), settings(), PLACE)
    assert (found.progress, found.next_offset) == (None, 2)


def test_after_a_reset_the_running_process_starts_anew() -> None:
    process = begun()
    reset(MemoryTransport(process.broker, "g", {TOPIC: STATE}), settings(), PLACE)
    fill(process.broker, list(records(15, seed=1)))
    assert process.run()
    assert process.of(events.Fenced)
    assert sequences(process) == [*range(1, 8), *range(1, 9)]
    first, again = (json.loads(published(process.broker)[n][1]) for n in (0, 7))
    assert first == again


def test_after_a_reset_to_an_offset_it_starts_anew_there() -> None:
    process = begun()
    reset_to_offset(
        MemoryTransport(process.broker, "g", {TOPIC: STATE}),
        settings(),
        PLACE,
        60,
        keep_model=False,
    )
    process.kill()
    assert SimulatedProcess(process.broker, settings()).run()
    after = [json.loads(value) for _, value, _ in published(process.broker)][7:]
    assert [(r["sequence"], r["offsets"]["from"]) for r in after] == [(1, 60), (2, 80), (3, 95)]


def test_a_kept_model_continues_its_sequence() -> None:
    process = begun()
    reset_to_offset(
        MemoryTransport(process.broker, "g", {TOPIC: STATE}),
        settings(),
        PLACE,
        100,
        keep_model=True,
    )
    process.kill()
    assert SimulatedProcess(process.broker, settings()).run()
    last = json.loads(published(process.broker)[-1][1])
    assert (last["sequence"], last["offsets"]["from"]) == (8, 100)
    assert last["records"]["total"] > 100


@pytest.mark.parametrize("offset", [-1, 121])
def test_an_offset_outside_the_input_is_refused(offset: int) -> None:
    process = begun()
    with pytest.raises(InvalidParameter, match=r"holds \[0, 120\)"):
        reset_to_offset(
            MemoryTransport(process.broker, "g", {TOPIC: STATE}),
            settings(),
            PLACE,
            offset,
            keep_model=False,
        )


def test_keeping_a_model_needs_one() -> None:
    made = broker()
    fill(made, VALUES)
    with pytest.raises(InvalidParameter, match="no model"):
        reset_to_offset(
            MemoryTransport(made, "g", {TOPIC: STATE}), settings(), PLACE, 5, keep_model=True
        )


# --- a service that is at work meanwhile ----------------------------------------------------------


class Raced(MemoryTransport):
    """Three chunks are committed by the running service before each command owns the partition."""

    process: SimulatedProcess

    def publisher(self, partition: Partition, *, legacy: bool = False) -> MemoryPublisher:
        made = super().publisher(partition, legacy=legacy)
        acquire = made.acquire

        def late() -> bool:
            fill(self.broker, list(records(45, seed=3)))
            assert self.process.run()
            return acquire()

        object.__setattr__(made, "acquire", late)
        return made


def raced(process: SimulatedProcess) -> Raced:
    made = Raced(process.broker, "g", {TOPIC: STATE})
    object.__setattr__(made, "process", process)
    return made


def test_chunks_committed_before_a_reset_owns_the_partition_are_kept() -> None:
    """Otherwise their numbers would be published again: 1 … 10, 8, 9."""
    process = begun()
    reset_to_offset(raced(process), settings(), PLACE, 100, keep_model=True)
    assert sequences(process) == list(range(1, 11))
    fill(process.broker, list(records(15, seed=1)))
    assert process.run()
    assert sequences(process) == list(range(1, len(sequences(process)) + 1))


def test_chunks_committed_before_an_import_owns_the_partition_leave_its_snapshot_whole() -> None:
    """Snapshots use two slots in turn: a number read too early would take the wrong one."""
    export = export_model(transport(begun().broker), settings(), PLACE)
    process = begun()
    import_model(raced(process), settings(), PLACE, export, 0)
    found = read_position(transport(process.broker), settings(), PLACE).progress
    assert found is not None
    numbers = [
        decode_progress(m.value or b"").snapshots[0].number
        for m in process.broker.committed(STATE)
        if m.key == settings().keys(PLACE).progress
    ]
    assert numbers[-1] == numbers[-2] + 1


def test_an_export_reads_a_newer_snapshot_if_compaction_removes_one() -> None:
    process = begun()
    made = process.broker

    class Compacted(MemoryTransport):
        """The service commits, and compaction removes the snapshots found, once."""

        def input_log(self, partition: Partition) -> MemoryStateLog:
            if process.worker.tasks and not overtaken:
                overtaken.append(made.log(STATE, 0).end)
                fill(made, list(records(150, seed=3)))
                assert process.run()
                made.delete_below(STATE, 0, overtaken[0])
            return super().input_log(partition)

    overtaken: list[int] = []
    export = export_model(Compacted(made, "g", {TOPIC: STATE}), settings(), PLACE)
    assert overtaken
    assert export.progress.chunk == 17


# --- moving a model -------------------------------------------------------------------------------


def elsewhere(values: list[bytes]) -> MemoryBroker:
    made = broker()
    fill(made, values)
    return made


def transport(made: MemoryBroker) -> MemoryTransport:
    return MemoryTransport(made, "g", {TOPIC: STATE})


@pytest.mark.parametrize("orderly", [True, False])
def test_an_imported_model_continues_as_the_exported_one_would(orderly: bool) -> None:
    """On the same input, even if the newest snapshot is older than the last ranking."""
    values = list(records(200))
    process = SimulatedProcess(elsewhere(values[:105]), settings())
    assert process.run()
    if orderly:
        process.worker.stop()
    export = export_model(transport(process.broker), settings(), PLACE)
    there = elsewhere(values)
    taken = import_model(transport(there), settings(), PLACE, export, None)
    assert taken == (20 + 5 * 15, 6, 0 if orderly else 2)
    other = SimulatedProcess(there, settings())
    assert other.run()
    assert not other.of(events.ReplayDiverged)
    with undisturbed(values) as made:
        assert published(there) == published(made)[6:]


def test_an_import_at_another_offset_continues_the_sequence() -> None:
    export = export_model(transport(begun().broker), settings(), PLACE)
    there = elsewhere(list(records(60, seed=5)))
    taken = import_model(transport(there), settings(), PLACE, export, 10)
    assert (taken.offset, taken.chunk) == (10, 7)
    assert SimulatedProcess(there, settings()).run()
    found = [json.loads(value) for _, value, _ in published(there)]
    assert [(r["sequence"], r["offsets"]["from"]) for r in found] == [(8, 10), (9, 25), (10, 40)]
    # What was published after the snapshot, of chunk 7, is in the total; nothing else is.
    assert found[0]["records"]["total"] == 20 + 6 * 15 + 15


def test_a_running_process_continues_from_an_import() -> None:
    export = export_model(transport(begun().broker), settings(), PLACE)
    process = begun()
    import_model(transport(process.broker), settings(), PLACE, export, 0)
    assert process.run()
    assert process.of(events.Fenced) == []  # it hears of it when it commits
    fill(process.broker, list(records(15, seed=1)))
    assert process.run()
    assert process.of(events.Fenced)
    assert sequences(process)[7:9] == [8, 9]


def test_an_imported_model_has_the_origin_of_its_new_partition() -> None:
    """Two partitions with the same random signs would not be independent."""
    export = export_model(transport(begun().broker), settings(), PLACE)
    there = broker(2)
    fill(there, VALUES, partition=1)
    place = Partition(TOPIC, 1)
    import_model(transport(there), settings(), place, export, 0)
    again = export_model(transport(there), settings(), place)
    assert read_manifest(export.snapshot.manifest).origin == "s/in/0"
    assert read_manifest(again.snapshot.manifest).origin == "s/in/1"


def test_an_import_at_an_offset_outside_the_input_is_refused() -> None:
    export = export_model(transport(begun().broker), settings(), PLACE)
    there = elsewhere(VALUES[:50])
    for offset in (None, 51):
        with pytest.raises(InvalidParameter, match=r"holds \[0, 50\); name one .* --to-offset"):
            import_model(transport(there), settings(), PLACE, export, offset)
    assert read_position(transport(there), settings(), PLACE).progress is None


def test_a_model_of_another_configuration_is_refused() -> None:
    export = export_model(transport(begun().broker), settings(), PLACE)
    other = settings(params=replace(settings().params, clusters=3))
    there = elsewhere(VALUES)
    with pytest.raises(ConfigurationChanged) as refused:
        import_model(transport(there), other, PLACE, export, 0)
    message = str(refused.value)
    assert message.startswith("the model in the file was made with another configuration:")
    assert "clusters: 2 → 3" in message
    assert message.endswith("nothing was changed; import it with that configuration")
    assert read_position(transport(there), settings(), PLACE).progress is None


def test_an_export_needs_a_first_chunk() -> None:
    with pytest.raises(InvalidParameter, match="no model yet"):
        export_model(transport(elsewhere(VALUES[:5])), settings(), PLACE)
