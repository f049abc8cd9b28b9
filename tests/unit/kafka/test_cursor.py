"""The read position of a partition: gaps, the end, and seeks without an answer."""

from __future__ import annotations

from stream_fs.kafka.cursor import PartitionCursor


def delivered_from(wanted: int) -> PartitionCursor:
    cursor = PartitionCursor()
    cursor.wanted = wanted
    return cursor


def test_nothing_is_unread_at_the_last_stable_offset() -> None:
    cursor = delivered_from(7)
    assert cursor.unread(7) is None  # not known
    cursor.reach_end(9)  # transaction markers
    assert cursor.unread(7) == 0
    cursor.broker_end = 12
    assert cursor.unread(7) == 3
    cursor.reach_end(12)  # aborted records
    assert cursor.unread(7) == 0


def test_behind_the_reached_end_the_lag_is_unknown() -> None:
    cursor = delivered_from(7)
    cursor.reach_end(9)
    assert cursor.unread(10) is None


def test_an_end_before_the_wanted_offset_is_ignored() -> None:
    cursor = delivered_from(7)
    cursor.reach_end(6)
    assert cursor.unread(7) is None


def test_the_end_of_a_paused_partition_is_ignored() -> None:
    cursor = PartitionCursor()
    cursor.reach_end(6)
    assert cursor.unread(0) is None


def test_a_fetch_from_before_the_wanted_offset_is_not_covered() -> None:
    cursor = delivered_from(7)
    assert cursor.covers(7)
    assert cursor.covers(9)
    assert not cursor.covers(0)
    cursor.pause()
    assert not cursor.covers(7)


def test_a_gap_is_verified_by_a_second_answer_and_so_is_any_that_is_no_larger() -> None:
    cursor = delivered_from(3)
    assert cursor.has_unverified_gap(3, 5)
    assert not cursor.has_unverified_gap(3, 5)
    assert not cursor.has_unverified_gap(6, 8)
    assert cursor.has_unverified_gap(9, 12)


def test_after_a_seek_every_gap_is_verified() -> None:
    cursor = delivered_from(3)
    assert cursor.has_unverified_gap(3, 5)
    assert not cursor.has_unverified_gap(3, 5)
    cursor.record_seek(6, now=0.0)
    assert cursor.has_unverified_gap(6, 7)
    assert not cursor.has_unverified_gap(6, 7)
    assert not cursor.has_unverified_gap(8, 9)
