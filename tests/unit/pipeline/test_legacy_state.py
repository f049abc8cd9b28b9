"""A legacy state is migrated once, by the stream and group that wrote it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergedPart,
    MergeProgress,
    StateKeys,
    decode_merge_progress,
    decode_progress,
    marker_owner,
    parse_key,
)
from stream_fs.errors import (
    AbortableError,
    CorruptProgress,
    FencedError,
    ForeignState,
)
from stream_fs.pipeline import events
from stream_fs.pipeline.administration import (
    export_model,
    import_model,
    read_position,
    reset,
    reset_to_offset,
    state_errors,
)
from stream_fs.pipeline.ports import Partition
from tests.support.legacy_state import write_merge, write_state
from tests.support.memory_transport import MemoryStateLog, MemoryTransport
from tests.support.merged_stream import (
    give,
    merged_rankings,
    merging,
    more,
    sequences,
    settle,
    stream,
)
from tests.support.simulated_process import (
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    settings,
    undisturbed,
)
from tests.support.two_streams import (
    BLUE,
    PLACE,
    TEAL,
    VALUES,
    begun,
    last,
    legacy,
    rankings,
    refuse,
    reset_state,
    transport,
)


def test_a_legacy_state_is_continued_by_the_stream_that_wrote_it() -> None:
    made = legacy(BLUE)
    process = SimulatedProcess(made, BLUE)
    assert process.run()
    (restored,) = process.of(events.Restored)
    assert (restored.chunk + restored.behind, restored.migrated) == (3, True)
    assert not process.of(events.ReplayDiverged)
    with undisturbed(VALUES, stream="blue", group="blue") as alone:
        assert rankings(made, BLUE) == rankings(alone, BLUE)[3:]
    process.kill()
    again = SimulatedProcess(made, BLUE)
    assert again.run()
    assert [event.migrated for event in again.of(events.Restored)] == [False]


def test_its_previous_owner_is_fenced_before_it_is_read() -> None:
    made = legacy(BLUE)
    old = transport(made, BLUE).publisher(PLACE, legacy=True)
    old.acquire()
    old.begin()
    assert SimulatedProcess(made, BLUE).run()
    with pytest.raises(FencedError):
        old.commit()


def test_its_marker_is_refused_by_older_releases() -> None:
    made = legacy(BLUE)
    assert SimulatedProcess(made, BLUE).run()
    newest: dict[bytes, bytes | None] = {m.key: m.value for m in made.committed(STATE) if m.key}
    left = {
        key: value
        for key, value in newest.items()
        if value is not None and (parsed := parse_key(key)) and parsed.keys.owner is None
    }
    assert list(left) == [StateKeys(None, *PLACE).progress]
    (record,) = left.values()
    assert marker_owner(record) == BLUE.owner
    assert b"\xa1v\x02" in record  # version 2: releases that write version 1 do not read it


@pytest.mark.parametrize("call", ["begin", "send", "commit"])
@pytest.mark.parametrize("after_effect", [False, True])
def test_a_failed_migration_is_repeated(call: Any, after_effect: bool) -> None:
    made = legacy(BLUE)
    made.fail_next(call, AbortableError("no"), after_effect=after_effect and call != "begin")
    assert SimulatedProcess(made, BLUE).run()
    assert [ranking["sequence"] for ranking in rankings(made, BLUE)] == [4, 5, 6, 7]


def test_the_legacy_state_of_another_stream_is_not_changed() -> None:
    made = legacy(BLUE)
    teal = SimulatedProcess(made, TEAL)
    assert teal.run()
    assert [ranking["sequence"] for ranking in rankings(made, TEAL)] == list(range(1, 8))
    assert read_position(transport(made, BLUE), BLUE, PLACE).progress is not None
    assert SimulatedProcess(made, BLUE).run()
    assert [ranking["sequence"] for ranking in rankings(made, BLUE)] == [4, 5, 6, 7]


def test_a_stream_renamed_before_its_migration_is_refused() -> None:
    """The offsets of its group show that it is not a new one."""
    made = legacy(BLUE)
    renamed = settings(stream="azure", group="blue")
    refusal = "a state of stream 'blue', .*group 'blue' has committed offset 50.*--to-offset N"
    export = export_model(transport(begun(renamed), renamed), renamed, PLACE)
    refuse(made, renamed, refusal)
    with pytest.raises(ForeignState, match=refusal):
        reset_state(made, renamed)
    with pytest.raises(ForeignState, match=refusal):
        import_model(transport(made, renamed), renamed, PLACE, export, None)
    with pytest.raises(ForeignState, match=refusal):
        export_model(transport(made, renamed), renamed, PLACE)
    with pytest.raises(ForeignState, match=refusal):
        reset_to_offset(transport(made, renamed), renamed, PLACE, 50, keep_model=True)
    assert len(state_errors(transport(made, renamed), renamed, [PLACE])) == 1
    assert read_position(transport(made, BLUE), BLUE, PLACE).progress is not None


def test_another_stream_whose_group_has_read_the_topic_starts_by_the_advice_of_the_refusal() -> (
    None
):
    made = legacy(BLUE)
    made.commit_group_offsets("teal", {PLACE: 50})
    refuse(made, TEAL, "--to-offset N")
    reset_to_offset(transport(made, TEAL), TEAL, PLACE, 0, keep_model=False)
    assert SimulatedProcess(made, TEAL).run()
    assert rankings(made, TEAL)
    assert read_position(transport(made, BLUE), BLUE, PLACE).progress is not None


def test_a_legacy_state_beside_a_stream_of_the_same_name_is_not_migrated() -> None:
    export = export_model(transport(begun(BLUE), BLUE), BLUE, PLACE)
    made = begun(settings(stream="blue", group="other"))
    write_state(made, PLACE, export)
    made.commit_group_offsets("blue", {PLACE: export.progress.next_offset})
    before = len(made.committed(STATE))
    refuse(made, BLUE, "a state of stream 'blue' in group 'other', which has the same name")
    assert len(made.committed(STATE)) == before


def test_a_legacy_state_of_another_group_is_refused_until_it_is_claimed() -> None:
    """The same name, and a group that has committed nothing: the other group may be running."""
    made = legacy(BLUE)
    other = settings(stream="blue", group="other")
    refusal = "group 'other' has committed no offset.*--keep-model --to-offset 50`"
    refuse(made, other, refusal)
    with pytest.raises(ForeignState, match=refusal):
        reset_state(made, other)
    with pytest.raises(ForeignState, match=refusal):
        export_model(transport(made, other), other, PLACE)
    whose = read_position(transport(made, other), other, PLACE).others
    assert whose == "stream 'blue' in a group that was not recorded"
    assert len(state_errors(transport(made, other), other, [PLACE])) == 1
    reset_to_offset(transport(made, other), other, PLACE, 50, keep_model=True)
    assert SimulatedProcess(made, other).run()
    assert [ranking["sequence"] for ranking in rankings(made, other)] == [4, 5, 6, 7]


def test_a_legacy_state_before_the_first_chunk_has_the_offset_to_start_at() -> None:
    """As an older release left it with `start = "latest"`; its group has committed nothing yet."""
    first = broker()
    fill(first, VALUES[:10])
    latest = replace(BLUE, start="latest")
    process = SimulatedProcess(first, latest)
    assert process.run()
    process.kill()
    made = broker()
    fill(made, VALUES)
    write_state(made, PLACE, export_model(transport(first, BLUE), BLUE, PLACE))
    assert state_errors(transport(made, BLUE), latest, [PLACE]) == []
    assert SimulatedProcess(made, latest).run()
    assert rankings(made, BLUE)[0]["offsets"]["from"] == 10


def test_an_older_release_is_fenced_and_refuses_even_without_a_state() -> None:
    made = broker()
    fill(made, VALUES[:10])
    old = transport(made, BLUE).publisher(PLACE, legacy=True)
    old.acquire()
    fill(made, VALUES[10:])
    assert SimulatedProcess(made, BLUE).run()
    with pytest.raises(FencedError):
        old.begin()
    record = [m.value for m in made.committed(STATE) if m.key == StateKeys(None, *PLACE).progress]
    assert [marker_owner(value or b"") for value in record] == [BLUE.owner]
    with pytest.raises(CorruptProgress):
        decode_progress(record[0] or b"")  # version 2, and nothing but the owner


def test_an_older_release_that_acquires_the_partition_fails_the_migration() -> None:
    made = legacy(BLUE)
    comes_back = [True]

    class Disturbed(MemoryTransport):
        def input_log(self, partition: Partition) -> MemoryStateLog:
            if comes_back.pop():
                comes_back.append(False)
                transport(made, BLUE).publisher(partition, legacy=True).acquire()
            return super().input_log(partition)

    disturbed = Disturbed(made, "blue", BLUE.state_topics, "blue")
    with pytest.raises(FencedError):
        reset_to_offset(disturbed, BLUE, PLACE, 100, keep_model=True)
    assert decode_progress(last(made, StateKeys(None, *PLACE).progress)).owner is None
    reset_to_offset(transport(made, BLUE), BLUE, PLACE, 100, keep_model=True)
    assert marker_owner(last(made, StateKeys(None, *PLACE).progress)) == BLUE.owner


def test_an_unreadable_legacy_record_does_not_stop_another_stream() -> None:
    made = broker()
    fill(made, VALUES)
    made.produce(STATE, b"junk", key=StateKeys(None, *PLACE).progress)
    made.produce(STATE, b"junk", key=LEGACY_MERGE_KEY)
    assert SimulatedProcess(made, merging(stream="teal", group="teal")).run()
    assert rankings(made, TEAL)


def test_an_unreadable_legacy_record_is_refused_if_the_group_has_read_the_partition() -> None:
    """It may be this stream's, whose model and sequence would be lost."""
    made = legacy(BLUE)
    made.produce(STATE, b"junk", key=StateKeys(None, *PLACE).progress)
    process = SimulatedProcess(made, BLUE)
    with pytest.raises(CorruptProgress, match="--partition 0 --to-offset N"):
        process.run()
    process.kill()
    assert len(state_errors(transport(made, BLUE), BLUE, [PLACE])) == 1
    reset_to_offset(transport(made, BLUE), BLUE, PLACE, 50, keep_model=False)
    assert SimulatedProcess(made, BLUE).run()
    assert rankings(made, BLUE)[0]["offsets"]["from"] == 50


