"""What an assigned partition is known to have delivered."""

from __future__ import annotations

from stream_fs.kafka.cursor import PartitionCursor


def claimed(wanted: int) -> PartitionCursor:
    claim = PartitionCursor()
    claim.wanted = wanted
    return claim


def test_nothing_is_unread_at_the_last_stable_offset() -> None:
    claim = claimed(7)
    assert claim.unread(7) is None  # not known
    claim.reach(9)  # transaction markers
    assert claim.unread(7) == 0
    claim.told = 12
    assert claim.unread(7) == 3
    claim.reach(12)  # aborted records
    assert claim.unread(7) == 0


def test_behind_the_end_that_was_reached_nothing_is_known() -> None:
    claim = claimed(7)
    claim.reach(9)
    assert claim.unread(10) is None


def test_an_end_before_the_wanted_offset_is_an_old_one() -> None:
    claim = claimed(7)
    claim.reach(6)
    assert claim.unread(7) is None


def test_the_end_of_a_partition_that_is_not_delivered_is_an_old_one() -> None:
    claim = PartitionCursor()
    claim.reach(6)
    assert claim.unread(0) is None


def test_a_fetch_from_before_the_wanted_offset_is_an_old_one() -> None:
    claim = claimed(7)
    assert claim.asks_for(7)
    assert claim.asks_for(9)
    assert not claim.asks_for(0)
    claim.rest()
    assert not claim.asks_for(7)


def test_a_gap_is_believed_when_it_is_seen_twice_and_then_any_that_is_no_larger() -> None:
    claim = claimed(3)
    assert claim.missing(3, 5)
    assert not claim.missing(3, 5)
    assert not claim.missing(6, 8)
    assert claim.missing(9, 12)


def test_behind_an_offset_that_was_asked_for_every_gap_is_seen_twice() -> None:
    claim = claimed(3)
    assert claim.missing(3, 5)
    assert not claim.missing(3, 5)
    claim.place(6, now=0.0)
    assert claim.missing(6, 7)
    assert not claim.missing(6, 7)
    assert not claim.missing(8, 9)
