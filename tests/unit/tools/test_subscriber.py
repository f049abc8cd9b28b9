"""The subscriber detects missing, duplicated, misplaced and invalid rankings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recovery.subscriber import SCHEMA, problems

EXAMPLE = json.loads((SCHEMA.parent / "examples" / "ranking.later.json").read_text())


def ranking(sequence: int, **changes: Any) -> bytes:
    offsets = {"from": 7 + 20 * sequence, "next": 27 + 20 * sequence}
    return json.dumps({**EXAMPLE, "sequence": sequence, "offsets": offsets, **changes}).encode()


SERIES = [ranking(number) for number in range(1, 6)]


def test_a_complete_series_has_no_problems() -> None:
    assert problems(SERIES) == []


def test_merged_rankings_have_a_series_of_their_own() -> None:
    example = json.loads((SCHEMA.parent / "examples" / "ranking.merged.json").read_text())
    merged = [json.dumps({**example, "sequence": number}).encode() for number in range(1, 4)]
    mixed = [SERIES[0], merged[0], *SERIES[1:3], merged[1], *SERIES[3:], merged[2]]
    assert problems(mixed) == []
    assert problems([merged[0], *SERIES, merged[2]]) == ["ranking 3 follows ranking 1"]


def test_series_of_partitions_may_be_interleaved() -> None:
    others = [ranking(number, partition=99) for number in range(1, 4)]
    mixed = [SERIES[0], others[0], others[1], SERIES[1], others[2], *SERIES[2:]]
    assert problems(mixed) == []


@pytest.mark.parametrize(
    "series",
    [
        pytest.param([*SERIES[:2], *SERIES[3:]], id="missing"),
        pytest.param(SERIES[1:], id="first-missing"),
        pytest.param([*SERIES[:3], *SERIES[2:]], id="duplicated"),
        pytest.param([*SERIES, SERIES[0]], id="duplicated-later"),
        pytest.param([SERIES[0], SERIES[2], SERIES[1], *SERIES[3:]], id="reordered"),
    ],
)
def test_an_incomplete_series_is_detected(series: list[bytes]) -> None:
    assert problems(series)


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param({"from": 66, "next": 87}, id="overlapping"),
        pytest.param({"from": 68, "next": 87}, id="with-a-gap"),
    ],
)
def test_offsets_with_gaps_or_overlaps_are_detected(offsets: dict[str, int]) -> None:
    broken = [*SERIES[:2], ranking(3, offsets=offsets), *SERIES[3:]]
    assert len(problems(broken)) == 1


@pytest.mark.parametrize("value", [None, b"{}", ranking(3, schema=2), ranking(3, unknown=1)])
def test_an_invalid_ranking_is_detected(value: bytes | None) -> None:
    found = problems([*SERIES[:2], value, *SERIES[3:]])
    assert found[0].startswith("message 2 is not a ranking")
