from __future__ import annotations

from dataclasses import replace

import pytest

from stream_fs.wire import Continuity, RankingMessage
from tests.support.rankings import example_ranking


def at(sequence: int, start: int, end: int, partition: int = 0) -> RankingMessage:
    return replace(
        example_ranking("later"), sequence=sequence, offsets=(start, end), partition=partition
    )


def problems(*rankings: RankingMessage) -> list[str | None]:
    continuity = Continuity()
    return [continuity.follow(ranking) for ranking in rankings]


def test_consecutive_rankings_are_continuous() -> None:
    assert problems(at(7, 100, 150), at(8, 150, 190), at(9, 190, 300)) == [None] * 3


def test_every_key_is_checked_separately() -> None:
    assert problems(at(7, 100, 150), at(3, 40, 60, partition=1), at(8, 150, 190)) == [None] * 3


@pytest.mark.parametrize(
    ("then", "problem"),
    [
        (at(10, 250, 300), "2 rankings between 7 and 10 are missing"),
        (at(7, 100, 150), "ranking 7 comes after 7"),
        (at(5, 100, 150), "ranking 5 comes after 7"),
        (at(1, 0, 50), "the sequence restarts after 7"),
        (at(8, 160, 200), "ranking 8 begins at offset 160, the previous one ended at 150"),
        (at(8, 140, 200), "ranking 8 begins at offset 140, the previous one ended at 150"),
    ],
)
def test_a_discontinuity_is_reported_once(then: RankingMessage, problem: str) -> None:
    assert then.offsets is not None
    following = at(then.sequence + 1, then.offsets[1], then.offsets[1] + 50)
    key = then.key
    assert problems(at(7, 100, 150), then, following) == [None, f"{key}: {problem}", None]


def test_merged_rankings_have_a_sequence_but_no_offsets() -> None:
    merged = example_ranking("merged")
    gap = replace(merged, sequence=merged.sequence + 2)
    assert problems(merged, replace(merged, sequence=merged.sequence + 1)) == [None, None]
    assert problems(merged, gap)[1] == f"{merged.key}: 1 rankings between 9 and 11 are missing"
