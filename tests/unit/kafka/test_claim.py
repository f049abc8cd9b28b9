"""What an assigned partition is known to have delivered."""

from __future__ import annotations

from stream_fs.kafka.claim import Claim


def claimed(wanted: int, *, doubtful: bool = False) -> Claim:
    claim = Claim(doubtful=doubtful)
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
    claim = Claim()
    claim.reach(6)
    assert claim.unread(0) is None


def test_the_end_of_a_doubtful_partition_is_not_believed() -> None:
    claim = claimed(7, doubtful=True)
    claim.reach(9)
    assert claim.unread(7) is None