def test_a_reset_legacy_state_is_not_found_again() -> None:
    made = legacy(BLUE)
    reset(transport(made, BLUE), BLUE, PLACE)
    assert SimulatedProcess(made, BLUE).run()
    assert [ranking["sequence"] for ranking in rankings(made, BLUE)] == list(range(1, 8))


def test_a_legacy_model_is_kept_at_another_offset() -> None:
    made = legacy(BLUE)
    reset_to_offset(transport(made, BLUE), BLUE, PLACE, 100, keep_model=True)
    assert SimulatedProcess(made, BLUE).run()
    (ranking,) = rankings(made, BLUE)
    assert (ranking["sequence"], ranking["offsets"]["from"]) == (4, 100)


def test_a_legacy_merge_continues_without_a_gap() -> None:
    first = stream()
    process = SimulatedProcess(first, merging())
    settle(process)
    process.worker.stop()
    last = sequences(first)[-1]
    progress = [m.value for m in first.committed(STATE) if m.key == merging().owner.merge_key][-1]

    made = stream()
    for number in range(3):
        place = Partition(TOPIC, number)
        write_state(made, place, export_model(transport(first, merging()), merging(), place))
        made.commit_group_offsets("g", {place: 0})
    write_merge(made, decode_merge_progress(progress or b""))
    old = transport(made, merging()).merge_publisher(legacy=True)
    old.acquire()
    old.begin()
    process = SimulatedProcess(made, merging())
    settle(process)
    for number in range(3):
        more(made, number, seed=7 + number)
    settle(process)
    assert sequences(made)[0] == last + 1
    with pytest.raises(FencedError):
        old.commit()
    left = [m.value for m in made.committed(STATE) if m.key == LEGACY_MERGE_KEY][-1]
    assert marker_owner(left or b"") == merging().owner


