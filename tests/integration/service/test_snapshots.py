"""Damaged snapshots: the one before the newest will do, and nothing that is published changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from stream_fs.errors import CorruptSnapshot, UnknownSnapshotVersion
from stream_fs.pipeline import events
from tests.integration.service.conftest import MakeMember
from tests.integration.service.damages import (
    altered,
    altered_manifest,
    of_another_release,
    removed,
    torn,
    without_parts,
)
from tests.integration.service.state import Record, read_state, replace_snapshots
from tests.integration.service.stream import Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed

DAMAGES: list[tuple[Callable[[Sequence[Record]], Sequence[Record]], str]] = [
    (torn, "of their"),
    (altered, "the checksum of the snapshot's parts does not match"),
    (altered_manifest, "the manifest of the snapshot cannot be used"),
    (without_parts, "the snapshot has 0 of its 1 parts"),
    (removed, "there is no snapshot at offset"),
]


@pytest.fixture
def crashed(stream: Stream, member: MakeMember) -> Stream:
    """Snapshots after chunks 1 and 4, and progress after chunk 5."""
    stream.feed(chunks(5))
    first = member(stream)
    first.completes(5)
    first.die()
    assert [place.chunk for place in read_state(stream).progress.snapshots] == [4, 1]
    return stream


def test_the_snapshot_before_a_damaged_one_is_taken(crashed: Stream, member: MakeMember) -> None:
    state = read_state(crashed)
    for damage, reason in DAMAGES:
        replace_snapshots(crashed, state, damage(state.snapshots[0]))
        second = member(crashed)
        second.runs()
        (restored,) = second.of(events.Restored)
        assert (restored.chunk, restored.behind) == (1, 4)
        assert restored.fallback is not None
        assert reason in restored.fallback
        assert [event.replayed for event in second.of(events.ChunkUpdated)] == [True] * 4
        assert not second.of(events.ReplayDiverged)
        second.die()
    crashed.feed(chunks(8)[len(chunks(5)) :])
    last = member(crashed)
    last.completes(8)
    last.die()
    assert_undisturbed(crashed, 8)
    # The whole one is still there, beside the one that took the damaged one's place.
    assert [place.chunk for place in read_state(crashed).progress.snapshots] == [6, 1]
    third = member(crashed)
    third.runs()
    (restored,) = third.of(events.Restored)
    assert (restored.chunk, restored.behind, restored.fallback) == (6, 2, None)


def test_without_a_whole_snapshot_it_does_not_go_on(crashed: Stream, member: MakeMember) -> None:
    state = read_state(crashed)
    newest, older = state.snapshots
    replace_snapshots(crashed, state, torn(newest), removed(older))
    second = member(crashed)
    with pytest.raises(CorruptSnapshot) as caught:
        second.runs()
    assert f"no snapshot of {crashed.only} can be used" in str(caught.value)
    assert "of their" in str(caught.value)
    assert "there is no snapshot at offset" in str(caught.value)
    assert "`stream-fs checkpoint reset --to-offset`" in str(caught.value)


def test_a_snapshot_of_another_release_is_not_passed_over(
    crashed: Stream, member: MakeMember
) -> None:
    state = read_state(crashed)
    replace_snapshots(crashed, state, of_another_release(state.snapshots[0]))
    second = member(crashed)
    with pytest.raises(UnknownSnapshotVersion, match="version 99"):
        second.runs()
