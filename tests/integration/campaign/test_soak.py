"""A short soak, and the growth that it detects."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign.growth import GrowthRecord, Sample
from tests.campaign.resource_usage import Usage
from tests.campaign.soak import compared, restarts, soak
from tests.support.recovery.comparison import Published, by_partition
from tests.support.recovery.launchers import Forked
from tests.support.recovery.subscriber import Received


def test_faults_every_second_change_no_byte(broker: Broker, tmp_path: Path) -> None:
    results = soak(broker, tmp_path, 12, every=1, rate=100, seed=1, start=Forked, least=3)
    first, steady, *_ = results
    assert first.passed, (first.compared, first.shown, *first.problems)
    assert first.times > 2
    assert steady.passed, (steady.shown, *steady.problems)


def grown(name: str, by: float, held: int = 1) -> GrowthRecord:
    growth = GrowthRecord()
    for number in range(16):
        values = {"megabytes": 100.0, "threads": 10, "files": 20, "series": 50}
        values[name] += by * number
        series = int(values.pop("series"))
        growth.add(Sample(held, Usage(**values), series))  # type: ignore[arg-type]  # whole or not
    return growth


@pytest.mark.parametrize("name", ["megabytes", "threads", "files", "series"])
def test_growth_is_detected(name: str) -> None:
    assert not grown(name, 2).result("x", 1).passed
    assert grown(name, 0).result("x", 1).passed


def test_a_larger_share_of_the_work_is_not_growth() -> None:
    growth = grown("megabytes", 0)
    for _ in range(16):
        growth.add(Sample(2, Usage(200, 20, 40), 90))
    result = growth.result("x", 1)
    assert result.passed
    assert "with 2 partitions 200 MB (+0.0)" in result.shown


def test_too_few_samples_do_not_pass() -> None:
    growth = GrowthRecord()
    growth.add(Sample(1, Usage(1, 1, 1), 1))
    assert not growth.result("x", 1).passed


def test_growth_from_process_to_process_is_detected() -> None:
    (level,) = restarts([100.0] * 10)
    (rising,) = restarts([100.0 + 4 * number for number in range(10)])
    assert level.passed
    assert not rising.passed


def ranking(partition: int, sequence: int) -> Received:
    return Received(None, b'{"partition": %d, "sequence": %d}' % (partition, sequence), ())


def letter(partition: int, offset: int) -> Received:
    place = (("stream-fs-partition", b"%d" % partition), ("stream-fs-offset", b"%d" % offset))
    return Received(None, b"bad", place)


EXPECTED = Published(
    [ranking(0, 1), ranking(0, 2), ranking(1, 1), ranking(1, 2)],
    [letter(0, 3), letter(1, 3)],
)


def test_partitions_are_compared_each_in_its_own_order() -> None:
    assert by_partition(EXPECTED).keys() == {0, 1}
    otherwise = Published(
        [ranking(1, 1), ranking(0, 1), ranking(1, 2), ranking(0, 2)], EXPECTED.letters[::-1]
    )
    rankings, letters = compared(otherwise, EXPECTED)
    assert rankings.same
    assert letters.same


def test_a_missing_partition_is_detected() -> None:
    rankings, letters = compared(Published(EXPECTED.rankings[:2], EXPECTED.letters[:1]), EXPECTED)
    assert rankings.lost == 2
    assert letters.lost == 1
    rankings, _ = compared(EXPECTED, Published(EXPECTED.rankings[:2], EXPECTED.letters[:1]))
    assert rankings.duplicated == 2