def test_the_legacy_merge_of_another_group_is_not_changed() -> None:
    """A member that has only the first partition, without a state, is not refused itself."""
    first = stream()
    process = SimulatedProcess(first, merging())
    settle(process)
    process.worker.stop()
    made = stream()
    for number in (1, 2):
        place = Partition(TOPIC, number)
        write_state(made, place, export_model(transport(first, merging()), merging(), place))
    before = decode_merge_progress(last(first, merging().owner.merge_key))
    write_merge(made, before)
    other = SimulatedProcess(made, merging(group="other"))
    give(made, (other, [0]), group="other")
    settle(other)
    assert other.of(events.MergeAcquired)
    assert decode_merge_progress(last(made, LEGACY_MERGE_KEY)) == replace(before, owner=None)


def test_a_legacy_merge_of_other_topics_is_not_changed() -> None:
    made = stream()
    parts = (MergedPart("elsewhere", 0, 3),)
    write_merge(
        made,
        MergeProgress(sequence=4, parts=parts, chosen={}, fingerprint="", owner=merging().owner),
    )
    process = SimulatedProcess(made, merging())
    settle(process)
    assert sequences(made)[0] == 1


def test_the_legacy_merge_of_another_stream_is_not_changed() -> None:
    first = stream()
    blue = merging(stream="blue", group="blue")
    process = SimulatedProcess(first, blue)
    settle(process)
    process.worker.stop()
    progress = [m.value for m in first.committed(STATE) if m.key == blue.owner.merge_key][-1]
    made = stream()
    write_state(made, PLACE, export_model(transport(first, blue), blue, PLACE))
    write_merge(made, decode_merge_progress(progress or b""))
    process = SimulatedProcess(made, merging())
    settle(process)
    assert merged_rankings(made)
    assert sequences(made)[0] == 1
